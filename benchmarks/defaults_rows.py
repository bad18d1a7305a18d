"""Outliers by default: flags of clean rows, ranking of outlier sets, components by a search.

python benchmarks/defaults_rows.py [ranking] [fresh] [chosen_ranks] [false_positives]
    [real_rows] [--quick]

Sets come with scikit-learn or are made here; those of the folder ROBUSTPCA_DATA are added if they
are there. All detectors see the same standardised rows and no labels.
"""

import argparse
import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
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
from robustpca.models.flags import joint

KINDS = ("Gaussian", "t(5)", "chi-square", "lognormal")
Sets = Iterator[tuple[str, str, np.ndarray, np.ndarray]]


def clean_rows(
    kind: str, structure: str, seed: int, n: int, d: int, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and as many new rows as a share can be told from."""
    rng = np.random.default_rng(seed)
    shape = (n + 300, d + rank)
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


def false_positives(n_seeds: int, chosen: str | None = None) -> None:
    """Shares of clean rows that every method flags: training rows, and new ones."""
    print("Clean rows that are flagged, %: medians of training and new rows (worst of new ones) of")
    print(f"{n_seeds} seeds; the first four columns are correlated rows, the others low rank\n")
    for (n, d), rank in {(300, 10): 3, (1000, 20): 4, (50, 200): 5}.items():
        if chosen not in (None, f"{n}x{d}"):
            continue
        cases = list(product(("correlated", "low rank"), KINDS))
        title = f"{n} x {d}, {rank} components"
        print(f"{title:24}" + "".join(f"{kind:>15}" for _, kind in cases))
        for name in all_methods():
            cells = []
            for structure, kind in cases:
                shares = []
                for seed in range(n_seeds):
                    X, new = clean_rows(kind, structure, seed, n, d, rank)
                    model = made(name, rank, X.shape).fit(X)
                    shares.append([100 * np.mean(model.predict(A) == -1) for A in (X, new)])
                old, fresh = np.median(shares, axis=0)
                cells.append(f"{old:.1f} {fresh:.1f} ({np.max(shares, axis=0)[1]:.0f})")
            print(f"{name:24}" + "".join(f"{cell:>15}" for cell in cells), flush=True)
        print()


def real_rows(n_seeds: int) -> None:
    """Rows of real data without planted outliers that `PCAAN` flags: the example of README first.

    Seeds draw halves of the rows to train with; the others are new.
    """
    print("Rows of real data that PCAAN(n_components='auto') flags, %: all as training rows, and")
    print(f"new rows after a fit to a half of them, median (worst) of {n_seeds} seeds\n")
    for name, load_rows in {"digits": load_digits, "breast cancer": load_breast_cancer}.items():
        X = load_rows().data
        flags = PCAAN(n_components="auto").fit(X).predict(X) == -1
        shares = []
        for seed in range(n_seeds):
            order = np.random.default_rng(seed).permutation(len(X))
            known, new = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
            found = PCAAN(n_components="auto").fit(known).predict(new)
            shares.append(100 * np.mean(found == -1))
        told = f"{flags.sum()} of {len(X)} ({100 * flags.mean():.1f})"
        print(f"{name:16}{told:>20}{np.median(shares):8.1f} ({max(shares):.1f})", flush=True)
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


def fresh_sets(seed: int) -> Sets:
    """Further sets of the data folder, which no constant of the library was chosen by."""
    rng = np.random.default_rng(1000 + seed)
    try:
        sets = {
            "mnist": (load("mnist", size=(14, 14)), (1, 4, 7)),
            "usps, other digits": (load("usps"), (1, 5, 6)),
            "coil20": (load("coil20"), (0, 5, 9)),
            "pie": (load("pie"), (0, 10)),
        }
        features, network = load("mfeat"), load("kddcup99")
    except FileNotFoundError:
        print("The data folder is not there: sets that it holds are left out.")
        return
    for family, (data, labels) in sets.items():
        for label in labels:
            yield family, str(label), *against(data.X, data.y, label, rng)
    stop = 0
    views = [features.extras[f"view_{key}"] for key in ("names", "sizes")]
    for view, size in zip(*views, strict=True):
        start, stop = stop, stop + int(size)
        for label in (1, 5, 7) if view != "pix" else ():
            yield (
                f"mfeat, {view}",
                str(label),
                *against(features.X[:, start:stop], features.y, label, rng),
            )
    kinds = [str(word) for word in network.extras["label_names"]]
    normal = next(i for i, word in enumerate(kinds) if "normal" in word)
    for name in ("smurf", "neptune", "satan", "portsweep"):
        attack = next(i for i, word in enumerate(kinds) if name in word)
        rows = np.isin(network.y, (normal, attack))
        yield (
            "kddcup99, attacks",
            name,
            *against(network.X[rows], network.y[rows], normal, rng, 0.05),
        )


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


def few_rows(Z: np.ndarray) -> bool:
    """Whether rows are too few for a covariance of all columns."""
    return len(Z) < 2 * Z.shape[1]


def detect(model: PCAAN, Z: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """How outlying the rows are, by each detector.

    *two distances* leaves out the distance to the centre. The envelope has no covariance to invert
    where rows are few: it then sees the scores of a plain PCA.
    """
    plain, found = PCA(0.9).fit(Z), model._flags
    reduced = plain.transform(Z) if few_rows(Z) else Z
    envelope = EllipticEnvelope(random_state=seed).fit(reduced)
    return {
        "PCAAN()": -model.score_samples(Z),
        "two distances": joint(found.scales[:2], model._distances(Z)[:2]),
        "isolation forest": -IsolationForest(random_state=seed).fit(Z).score_samples(Z),
        "elliptic envelope": -envelope.score_samples(reduced),
        "LOF": -LocalOutlierFactor().fit(Z).negative_outlier_factor_,
        "PCA(0.9)": np.sum((Z - plain.inverse_transform(plain.transform(Z))) ** 2, axis=1),
    }


def ranking(n_seeds: int, title: str, sets: Callable[[int], Sets]) -> None:
    """AUC of the detectors, and flags of the default PCAAN, by families of sets."""
    areas: Any = defaultdict(lambda: defaultdict(list))
    flagged: Any = defaultdict(lambda: defaultdict(list))
    for seed in range(n_seeds):
        for family, _, X, is_outlier in sets(seed):
            Z = StandardScaler().fit_transform(X)
            model = PCAAN().fit(Z)
            family += "*" * few_rows(Z)
            for name, outlying in detect(model, Z, seed).items():
                # The envelope of rows with many equal values has a singular covariance, and says
                # nothing of some: they are then neither ahead nor behind.
                outlying = np.nan_to_num(outlying, nan=float(np.nanmedian(outlying)))
                areas[family][name].append(roc_auc_score(is_outlier, outlying))
            for rule, flags in {
                "now": model.predict(Z) == -1,
                "by chi-squares": previous_flags(model, Z),
            }.items():
                flagged[family][f"inliers {rule}"].append(100 * np.mean(flags[~is_outlier]))
                flagged[family][f"F1 {rule}"].append(f1_score(is_outlier, flags))
    if areas:
        print(f"{title}: AUC of standardised rows, mean of {n_seeds} seeds; * envelope of scores\n")
        _table(areas)
        print("Inliers that PCAAN() flags, %, and F1, by its cutoffs and by chi-squares\n")
        _table(flagged)


def _table(values: dict[str, dict[str, list[float]]]) -> None:
    names = list(next(iter(values.values())))
    print(f"{'':24}" + "".join(f"{name:>23}" for name in names))
    means = {
        family: [np.mean(columns[name]) for name in names] for family, columns in values.items()
    }
    groups = {
        "mean": list(means),
        "mean, not planted": [family for family in means if "planted" not in family],
        "mean, not planted nor *": [
            family for family in means if not ("planted" in family or family.endswith("*"))
        ],
    }
    rows = {title: np.mean([means[family] for family in group], axis=0)
            for title, group in groups.items()}  # fmt: skip
    for title, line in {**means, **rows}.items():
        print(f"{title:24}" + "".join(f"{number:23.3f}" for number in line))
    print(flush=True)


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
    parser.add_argument("tables", nargs="*", help="some of the tables; by default all")
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shape", help="only clean rows of this shape: 300x10, 1000x20 or 50x200")
    given = parser.parse_args()
    n_seeds = 2 if given.quick else given.seeds
    warnings.simplefilter("ignore")
    shaped = partial(false_positives, chosen=given.shape)
    tables = {
        "ranking": partial(ranking, title="Sets that rules were chosen by", sets=outlier_sets),
        "fresh": partial(ranking, title="Fresh sets", sets=fresh_sets),
        "chosen_ranks": chosen_ranks,
        "false_positives": shaped,
        "real_rows": real_rows,
    }
    for name, table in tables.items():
        if not given.tables or name in given.tables:
            table(n_seeds)
    if not given.tables:
        cost()


if __name__ == "__main__":
    main()
