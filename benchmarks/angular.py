"""Speed, memory and accuracy of angular embedding against scikit-learn's randomised PCA.

Everything is measured in one run, on the same arrays. Times are CPU seconds at one BLAS thread,
best of several, and wall seconds at all threads beside.

    python benchmarks/angular.py [ae] [tae] [median] [--quick] [--noise 0.1 0.5]

``ae``      the subspace: scikit-learn's randomised PCA with the same number of power steps and
            an oversampling of 10. The error of each is the largest angle to the exact answer
            of its own problem.
``tae``     the trimmed rows: normalised rows, all n x n cosines in blocks; and anchors that are
            drawn at random.
``median``  the centre: Weiszfeld's iteration with the step of Vardi and Zhang.
"""

import argparse
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from measure import peak_memory, seconds, wall
from robustpca import AngularEmbedding
from robustpca.engine.rows import ArrayRows
from robustpca.engine.spherical import RowDirections, explore, near_rows
from robustpca.engine.view import View
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median, remaining_force
from robustpca.solvers.angular import trim

RANK, ANGLE = 5, np.pi / 3


def frames(shape: tuple[int, int], noise: float) -> Any:
    """Rows like those of a video: a background, a few ways to change, noise, and bad frames.

    ``noise`` is the share of it in the squared length of a centred row. A tenth of the rows
    have a large piece replaced by something of their own.
    """
    n, d = shape
    rng = np.random.default_rng(0)
    background = rng.standard_normal(d, dtype=np.float32)
    basis = np.linalg.qr(rng.standard_normal((d, RANK), dtype=np.float32))[0]
    scales = np.linspace(2, 1, RANK)
    scores = rng.standard_normal((n, RANK)) * scales / np.linalg.norm(scales)
    deviation = np.float32(np.sqrt(noise / (1 - noise) / d))
    X = np.empty((n, d), np.float32)
    for at in range(0, n, 100):
        X[at : at + 100] = rng.standard_normal((len(X[at : at + 100]), d), dtype=np.float32)
        X[at : at + 100] *= deviation
        X[at : at + 100] += scores[at : at + 100].astype(np.float32) @ basis.T
        X[at : at + 100] += background / np.float32(np.sqrt(d))
    for i in rng.choice(n, n // 10, replace=False):
        start, length = rng.integers(d // 2), d // 4
        X[i, start : start + length] += rng.normal() * 8 / np.float32(np.sqrt(d))
    return X


def exact_subspace(X: Any, center: Any, normalised: bool, n_components: int) -> Any:
    """Leading right singular vectors of the centred rows, by the Gram matrix in double."""
    n, d = X.shape
    gram = np.zeros((n, n))
    for at in range(0, d, 4096):
        part = X[:, at : at + 4096].astype(np.float64) - center[at : at + 4096]
        gram += part @ part.T
    weights = 1 / np.sqrt(np.diag(gram)) if normalised else np.ones(n)
    gram *= np.outer(weights, weights)
    left = linalg.eigh(gram, subset_by_index=(n - n_components, n - 1))[1] * weights[:, None]
    out = np.empty((n_components, d))
    for at in range(0, d, 4096):
        part = X[:, at : at + 4096].astype(np.float64) - center[at : at + 4096]
        out[:, at : at + 4096] = left.T @ part
    return out


def ae(shapes: list[tuple[int, int]], noises: list[float]) -> None:
    """The subspace."""
    print(
        "\nAngularEmbedding(5, solver='randomized') against PCA(5, svd_solver='randomized'), "
        "float32\n          shape noise steps           centre    fit s    PCA s  ratio (bar 2) "
        "  2 threads    PCA  ratio     error     PCA's  memory (bar 0.1)"
    )
    for shape in shapes:
        for noise in noises:
            X = frames(shape, noise)
            truth: dict[str, Any] = {}
            for steps in (2, 4, 7):
                pca = PCA(
                    RANK,
                    svd_solver="randomized",
                    iterated_power=steps,
                    n_oversamples=10,
                    random_state=0,
                )
                run = partial(pca.fit, X)
                with threadpool_limits(1):
                    theirs, _ = seconds(run, 3)
                their_wall = wall(run)
                if "PCA" not in truth:
                    truth["PCA"] = exact_subspace(X, X.mean(axis=0, dtype=float), False, RANK)
                their_error = subspace_distance(pca.components_, truth["PCA"])
                for center in ("mean", "geometric_median"):
                    model = AngularEmbedding(
                        RANK, solver="randomized", power_iterations=steps, center=center
                    )
                    run = partial(model.fit, X)
                    with threadpool_limits(1):
                        ours, _ = seconds(run, 3)
                    our_wall = wall(run)
                    if center not in truth:
                        middle = model.mean_.astype(float)
                        if center == "geometric_median":
                            middle = geometric_median(ArrayRows(X), tol=1e-8)
                        truth[center] = exact_subspace(X, middle, True, RANK)
                    error = subspace_distance(model.components_, truth[center])
                    memory = peak_memory(run) / X.nbytes
                    print(
                        f"{shape[0]:>6} x {shape[1]:<6} {noise:5.2f} {steps:5d} {center:>16} "
                        f"{ours:8.2f} {theirs:8.2f} {theirs / ours:6.2f}          "
                        f"{our_wall:11.2f} {their_wall:6.2f} {their_wall / our_wall:6.2f}  "
                        f"{error:8.1e}  {their_error:8.1e}  {memory:6.3f}",
                        flush=True,
                    )


def full_count(X: Any, center: Any, max_angle: float) -> tuple[int, Any]:
    """Anchor and kept rows from all cosines, in blocks, as it is written down."""
    U = X - center
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    cosine = np.float32(np.cos(max_angle))
    counts, sums = np.empty(len(U), int), np.empty(len(U))
    for at in range(0, len(U), 512):
        cosines = np.abs(U[at : at + 512] @ U.T)
        far = cosines < cosine
        counts[at : at + 512] = far.sum(axis=1)
        sums[at : at + 512] = np.where(far, 0, cosines).sum(axis=1)
    tied = np.flatnonzero(counts == counts.min())
    anchor = int(tied[np.argmax(sums[tied])])
    return anchor, np.abs(U @ U[anchor]) >= cosine


def tae(shapes: list[tuple[int, int]], noises: list[float]) -> None:
    """The rows that are kept."""
    print(
        "\nCounting at the mean, max_angle = pi / 3, float32: view is what bounds need and the "
        "fit uses anyway\n          shape noise   view s  count s  full n^2 d s  ratio (bar 1.3, "
        "aim 4)  with view  counted  same rows | drawn s (bar 1)  tau over least  agree"
    )
    for shape in shapes:
        for noise in noises:
            X = frames(shape, noise)
            center = X.mean(axis=0, dtype=np.float64).astype(np.float32)

            def explored(X: Any = X, center: Any = center) -> View:
                directions = RowDirections(near_rows(ArrayRows(X)).centred(center))
                directions.initialise(15, np.random.default_rng(0))
                explore(directions, 15, 2)
                return directions.view

            with threadpool_limits(1):
                exploring, view = seconds(explored, 2)
                ours, found = seconds(partial(trim, view, ANGLE), 2)
                theirs, (anchor, kept) = seconds(partial(full_count, X, center, ANGLE), 1)
                drawn, taus, agree = [], [], []
                for seed in range(5):
                    rng = np.random.default_rng(seed)
                    anchors = rng.choice(len(X), 64, replace=False)
                    spent, sampled = seconds(partial(trim, view, ANGLE, anchors=anchors), 1)
                    drawn.append(spent)
                    taus.append(np.count_nonzero(~sampled.support))
                    agree.append(np.mean(sampled.support == found.support))
            least = np.count_nonzero(~found.support)
            same = bool((found.support == kept).all()) and found.anchor == anchor
            print(
                f"{shape[0]:>6} x {shape[1]:<6} {noise:5.2f} {exploring:8.2f} {ours:8.2f} "
                f"{theirs:13.2f} {theirs / ours:8.2f}                "
                f"{theirs / (ours + exploring):8.2f} {found.n_counted:8d}  {same!s:>9} | "
                f"{max(drawn):8.2f}         {max(taus) / least:10.3f}      {min(agree):.3f}",
                flush=True,
            )


def weiszfeld(X: Any, tol: float, max_iter: int = 500) -> tuple[Any, int]:
    """The textbook iteration from the mean, until the force per sample is below ``tol``."""
    point, done = X.mean(axis=0), 0
    while done < max_iter:
        Z = X - point
        lengths = np.linalg.norm(Z, axis=1)
        force = (1 / lengths) @ Z
        if np.linalg.norm(force) <= tol * len(X):
            break
        point, done = point + force / (1 / lengths).sum(), done + 1
    return point, done


def median(shapes: list[tuple[int, int]], noises: list[float]) -> None:
    """The centre."""
    print(
        "\nGeometric median, float32, force per sample at most 1e-6\n          shape noise    "
        "ours s  Weiszfeld s  (steps)  ratio     force   theirs"
    )
    for shape in shapes:
        for noise in noises:
            X = frames(shape, noise)
            rows = ArrayRows(X)
            with threadpool_limits(1):
                ours, point = seconds(partial(geometric_median, rows), 2)
                theirs, (other, steps) = seconds(partial(weiszfeld, X, 1e-6), 1)
                forces = [remaining_force(rows.precise(), p)[0] / len(X) for p in (point, other)]
            print(
                f"{shape[0]:>6} x {shape[1]:<6} {noise:5.2f} {ours:9.2f} {theirs:12.2f} "
                f"{steps:8d} {theirs / ours:6.1f}  {forces[0]:8.1e} {forces[1]:8.1e}",
                flush=True,
            )


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"ae": ae, "tae": tae, "median": median}
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--quick", action="store_true", help="smaller arrays")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--shape", choices=["wide", "tall"], default=None, help="one shape only")
    arguments = parser.parse_args()
    shapes = {"wide": (1675, 110592), "tall": (3584, 25344)}
    if arguments.quick:
        shapes = {"wide": (400, 20000), "tall": (1200, 6000)}
    chosen = [shapes[arguments.shape]] if arguments.shape else list(shapes.values())
    for name in arguments.parts or parts:
        parts[name](chosen, arguments.noise)


if __name__ == "__main__":
    main()
