"""Choice of weights: a decomposition for each of several values, compared on hidden entries.

Some of the entries are hidden from the fits, as if they were missing; the error of the low-rank
part at these entries is the measure. It leaves out the largest errors, since hidden entries may
be wrong.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from robustpca.engine.linalg import Array
from robustpca.models.lowrank import FRPCAG, RPCA
from robustpca.models.lowrank_base import LowRankModel

__all__ = ["Path", "smoothness_path", "sparsity_path"]


@dataclass(frozen=True)
class Path:
    """Results for several values of a parameter; prints as a table.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters that took the values.
    values : ndarray
        The values.
    rank, density : ndarray
        Rank of the low-rank part and share of entries in the sparse part, for each value.
    error : ndarray
        Mean distance of the low-rank part to hidden entries, the worst fifth left out, over
        that of the median of the data.
    uncertainty : ndarray
        Standard error of each ``error``, from the number of hidden entries.
    n_iter : ndarray
        Passes of each fit, which starts where the previous one ended.
    """

    parameters: tuple[str, ...]
    values: Array
    rank: Array
    density: Array
    error: Array
    uncertainty: Array
    n_iter: Array

    @property
    def best(self) -> float:
        """The value of the lowest rank whose error is as good as the smallest.

        That is the case within one standard error of the smallest. Of several such values it
        is the one with the fewest sparse entries.
        """
        return float(self.values[self._best])

    @property
    def _best(self) -> int:
        least = int(np.argmin(self.error))
        good = self.error <= self.error[least] + self.uncertainty[least] + 1e-4
        return int(np.lexsort((self.error, self.density, self.rank, ~good))[0])

    def __str__(self) -> str:
        name = " and ".join(self.parameters)
        width = max(12, len(name))
        lines = [f"{name:>{width}}  rank  density  error on hidden entries"]
        for i, value in enumerate(self.values):
            mark = "  <- best" if i == self._best else ""
            lines.append(
                f"{value:{width}.4g}  {self.rank[i]:4d}  {self.density[i]:7.3f}  "
                f"{self.error[i]:.4f}{mark}"
            )
        return "\n".join(lines)


def sparsity_path(
    X: Any,
    sparsity: Iterable[float] | None = None,
    *,
    estimator: LowRankModel | None = None,
    hidden: float = 0.05,
    random_state: Any = 0,
) -> Path:
    """Fit with several weights of the sparse part, each time starting from the last result.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data; NaN where an entry is missing.
    sparsity : iterable of float, default=None
        Weights to try; None for the automatic one times powers of two from a quarter to four.
    estimator : RPCA or RPCAG, default=None
        Whose ``sparsity`` to vary; None for `RPCA` without noise at a tolerance of 1e-4.
    hidden : float, default=0.05
        Share of the entries to hide.
    random_state : int, RandomState instance or None, default=0
        Determines the hidden entries.

    Returns
    -------
    Path
        Rank, density and error for each value.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import sparsity_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 50))
    >>> X[rng.random(X.shape) < 0.05] += 20
    >>> path = sparsity_path(X)
    >>> int(path.rank[np.argmin(path.error)])
    3
    """
    model = RPCA(noise=0.0, tol=1e-4) if estimator is None else estimator
    if "sparsity" not in model.get_params():
        raise ValueError(
            f"{type(model).__name__} has no sparsity to vary: pass estimator=RPCA() or RPCAG(), "
            "or use smoothness_path."
        )
    X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    if sparsity is None:
        sparsity = _automatic_sparsity(X) * 2.0 ** np.arange(-2, 2.5, 0.5)
    return _path(model, X, ("sparsity",), sparsity, hidden, random_state)


def smoothness_path(
    X: Any,
    smoothness: Iterable[float] | None = None,
    *,
    estimator: LowRankModel | None = None,
    hidden: float = 0.05,
    random_state: Any = 0,
) -> Path:
    """Fit with several weights of the graphs, each time starting from the last result.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data; NaN where an entry is missing.
    smoothness : iterable of float, default=None
        Weights to try; None for powers of two times the weight of the loss, from 1/32 to 64.
    estimator : FRPCAG or RPCAG, default=None
        Whose parameters ending in ``smoothness`` to vary together; None for `FRPCAG`.
    hidden : float, default=0.05
        Share of the entries to hide.
    random_state : int, RandomState instance or None, default=0
        Determines the hidden entries.

    Returns
    -------
    Path
        Rank, density and error for each value.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import smoothness_path
    >>> path = smoothness_path(load_digits().data[:200], [0.25, 1.0, 4.0])
    >>> bool((path.rank[1:] <= path.rank[:-1]).all())
    True
    """
    model = FRPCAG() if estimator is None else estimator
    names = tuple(name for name in model.get_params() if name.endswith("smoothness"))
    if not names:
        raise ValueError(
            f"{type(model).__name__} has no smoothness to vary: pass estimator=FRPCAG() or "
            "RPCAG(), or use sparsity_path."
        )
    X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    if smoothness is None:
        smoothness = _loss_weight(model, X) * 2.0 ** np.arange(-5, 7)
    return _path(model, X, names, smoothness, hidden, random_state)


def _automatic_sparsity(X: Array) -> float:
    share = np.count_nonzero(~np.isnan(X)) / X.size
    return float(1 / np.sqrt(max(X.shape) * max(share, 1e-300)))


def _loss_weight(model: LowRankModel, X: Array) -> float:
    """Weight of the loss beside which a graph has to be seen: that of RPCAG is small."""
    sparsity = getattr(model, "sparsity", 1.0)
    return _automatic_sparsity(X) if sparsity == "auto" else float(sparsity)


def _path(
    model: LowRankModel,
    X: Array,
    names: tuple[str, ...],
    values: Iterable[float],
    hidden: float,
    random_state: Any,
) -> Path:
    values = np.array(values if np.isscalar(values) else list(values), dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{names[0]}={values.tolist()} must be a list of values to try.")
    chosen = _hidden_entries(X, hidden, check_random_state(random_state))
    training = X.copy()
    training[chosen] = np.nan
    truth = X[chosen]
    unit = _trimmed_mean(truth - np.nanmedian(X))[0] or 1.0
    rows: list[tuple[Any, ...]] = []
    fitted = clone(model).set_params(warm_start=True)
    with warnings.catch_warnings():
        # The warnings about single values say what the path shows.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for value in values:
            fitted.set_params(**dict.fromkeys(names, float(value))).fit(training)
            error, spread = _trimmed_mean(fitted.low_rank_[chosen] - truth)
            found = (fitted.rank_, fitted.density_, error / unit, spread / unit, fitted.n_iter_)
            rows.append(found)
    return Path(names, values, *(np.array(column) for column in zip(*rows, strict=True)))


def _trimmed_mean(errors: Array) -> tuple[float, float]:
    """Mean size without the largest fifth, among which are the wrong entries; its deviation."""
    sizes = np.sort(np.abs(errors))
    count = max(1, int(0.8 * len(sizes)))
    # A trimmed mean varies like the mean of sizes that are clipped at the same quantile.
    clipped = np.minimum(sizes, sizes[count - 1])
    return float(sizes[:count].mean()), float(clipped.std() / (count / np.sqrt(len(sizes))))


def _hidden_entries(X: Array, share: float, rng: Any) -> tuple[Array, Array]:
    """Observed entries to hide, such that no row and no column loses all of its entries."""
    if not 0 < share < 1:
        raise ValueError(f"hidden={share} must be a share of the entries between 0 and 1.")
    rows, columns = np.nonzero(~np.isnan(X))
    order = rng.permutation(len(rows))[: max(1, int(share * len(rows)))]
    in_row, in_column = np.bincount(rows), np.bincount(columns)
    hidden = []
    for entry in order:
        i, j = rows[entry], columns[entry]
        if in_row[i] > 1 and in_column[j] > 1:
            in_row[i] -= 1
            in_column[j] -= 1
            hidden.append(entry)
    if not hidden:
        raise ValueError(
            f"No entry of X, of shape {X.shape}, can be hidden without emptying its row or column."
        )
    return rows[hidden], columns[hidden]
