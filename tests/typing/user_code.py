"""Code as users write it. It is never run: `make lint` and `make types` read it, strictly."""

import numpy as np
import numpy.typing as npt

import robustpca
from robustpca import EPCA, FRPCAG, PCAAN, RPCA, RPCAG, Suggestion, progress_bar, suggest
from robustpca.metrics import subspace_distance

Matrix = npt.NDArray[np.float64]


def codes_of(X: Matrix) -> Matrix:
    model: PCAAN = PCAAN(n_components=3, callback=progress_bar()).fit(X)
    flags: Matrix = model.predict(X)
    return model.transform(X[flags == 1])


def cleaned(X: Matrix) -> Matrix:
    model = RPCA(flag_rate=0.001).fit(X)
    low_rank, sparse_part = model.decompose(X)
    flags: Matrix = model.entry_flags_
    return np.where(flags, low_rank, X - 0 * sparse_part)


def advice(X: Matrix) -> str:
    found: Suggestion = suggest(X)
    return found.reason + ", ".join(found.troubles)


def distance_of_methods(X: Matrix) -> float:
    robust, graph = EPCA(2, sigma=1.0).fit(X), FRPCAG().fit(X)
    return float(subspace_distance(robust.components_, graph.components_[:2]))


def smooth(X: Matrix) -> tuple[float, int]:
    model = RPCAG().fit(X)
    return model.smoothness_, model.n_iter_


def found_in(path: str) -> list[str]:
    rows, cells = robustpca.find_rows(path), robustpca.clean_entries(path)
    weights: Matrix = PCAAN().fit(cells.X).sample_weights_
    told = [f"{one.column}: {one.given}" for i in rows.order for one in rows.reasons[int(i)]]
    return [rows.verdict, cells.verdict, robustpca.check(path).verdict, *told, str(weights.sum())]


def saved(X: Matrix, path: str) -> float:
    RPCA().fit(X).save(path)
    model = robustpca.load(path)
    assert isinstance(model, RPCA)
    return model.sparsity_ * model.rank_
