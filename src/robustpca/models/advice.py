"""`suggest`: which troubles data have, and which estimator to use for them."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.utils import check_array

from robustpca.engine.linalg import Array
from robustpca.engine.rows import ArrayRows
from robustpca.engine.threads import one_openmp_thread
from robustpca.models.estimator import naming_columns
from robustpca.models.lowrank import RPCA, RPCAG
from robustpca.models.lowrank_graph import FRPCAG
from robustpca.models.precision import checked_size
from robustpca.models.reweighted import PCAAN
from robustpca.parts.ranks import rank_of
from robustpca.parts.units import column_units, spreads, unit_differences

__all__ = ["Suggestion", "suggest"]

# At most so many rows and columns are looked at; others are like them.
SAMPLED_ROWS, SAMPLED_COLUMNS = 1000, 300
# An entry is grossly wrong if its residual is this many times the noise of its column, and this
# many times the spread of its column; data have the trouble if more than this share of them is.
GROSS_NOISE, GROSS_SPREAD, GROSS_SHARE = 8.0, 4.0, 0.003
# A row whose entries are flagged at this share is wrong as a whole.
WHOLE_ROW = 0.3
# A row is far if it scores below this, -1 being the cutoff; a table has the trouble if more than
# this share of its rows is.
FAR_SCORE, FAR_SHARE = -2.0, 0.005
# Bad rows form a group if they are this many times as far from the others as from each other.
GROUPED = 1.5
# Rows form groups if the silhouette of the best division is this high, is higher by this much than
# that of one Gaussian cloud, and no group holds more than this share: others are bad rows.
SILHOUETTE, GAIN, LARGEST_GROUP = 0.4, 0.1, 0.6
GROUPED_ROWS, MOST_GROUPS = 500, 8
# Share of the variance from which noise is called heavy.
HEAVY = 0.5
# RPCAG takes memory and time of several copies of the data; beyond this FRPCAG is suggested.
MANY_ENTRIES = 20_000_000


@dataclass(frozen=True)
class Suggestion:
    """What `suggest` found; printed, it is a text.

    Attributes
    ----------
    estimator : estimator
        Ready to be fitted.
    troubles : dict of str to str
        Each trouble by name ('missing entries', 'bad entries', 'bad rows', 'a group of bad rows',
        'groups', 'heavy noise', 'different units'), with a sentence that says how much of it.
    reason : str
        Why this estimator.
    """

    estimator: BaseEstimator
    troubles: dict[str, str]
    reason: str

    def __str__(self) -> str:
        found = [f"- {name}: {sentence}" for name, sentence in self.troubles.items()]
        lines = ["What the data have:", *(found or ["- no trouble that plain PCA would mind"])]
        code = " ".join(repr(self.estimator).split())
        return "\n".join([*lines, "", f"Use {code}", self.reason])


def suggest(X: Any) -> Suggestion:
    """Say which troubles data have, and which estimator to use for them.

    A sample of the rows and columns is decomposed; entries, rows and groups are judged from what
    remains.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data, NaN where an entry is missing; a data frame of numbers will do.

    Returns
    -------
    Suggestion
        The troubles, a ready estimator, and the reason for it.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import suggest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 10)) + 0.1 * rng.normal(size=(200, 10))
    >>> X[3, 5], X[8, 1], X[60:70, 3], X[71:81, 8] = 40.0, -30.0, np.nan, 50.0
    >>> found = suggest(X)
    >>> found.estimator
    RPCA()
    >>> list(found.troubles)
    ['missing entries', 'bad entries']
    """
    with naming_columns(X):
        X = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", ensure_min_samples=5
        )
    checked_size(X, "float64")
    sample = _sample(X)
    differ = unit_differences(X)
    different = differ.medians or differ.spreads
    missing = float(np.isnan(X).mean())
    with warnings.catch_warnings():
        # Rough fits to a sample: what they warn of is no concern of the user.
        warnings.simplefilter("ignore")
        model = RPCA(tol=1e-4, max_iter=200).fit(sample)
        found = _Found.of(sample, model)
    troubles = {}
    if missing:
        troubles["missing entries"] = f"{missing:.2%} of them."
    entries = found.gross > GROSS_SHARE
    if entries:
        troubles["bad entries"] = f"about {found.gross:.1%} of the entries are far off."
    if found.bad > FAR_SHARE:
        troubles["bad rows"] = f"about {found.bad:.1%} of the rows are far from all others."
        if found.together:
            troubles["a group of bad rows"] = (
                "they lie close together, which misleads methods that start from plain PCA."
            )
    if found.n_groups:
        troubles["groups"] = f"the rows form about {found.n_groups} groups."
    if found.noise > HEAVY:
        troubles["heavy noise"] = f"{found.noise:.0%} of the variance is in no few directions."
    if different:
        troubles["different units"] = "offsets or scales of the columns differ much."
    estimator, reason = _choice(X, troubles, found.rank, different)
    return Suggestion(estimator, troubles, reason)


@dataclass(frozen=True)
class _Found:
    """Shares of gross entries, of bad rows and of noise; groups, and the rank."""

    gross: float
    bad: float
    together: bool
    n_groups: int
    noise: float
    rank: int

    @classmethod
    def of(cls, X: Array, model: RPCA) -> "_Found":
        """Judge entries by a decomposition, and rows after gross entries are replaced."""
        seen = ~np.isnan(X)
        errors = np.abs(np.where(seen, X - model.low_rank_, 0.0))
        spread = spreads(X)
        limit = np.maximum(GROSS_NOISE * model.column_noise_, GROSS_SPREAD * spread)
        gross = errors > np.maximum(limit, 1e-9 * np.abs(X[seen]).max())
        # What a constant column differs by is the tolerance of the fit.
        gross &= spread > 0
        whole = gross.sum(axis=1) > WHOLE_ROW * seen.sum(axis=1)
        if whole.mean() > 0.5:
            # Most rows cannot be unusual: these are errors of a decomposition far from zero.
            gross[:], whole[:] = False, False
        wrong = ~seen | (gross & ~whole[:, None])
        units = column_units(X, "median", "auto")
        repaired = units.remove(np.where(wrong, model.low_rank_, X))
        rank = rank_of(ArrayRows(repaired))
        usual = np.flatnonzero(~whole)
        with one_openmp_thread():
            labels, n_groups = _groups(repaired[usual], rank)
        within = repaired.copy()
        for label in range(n_groups):
            members = usual[labels == label]
            within[members] -= np.median(within[members], axis=0)
        inner = rank_of(ArrayRows(within[usual])) if n_groups else rank
        bad = whole | (PCAAN(inner).fit(within[usual]).score_samples(within) < FAR_SCORE)
        share = float(gross[~bad].sum() / max(seen[~bad].sum(), 1))
        clean = repaired[~bad] - repaired[~bad].mean(axis=0)
        values = np.linalg.svd(clean, compute_uv=False) ** 2
        outside = float(values[rank:].sum() / max(values.sum(), np.finfo(float).tiny))
        together = _together(repaired[bad], repaired[~bad])
        return cls(share, float(bad.mean()), together, n_groups, outside, rank)


def _choice(
    X: Array, troubles: dict[str, str], rank: int, different: bool
) -> tuple[BaseEstimator, str]:
    """The estimator for these troubles, and why."""
    entries = "bad entries" in troubles or "missing entries" in troubles
    rows = "bad rows" in troubles
    if entries and "groups" in troubles:
        model = RPCAG() if X.size < MANY_ENTRIES else FRPCAG()
        return model, (
            f"{type(model).__name__} repairs entries and uses that rows of a group are alike: see "
            "low_rank_ and entry_flags_."
        )
    if entries:
        return for_entries(rows)
    model = PCAAN(rank) if rows else PCA(rank)
    reason = (
        "PCAAN gives rows no weight that lie far from the others, in a group or not: see predict "
        "and weights_."
        if rows
        else "Plain PCA will do; the robust methods would give nearly the same."
    )
    if different:
        model = make_pipeline(RobustScaler(), model)
        reason += " The columns are brought to one scale first."
    return model, reason


def for_entries(rows: bool) -> tuple[BaseEstimator, str]:
    """The estimator for bad and missing entries, and why; there may be bad rows besides."""
    reason = "RPCA repairs single entries and fills in missing ones: see low_rank_ and "
    reason += "entry_flags_."
    if rows:
        reason += " For the bad rows see find_rows(clean_entries(X).X)."
    return RPCA(), reason


def _sample(X: Array) -> Array:
    """Some of the rows and columns, without those that hold no value."""
    rng = np.random.default_rng(0)
    for axis, most in enumerate((SAMPLED_ROWS, SAMPLED_COLUMNS)):
        if X.shape[axis] > most:
            X = np.take(X, np.sort(rng.choice(X.shape[axis], most, replace=False)), axis)
    there = ~np.isnan(X)
    return X[np.ix_(there.any(axis=1), there.any(axis=0))].astype(np.float64)


def _together(bad: Array, clean: Array) -> bool:
    """Whether the bad rows are nearer to each other than to the rest."""
    if len(bad) < 5:
        return False
    middle = np.median(bad, axis=0)
    width = np.median(np.linalg.norm(bad - middle, axis=1))
    away = np.linalg.norm(middle - np.median(clean, axis=0))
    return bool(away > GROUPED * width)


def _groups(X: Array, rank: int) -> tuple[Array, int]:
    """Group of each row, and the number of groups; 0 if they form none."""
    rng = np.random.default_rng(0)
    centred = X - np.median(X, axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:rank]
    codes = centred @ axes.T
    chosen = rng.choice(len(X), min(len(X), GROUPED_ROWS), replace=False)
    cloud = rng.normal(size=(len(chosen), len(axes))) * codes.std(axis=0)
    best, labels, count = SILHOUETTE, np.zeros(len(X), dtype=int), 0
    for k in range(2, min(MOST_GROUPS, len(chosen) // 10) + 1):
        division = KMeans(k, n_init=1, random_state=0)
        found = division.fit(codes[chosen])
        if len(np.unique(found.labels_)) < k:
            break  # no more rows than that differ
        shares = np.bincount(found.labels_) / len(chosen)
        value = silhouette_score(codes[chosen], found.labels_)
        usual = silhouette_score(cloud, clone(division).fit_predict(cloud))
        if value > max(best, usual + GAIN):
            best, labels = value, found.predict(codes)
            count = k if shares.max() <= LARGEST_GROUP else 0
    return labels, count
