"""Data with a planted truth, drawn anew for every seed."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from robustpca.datasets.corruptions import shift_samples
from robustpca.datasets.dataset import Dataset
from robustpca.engine.linalg import Array

__all__ = [
    "make_graph_clusters",
    "make_low_rank_plus_sparse",
    "make_shifted_classes",
    "make_subspace_with_outliers",
    "make_video",
    "planted_subspace",
]


def make_low_rank_plus_sparse(
    n_samples: int = 200,
    n_features: int = 100,
    n_components: int = 5,
    *,
    share: float = 0.05,
    magnitude: float = 10.0,
    noise: float = 0.0,
    random_state: Any = None,
) -> Dataset:
    """A matrix of low rank, some entries of which are grossly wrong.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Sizes, and the rank.
    share : float, default=0.05
        Share of the entries that are wrong, at places drawn without replacement.
    magnitude : float, default=10.0
        Errors are uniform between minus and plus this many times the root mean square entry.
    noise : float, default=0.0
        Standard deviation of small noise on all entries, in the same unit.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    dataset : Dataset
        Its extras: ``low_rank`` (n_samples, n_features), without errors and noise; ``mask``,
        the wrong entries.

    Examples
    --------
    >>> from robustpca.datasets import make_low_rank_plus_sparse
    >>> data = make_low_rank_plus_sparse(random_state=0)
    >>> int(data.extras["mask"].sum())
    1000
    """
    rng = check_random_state(random_state)
    low_rank = rng.normal(size=(n_samples, n_components)) @ rng.normal(
        size=(n_components, n_features)
    )
    low_rank /= np.sqrt(np.mean(low_rank**2))
    X, mask = _with_errors(low_rank, share, magnitude, noise, rng)
    extras = {"low_rank": low_rank, "mask": mask}
    return _made("synthetic_lowrank", X, extras)


def make_subspace_with_outliers(
    n_samples: int = 200,
    n_features: int = 30,
    n_components: int = 4,
    *,
    outliers: float = 0.2,
    clustered: bool = False,
    distance: float = 30.0,
    noise: float = 0.01,
    random_state: Any = None,
) -> Dataset:
    """Samples near a random subspace, some of them replaced by gross outliers.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Sizes, and the dimension of the subspace.
    outliers : float, default=0.2
        Share of the samples that are outliers.
    clustered : bool, default=False
        Put all outliers into one tight cloud instead of scattering them.
    distance : float, default=30.0
        How far from the centre the outliers lie; the samples have deviations between 2 and 6.
    noise : float, default=0.01
        Standard deviation of each entry of the noise.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    dataset : Dataset
        Its extras: ``components`` (n_components, n_features), orthonormal; ``is_outlier``.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    X, components, is_outlier = planted_subspace(
        np.random.default_rng(seed),
        n_samples,
        n_features,
        n_components,
        round(outliers * n_samples),
        noise=noise,
        clustered=clustered,
        distance=distance,
    )
    extras = {"components": components, "is_outlier": is_outlier}
    return _made("synthetic_outliers", X, extras)


def make_shifted_classes(
    n_samples: int = 4200,
    *,
    samples: float = 0.1,
    random_state: Any = None,
) -> Dataset:
    """Four classes in three dimensions, some samples of which are shifted [1]_.

    The classes lie in a plane. Along its first direction they follow each other and are nearly
    all told apart; along the second they form two pairs; both together tell all apart. The shift
    is the same for all shifted samples, leads out of the plane, and is so large that the first
    principal component follows it and is left with the pairs.

    The paper gives no numbers. Its accuracies are multiples of 1/1260, hence the default of 4200
    samples, 30 % of which are 1260; the places were chosen so that its Table 1 comes out: half
    of the samples right in one principal component, 96 % in one angular one, and over 99 % in
    two of either.

    Parameters
    ----------
    n_samples : int, default=4200
        Number of samples, as evenly among the classes as possible.
    samples : float, default=0.1
        Share of the samples to shift.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    dataset : Dataset
        Its classes, and in the extras ``is_outlier``.

    References
    ----------
    .. [1] Liu, Yu, Angular embedding: a new angular robust principal component analysis,
       AAAI 2021, Table 1 and Fig. 2.
    """
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % 4)
    centres = np.array([[-8.0, 2.5, 0.0], [-4.0, -2.5, 0.0], [4.0, -2.5, 0.0], [8.0, 2.5, 0.0]])
    spread = np.array([1.1, 1.1, 0.4])
    X = centres[y] + spread * rng.normal(size=(n_samples, 3))
    X, mask = shift_samples(X, [0.0, 25.0, 25.0], samples, random_state=rng)
    return _made("synthetic_classes", X, {"is_outlier": mask.any(axis=1)}, y)


def make_graph_clusters(
    n_samples: int = 300,
    n_features: int = 60,
    *,
    n_clusters: int = 6,
    n_feature_clusters: int = 5,
    share: float = 0.05,
    magnitude: float = 10.0,
    noise: float = 0.1,
    random_state: Any = None,
) -> Dataset:
    """Samples and features in clusters: low rank, and smooth on the graphs of both.

    Without errors and noise, an entry depends on the cluster of its sample and on that of its
    feature alone, which is the case the graph methods are made for.

    Parameters
    ----------
    n_samples, n_features : int
        Sizes.
    n_clusters, n_feature_clusters : int, default=6 and 5
        Number of clusters of the samples and of the features, as even as possible.
    share : float, default=0.05
        Share of the entries that are wrong, at places drawn without replacement.
    magnitude : float, default=10.0
        Errors are uniform between minus and plus this many times the root mean square entry.
    noise : float, default=0.1
        Standard deviation of the noise on all entries, in the same unit.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    dataset : Dataset
        Its classes are the clusters of the samples; its extras: ``feature_clusters``
        (n_features,), ``low_rank`` (n_samples, n_features) and ``mask``, the wrong entries.
    """
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % n_clusters)
    feature_clusters = rng.permutation(np.arange(n_features) % n_feature_clusters)
    low_rank = rng.normal(size=(n_clusters, n_feature_clusters))[y][:, feature_clusters]
    low_rank /= np.sqrt(np.mean(low_rank**2))
    X, mask = _with_errors(low_rank, share, magnitude, noise, rng)
    extras = {"feature_clusters": feature_clusters, "low_rank": low_rank, "mask": mask}
    return _made("synthetic_clusters", X, extras, y)


def make_video(
    n_frames: int = 200,
    image_shape: tuple[int, int] = (48, 64),
    *,
    n_movers: int = 3,
    noise: float = 2.0,
    random_state: Any = None,
) -> Dataset:
    """A camera that stands still while blocks cross the picture and the light changes slowly.

    Parameters
    ----------
    n_frames : int, default=200
        Number of frames, which are the samples.
    image_shape : tuple of two int, default=(48, 64)
        Height and width.
    n_movers : int, default=3
        Number of blocks in the picture. Each has a sixth of both sides of the image and a grey
        level of its own, at least 40 away from the mean of the background.
    noise : float, default=2.0
        Standard deviation of the noise of the camera, in grey levels.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    dataset : Dataset
        Single precision, grey levels from 0 to 255. Its extras: ``masks`` (n_frames,
        n_features), 255 where something moves and 0 elsewhere; ``background`` (n_features,), at
        mean light.
    """
    rng = check_random_state(random_state)
    height, width = image_shape
    down, across = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)
    waves = rng.uniform(-1, 1, size=(6, 4))
    background = 120 + 12 * sum(
        size * np.sin(2 * np.pi * (3 * u * down + 3 * v * across + phase))
        for size, u, v, phase in waves
    )
    light = 1 + 0.08 * np.sin(2 * np.pi * (np.arange(n_frames) / n_frames + rng.uniform()))
    X = (light[:, None] * background.ravel()).astype(np.float32)
    masks = np.zeros((n_frames, height, width), dtype=np.uint8)
    frames, tall, wide = X.reshape(masks.shape), max(height // 6, 1), max(width // 6, 1)
    for _ in range(n_movers):
        level = background.mean() + rng.choice([-1, 1]) * rng.uniform(40, 100)
        top, start = rng.randint(height - tall + 1), rng.randint(width)
        speed = rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * max(width / 64, 1)
        for i in range(n_frames):
            # A block that leaves on one side comes back on the other.
            columns = (start + round(speed * i) + np.arange(wide)) % width
            frames[i, top : top + tall, columns] = level
            masks[i, top : top + tall, columns] = 255
    for frame in X:
        frame += noise * rng.normal(size=height * width)
    np.clip(X, 0, 255, out=X)
    extras = {"masks": masks.reshape(n_frames, -1), "background": background.ravel()}
    return _made("synthetic_video", X, extras, image_shape=(height, width))


def planted_subspace(
    rng: np.random.Generator,
    n_samples: int = 200,
    n_features: int = 30,
    n_components: int = 4,
    n_outliers: int = 0,
    *,
    noise: float = 0.01,
    clustered: bool = False,
    distance: float = 30.0,
) -> tuple[Array, Array, Array]:
    """Samples near a random subspace, some of them replaced by gross outliers.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    n_samples, n_features, n_components, n_outliers : int
        Sizes; the outliers are among the samples.
    noise : float, default=0.01
        Standard deviation of each entry of the noise.
    clustered : bool, default=False
        Put all outliers into one tight cloud instead of scattering them.
    distance : float, default=30.0
        How far from the centre the outliers lie.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The samples, in random order.
    basis : ndarray of shape (n_components, n_features)
        Orthonormal rows spanning the planted subspace.
    is_outlier : ndarray of shape (n_samples,)
        Which samples were replaced.
    """
    basis = np.linalg.qr(rng.normal(size=(n_features, n_components)))[0].T
    scales = np.linspace(6.0, 2.0, n_components)
    X = (rng.normal(size=(n_samples, n_components)) * scales) @ basis
    X += noise * rng.normal(size=X.shape)
    is_outlier = np.zeros(n_samples, dtype=bool)
    is_outlier[rng.choice(n_samples, n_outliers, replace=False)] = True
    directions = rng.normal(size=(1 if clustered else n_outliers, n_features))
    directions *= distance / np.linalg.norm(directions, axis=1, keepdims=True)
    X[is_outlier] = directions + noise * rng.normal(size=(n_outliers, n_features))
    return X + rng.normal(size=n_features), basis, is_outlier


def _with_errors(
    low_rank: Array, share: float, magnitude: float, noise: float, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Noise on all entries and gross errors on an exact number of them, in unit entries."""
    mask = np.zeros(low_rank.shape, dtype=bool)
    mask.flat[rng.choice(mask.size, round(share * mask.size), replace=False)] = True
    X = low_rank + noise * rng.normal(size=low_rank.shape)
    X[mask] += rng.uniform(-magnitude, magnitude, size=np.count_nonzero(mask))
    return X, mask


def _made(
    name: str,
    X: Array,
    extras: dict[str, Any],
    y: Array | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Dataset:
    return Dataset(name, X, y, image_shape, "drawn at random by robustpca", extras)
