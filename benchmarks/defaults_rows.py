"""Outliers by default: flags of clean rows, ranking of outlier sets, components by a search.

python benchmarks/defaults_rows.py [--quick]

Sets come with scikit-learn or are made here; those of the folder ROBUSTPCA_DATA are added if they
are there. All detectors see the same standardised rows and no labels.
"""

import argparse
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from measure import seconds
from robustpca import EPCA, PCAAN, AngularEmbedding
from robustpca.datasets import load, reset_entries
from robustpca.datasets.synthetic import planted_subspace
from robustpca.models import all_methods

KINDS = ("Gaussian", "t(5)", "chi-square", "lognormal")
Sets = Iterator[tuple[str, str, np.ndarray, np.ndarray]]


def clean_rows(
    kind: str, structure: str, seed: int, n: int, d: int, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and as many new rows as a share can be told from."""
    rng = np.random.default_rng(seed)
    shape = (n + 1000, d + rank)
    values = {
        "Gaussian": lambda: rng.normal(size=shape),
        "t(5)": lambda: rng.standard_t(5, size=shape),
        "chi-square": lambda: rng.chisquare(4, size=shape),
        "lognormal": lambda: rng.lognormal(0, 0.5, size=shape),
    }[kind]()
    if structure == "correlated":
        places = np.arange(d)
        mixing = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(places, places)))
        X = values[:, :d] @ mixing.T
    else:
        X = 2 * values[:, :rank] @ rng.normal(size=(rank, d)) + values[:, rank:]
    return X[:n], X[n:]


def made(name: str, n_components: int, shape: tuple[int, int]) -> Any:
    """A method with that many components; image methods see images of two columns."""
    method = all_methods()[name]
    if "image_shape" in inspect.signature(method).parameters:
        return method((n_components, 1), image_shape=(shape[1] // 2, 2))
    return method(n_components)


def false_positives(n_seeds: int) -> None:
    """Shares of clean new rows that every method flags."""
    settings = {
        "correlated, 300 x 20": ("correlated", 300, 20, 4, KINDS),
        "low rank, 300 x 30": ("low rank", 300, 30, 5, KINDS),
        "low rank, 50 x 200": ("low rank", 50, 200, 5, ("Gaussian",)),
    }
    print(f"Clean new rows that are flagged, %: median (worst) of {n_seeds} seeds\n")
    for title, (structure, n, d, rank, kinds) in settings.items():
        print(f"{title:22}" + "".join(f"{kind:>16}" for kind in kinds))
        for name in all_methods():
            cells = []
            for kind in kinds:
                shares = []
                for seed in range(n_seeds):
                    X, new = clean_rows(kind, structure, seed, n, d, rank)
                    flags = made(name, rank, X.shape).fit(X).predict(new)
                    shares.append(100 * np.mean(flags == -1))
                cells.append(f"{np.median(shares):.1f} ({max(shares):.1f})")
            print(f"{name:22}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
        print()


def against(
    X: np.ndarray, y: np.ndarray, label: int, rng: np.random.Generator, share: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one class, and among them a share of others."""
    inliers, others = np.flatnonzero(y == label), np.flatnonzero(y != label)
    inliers = rng.choice(inliers, min(len(inliers), 1000), replace=False)
    drawn = rng.choice(others, max(3, round(share / (1 - share) * len(inliers))), replace=False)
    rows = np.concatenate([inliers, drawn])
    return np.asarray(X[rows], dtype=np.float64), np.arange(len(rows)) >= len(inliers)


def outlier_sets(seed: int) -> Sets:
    """Family, name, rows and which of them are outliers."""
    rng = np.random.default_rng(seed)
    cancer = load_breast_cancer()
    yield "breast cancer, all", "all", cancer.data, cancer.target == 0
    yield "breast cancer, 10 %", "few", *against(cancer.data, cancer.target, 1, rng)
    for family, source in {"wine": load_wine, "iris": load_iris, "digits": load_digits}.items():
        found = source()
        for label in np.unique(found.target):
            yield family, str(label), *against(found.data, found.target, label, rng)
    for clustered in (False, True):
        X, _, is_outlier = planted_subspace(
            rng, 500, 30, 4, n_outliers=75, noise=0.3, clustered=clustered, distance=4.0
        )
        yield f"planted, {'a cloud' if clustered else 'scattered'}", "", X, is_outlier
    X, mask = reset_entries(load_digits().data[:600], 0.2, 0.2, shared=False, random_state=seed)
    yield "digits, 20 % corrupt", "", X, mask.any(axis=1)
    for name, labels in {"usps": (0, 3, 8), "mfeat": (0, 3, 8), "kddcup99": (0,)}.items():
        try:
            data = load(name)
        except FileNotFoundError:
            continue
        for label in labels:
            chosen = label
            if name == "kddcup99":
                chosen = next(
                    i for i, word in enumerate(data.extras["label_names"]) if "normal" in str(word)
                )
            yield name, str(label), *against(data.X, data.y, chosen, rng)


def previous_flags(model: Any, Z: np.ndarray) -> np.ndarray:
    """Flags by the cutoffs that were used before: Wilson-Hilferty, and chi-square of the scores."""
    distances = model.orthogonal_distances(Z) ** (2 / 3)
    middle = np.median(distances)
    spread = np.median(np.abs(distances - middle)) / stats.norm.ppf(0.75)
    variances = model.explained_variance_
    codes = model.transform(Z)[:, variances > 0]
    scores = np.sum(codes**2 / variances[variances > 0], axis=1)
    limit = stats.chi2.ppf(0.975, len(variances))
    return (distances > middle + stats.norm.ppf(0.975) * spread) | (scores > limit)


def detect(Z: np.ndarray, seed: int) -> dict[str, np.ndarray | None]:
    """How outlying the rows are, by each detector; None for one that takes too long."""
    plain = PCA(0.9).fit(Z)
    return {
        "PCAAN()": -PCAAN().fit(Z).score_samples(Z),
        "PCAAN(None)": -PCAAN(None).fit(Z).score_samples(Z),
        "isolation forest": -IsolationForest(random_state=seed).fit(Z).score_samples(Z),
        "elliptic envelope": -EllipticEnvelope(random_state=seed).fit(Z).score_samples(Z)
        if Z.shape[1] <= 100
        else None,
        "LOF": -LocalOutlierFactor().fit(Z).negative_outlier_factor_,
        "PCA(0.9)": np.sum((Z - plain.inverse_transform(plain.transform(Z))) ** 2, axis=1),
    }


def ranking(n_seeds: int) -> None:
    """AUC of the detectors, and flags of the default PCAAN, by families of sets."""
    areas: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    flagged: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(n_seeds):
        for family, _, X, is_outlier in outlier_sets(seed):
            Z = StandardScaler().fit_transform(X)
            for name, outlying in detect(Z, seed).items():
                area = np.nan if outlying is None else roc_auc_score(is_outlier, outlying)
                areas[family][name].append(area)
            model = PCAAN().fit(Z)
            for rule, flags in {
                "now": model.predict(Z) == -1,
                "before": previous_flags(model, Z),
            }.items():
                flagged[family][f"inliers {rule}"].append(100 * np.mean(flags[~is_outlier]))
                flagged[family][f"F1 {rule}"].append(f1_score(is_outlier, flags))
    names = list(next(iter(areas.values())))
    print(f"AUC of standardised outlier sets, mean of {n_seeds} seeds; nan is not run\n")
    _table(areas, names)
    print("Inliers that PCAAN() flags, %, and F1, by its cutoffs and by those of before\n")
    _table(flagged, ["inliers now", "inliers before", "F1 now", "F1 before"])


def _table(values: dict[str, dict[str, list[float]]], names: list[str]) -> None:
    print(f"{'':22}" + "".join(f"{name:>19}" for name in names))
    for family, columns in values.items():
        print(f"{family:22}" + "".join(f"{np.mean(columns[name]):19.3f}" for name in names))
    means = [np.nanmean([np.mean(columns[name]) for columns in values.values()]) for name in names]
    print(f"{'mean':22}" + "".join(f"{mean:19.3f}" for mean in means) + "\n", flush=True)


def chosen_ranks(n_seeds: int) -> None:
    """How often a grid search by `score` finds rank 3 in 300 x 12 with 10 % outliers."""
    print("Components that GridSearchCV chooses from 1 to 6; the rank is 3\n")
    for model in (PCAAN(), EPCA(), AngularEmbedding()):
        chosen = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12))
            X += rng.normal(0, 0.3, X.shape)
            X[rng.choice(300, 30, replace=False)] = rng.normal(0, 10, (30, 12))
            search = GridSearchCV(model, {"n_components": range(1, 7)}).fit(X)
            chosen.append(search.best_params_["n_components"])
        right = chosen.count(3)
        print(f"{type(model).__name__:22} right {right} of {n_seeds}: {sorted(set(chosen))}")
    print()


def cost() -> None:
    """CPU seconds of a fit, and of a plain PCA beside it."""
    X = np.random.default_rng(0).normal(size=(20_000, 100)) * np.linspace(3, 1, 100)
    ours = seconds(lambda: EPCA(10).fit(X), 2)[0]
    plain = seconds(lambda: PCA(10, svd_solver="covariance_eigh").fit(X), 2)[0]
    model = EPCA(10).fit(X)
    flags = seconds(lambda: model.predict(X), 2)[0]
    print(f"EPCA(10) on 20000 x 100: fit {ours:.2f} s, predict {flags:.2f} s, PCA {plain:.2f} s")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds instead of ten")
    n_seeds = 2 if parser.parse_args().quick else 10
    warnings.simplefilter("ignore")
    ranking(n_seeds)
    chosen_ranks(n_seeds)
    false_positives(n_seeds)
    cost()


if __name__ == "__main__":
    main()
