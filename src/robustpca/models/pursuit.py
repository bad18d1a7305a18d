"""PursuitModel: decompositions with a nuclear norm, solved by `solvers.splitting.split`."""

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array
from robustpca.engine.rows import Rows
from robustpca.engine.svt import LowRank
from robustpca.models.base import announcer
from robustpca.models.decomposition import LowRankModel, compact, row_tiles, soft_beyond
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.entry_losses import EntryLoss, GraphSmoothness, HuberNorm, L1Norm
from robustpca.solvers.altproj import project
from robustpca.solvers.new_rows import RowProblem, TrainingGraph
from robustpca.solvers.splitting import Balanced, Growing, largest_entry, mean_size, split

# The median of the absolute values of a Gaussian, in standard deviations, is the inverse.
GAUSSIAN = 1.4826


class PursuitModel(LowRankModel):
    """Decompositions with a nuclear norm: RPCA, and RPCAG with one term more."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LowRankModel._parameter_constraints,
        "sparsity": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "noise": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "center": [StrOptions({"median"}), None],
    }

    sparsity: Any
    noise: Any
    center: str | None
    solver = "admm"
    _ties: TrainingGraph | None = None
    _smoothness = 0.0

    def _fit_whole(self, rows: Rows, X: Array) -> None:
        offset = np.nanmedian(X, axis=0) if self.center == "median" else np.zeros(X.shape[1])
        self._offset = offset.astype(X.dtype)
        moved = X - self._offset if self._offset.any() else X
        n_observed = np.count_nonzero(~np.isnan(moved))
        # Entries of a row or column of the longer side, but for the missing ones.
        crowd = n_observed / min(X.shape)
        self.sparsity_ = float(crowd) ** -0.5 if self.sparsity == "auto" else float(self.sparsity)
        # The norm of pure noise, with as many entries as there are: it must not look low rank.
        self._room = float(np.sum(np.sqrt(X.shape)) * np.sqrt(n_observed / X.size))
        terms = self._terms(moved)
        self.noise_ = self._estimated(moved, terms) if self.noise == "auto" else float(self.noise)
        if largest_entry(moved) == 0:
            self._all_zero(moved)
        elif self.solver == "altproj":
            self._project(moved)
        else:
            self._pursue(moved, terms)
        self._settle(rows, X)
        self._warn(X)

    def _terms(self, X: Array) -> list[GraphSmoothness]:
        """Terms of the low-rank part besides its nuclear norm."""
        return []

    def _loss(self, noise: float) -> EntryLoss:
        if noise == 0:
            return L1Norm(self.sparsity_)
        return HuberNorm(self.sparsity_, self.sparsity_ * noise * self._room)

    def _estimated(self, X: Array, terms: list[GraphSmoothness]) -> float:
        """Noise level at which what the fit leaves over is just as large."""
        noise = spread = GAUSSIAN * float(np.nanmedian(np.abs(X - np.nanmedian(X))))
        state, penalty = None, None
        for _ in range(20):
            # Noise of less than a thousandth of the data changes nothing that matters.
            if noise <= 1e-3 * spread:
                return 0.0
            schedule = Balanced(penalty)
            result = split(
                X, self._loss(noise), terms, schedule=schedule, tol=1e-3, max_iter=50, start=state
            )
            state, penalty = result.start(), result.penalty
            before = noise
            noise = GAUSSIAN * _median_residual(X, result.low_rank, noise * self._room)
            if abs(noise - before) < 0.02 * before:
                break
        return noise

    def _pursue(self, X: Array, terms: list[GraphSmoothness]) -> None:
        self.loss_ = self._loss(self.noise_)
        first = _first_penalty(X)
        result = split(
            X,
            self.loss_,
            terms,
            schedule=Growing() if self.solver == "ialm" else Balanced(),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=announcer(type(self).__name__, "pass", self.verbose, self.callback),
            start=self._warm[0] if self._warm else None,
        )
        if self._warm is not None:
            self._warm = [result.start()]
        self._low_rank, self.sparse_ = result.low_rank, compact(result.sparse)
        # A penalty that has grown to hurry an end is no good start for new rows.
        self._penalty = result.penalty if self.solver == "admm" else first
        self.dual_gap_ = result.gap
        self._record(result)

    def _project(self, X: Array) -> None:
        if not isinstance(self.n_components, Integral):
            raise ValueError(
                f"solver='altproj' needs to know the rank, but n_components={self.n_components}: "
                "set n_components to it, or use solver='admm'."
            )
        result = project(
            X,
            min(int(self.n_components), *X.shape),
            tol=self.tol,
            max_iter=self.max_iter,
            floor=3 * self.noise_,
            callback=announcer(type(self).__name__, "pass", self.verbose, self.callback),
        )
        self.loss_ = self._loss(self.noise_)
        self._low_rank, self.sparse_ = result.low_rank, compact(result.sparse)
        self._penalty, self.dual_gap_ = _first_penalty(X), np.nan
        self._record(result)

    def _record(self, result: Any) -> None:
        self.objective_, self.n_iter_ = result.objective, result.n_iter
        self.converged_, self._change = result.converged, result.change

    def _all_zero(self, X: Array) -> None:
        self.loss_ = self._loss(self.noise_)
        self._low_rank, self.sparse_ = LowRank.zeros(X.shape, X.dtype), sparse.csr_array(X.shape)
        self._penalty, self.dual_gap_ = 1.0, 0.0
        self.objective_, self.n_iter_ = np.zeros(1), 0
        self.converged_, self._change = True, 0.0

    def _settle(self, rows: Rows, X: Array) -> None:
        """Factorise the low-rank part about its mean, and keep what new rows need."""
        left, right = self._low_rank.left.astype(np.float64), self._low_rank.right
        values = self._low_rank.values
        rank = int(np.count_nonzero(values > self._rank_tol * values[:1].max(initial=0.0)))
        self.rank_ = rank
        self.density_ = _count_nonzero(self.sparse_) / max(int(np.count_nonzero(~np.isnan(X))), 1)
        middle = left.mean(axis=0) if self.center_low_rank else np.zeros(left.shape[1])
        centred = left - middle
        squares, turn = np.linalg.eigh(centred.T @ centred)
        spectrum = np.sqrt(np.maximum(squares[::-1], 0.0))
        low_mean = middle @ right.astype(np.float64)
        self._finish(rows, X, low_mean + self._offset, spectrum, turn.T[::-1] @ right)
        # What the nuclear norm asks of a row once the row space and the singular values are
        # known: half the squared length of the row in the metric that they define.
        directions = right[:rank].astype(np.float64)
        metric = directions.T / values[:rank]
        n_all = int(np.count_nonzero(spectrum > self._rank_tol * spectrum[:1].max(initial=0.0)))
        basis = turn.T[::-1][:n_all] @ right.astype(np.float64)
        crossed = basis @ metric
        ridge, linear = crossed @ directions @ basis.T, crossed @ (directions @ low_mean)
        self._problem = RowProblem(low_mean, basis, ridge, linear, self.loss_, self._penalty)

    @property
    def low_rank_(self) -> Array:
        """Low-rank part of the training data."""
        return self._low_rank.dense() + self._offset

    def _training_tiles(self) -> Iterator[Array]:
        left = self._low_rank.left
        return (self._low_rank.dense(place) + self._offset for place in row_tiles(left))

    def _codes(self, X: Array) -> Array:
        codes = super()._codes(X)
        # Along directions that only complete the basis there is nothing but rounding error.
        codes[:, len(self._problem.basis) :] = 0
        return codes

    def _low_rank_rows(self, X: Array) -> Array:
        problem, moved = self._problem, X - self._offset
        weights = pulls = None
        if self._ties is not None:
            diagonal, ties = self._ties.ties(moved)
            weights = 2 * self._smoothness * diagonal
            neighbours = ties @ (self._low_rank.left @ (self._low_rank.right @ problem.basis.T))
            pulls = 2 * self._smoothness * neighbours
            pulls -= np.outer(weights, problem.basis @ problem.mean)
        codes = problem.solve(moved, weights, pulls)
        low = codes @ problem.basis + problem.mean + self._offset
        return low.astype(X.dtype, copy=False)

    def _sparse_rows(self, X: Array, low_rank: Array) -> Array:
        error = super()._sparse_rows(X, low_rank)
        return soft_beyond(error, self.loss_.knee)

    def _warn(self, X: Array) -> None:
        name, short = type(self).__name__, min(X.shape)
        advice = None
        if self.solver == "altproj":
            if (self.density_ == 0 and self.rank_ > 0) or self.rank_ == short > 1:
                advice = (
                    f"low_rank_ has rank {self.rank_} and sparse_ a density of "
                    f"{self.density_:.3g}. Lower n_components={self.n_components}."
                )
        elif self.density_ == 0 and self.rank_ > 0 and self.noise_ == 0:
            advice = (
                f"sparse_ is all zero and low_rank_ is the data: sparsity={self.sparsity_:.3g} is "
                "too high for them. Lower it, and see sparsity_path."
            )
        elif self.rank_ == 0 and self.density_ > 0:
            advice = (
                f"low_rank_ is zero and sparse_ is the data: sparsity={self.sparsity_:.3g} is too "
                "low for them. Raise it, and see sparsity_path."
            )
        elif self.rank_ == short and short > 1:
            advice = (
                f"low_rank_ has full rank {short}. Lower sparsity={self.sparsity_:.3g}, or set "
                "noise='auto' if the entries carry dense noise."
            )
        if advice is not None:
            warnings.warn(f"{name}: {advice}", UserWarning, stacklevel=6)


def _first_penalty(X: Array) -> float:
    return 0.25 / mean_size(X)


def _count_nonzero(A: Any) -> int:
    return int(A.count_nonzero() if sparse.issparse(A) else np.count_nonzero(A))


def _median_residual(X: Array, low_rank: LowRank, shrinkage: float) -> float:
    """Median size of the residual entries of some rows, without what was shrunk on purpose."""
    full = 1 + shrinkage / np.maximum(low_rank.values, np.finfo(np.float64).tiny)
    chosen = slice(None, None, max(1, X.size // 2_000_000))
    low = (low_rank.left[chosen] * full.astype(X.dtype)) @ low_rank.right
    return float(np.nanmedian(np.abs(X[chosen] - low)))
