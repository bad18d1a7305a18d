"""Weighted PCA in a view that is expanded: the model that the reweighting loop mostly fits."""

from collections.abc import Callable

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.compact import compact
from robustpca.engine.linalg import (
    Array,
    finite,
    orthonormal,
    principal_axes,
    singular_axes,
    square_norms,
)
from robustpca.engine.rows import Rows
from robustpca.engine.view import View

# Coordinates of all rows are stored only up to this size; beyond it passes go over the data.
VIEW_BYTES = 1 << 30
# Up to this many features the second moments of the features themselves may be formed.
GRAM_FEATURES = 4096
# Directions that the first view has beyond the components asked for.
OVERSAMPLING = 10
# The first view is expanded until its sum of squares is this near to that of the data.
START_TOL = 1e-3
# What a first expansion can gain is brought to about this share of itself by the later ones.
FIRST_GAIN = 1e-5
# An expansion costs about as much as this many products of the data with the components.
EXPANSION = 3.5
# Variances that fall by this factor behind the components are a gap.
GAP = 0.05
TINY = 1e-300


class WeightedPCA:
    """A subspace of ``n_components`` dimensions and its centre, fitted to weighted rows.

    A weighted fit inside the ``view`` of the rows is exact and cheap, and its residuals are
    those of the full data. `expand` adds the directions along which the weighted sum of squares
    still falls, so the basis grows like that of a block Krylov space; the old span lies inside
    the new one, so an expansion never raises anything. With few features the view is the data
    themselves. A new model is fitted with equal weights: plain PCA.

    Parameters
    ----------
    rows : Rows
        The data.
    n_components : int
        Dimension of the subspace.
    center : ndarray of shape (n_features,), default=None
        A centre to hold fixed; by default it is the weighted mean of the rows.
    full : bool, default=False
        Whether the view must hold all of the data from the start.
    power : bool, default=False
        Whether a fit takes one step of orthogonal iteration instead of the best subspace.
    rough : bool, default=False
        Whether PCA is not needed to any digits because the first weights come from elsewhere.

    Attributes
    ----------
    exact : bool
        Whether the view holds the best subspace of all for the weights of the last expansion.
    """

    def __init__(
        self,
        rows: Rows,
        n_components: int,
        *,
        center: Array | None = None,
        full: bool = False,
        power: bool = False,
        rough: bool = False,
    ) -> None:
        self.n_components, self.fixed = n_components, center is not None
        self.source = rows.median_centred() if center is None else rows.centred(center)
        compacted = compact(self.source)
        self.compacted = compacted is not self.source
        if self.compacted and not self.fixed:
            compacted = compacted.median_centred()
        self.view = View(compacted)
        self.values, self.axes = np.empty(0), np.empty((0, 0))
        self.total, self.lost, self.floor = 0.0, 0.0, 0.0
        self.power, self.expanded, self.edge = False, False, n_components
        self.exact = False
        enough = self._initialise(full, rough)
        uniform = np.ones(rows.shape[0])
        self.fit(uniform)
        if not enough:
            self.refine(uniform)
        self.floor = self.view.rows.floor * float(np.sqrt(self.total / len(uniform)))
        self.power = power

    @property
    def width(self) -> int:
        """Directions of a view in which passes are cheap and few expansions are needed."""
        return min(self.n_components + max(25, self.n_components), *self.source.shape)

    def refine(self, weights: Array) -> None:
        """Expand the view until the fit with these weights is as good as on the full data."""
        while self.expand(weights, START_TOL * self.lost):
            before = self.lost
            self.fit(weights)
            # The estimate of the gain is no good where the spectrum is flat; the gain itself is.
            if before - self.lost <= START_TOL * self.lost:
                break

    def _initialise(self, full: bool, rough: bool) -> bool:
        """Choose the first basis; true if it holds all that is needed of PCA."""
        rows, n_components = self.view.rows, self.n_components
        n, d = rows.shape
        few = max(64, 3 * n_components)
        width = n_components + OVERSAMPLING
        too_large = n * 2 * width * rows.dtype.itemsize > VIEW_BYTES
        if d <= few or (full and d <= n) or (too_large and d <= GRAM_FEATURES):
            return True
        if full or n <= few:
            self.view.expand(orthonormal(finite(rows.adjoint(np.eye(n)))))
            return True
        sketch = n * d * (2 * width + 3 * EXPANSION * n_components)
        if rows.is_dense and d <= GRAM_FEATURES and self._moments_cost() <= sketch:
            # So few features that their second moments cost no more than a sketch.
            total, gram = rows.sum("weighted_gram")
            gram = finite(gram) - np.outer(total, total) / n
            axes = self._leading_axes(gram)[1]
            self.view.expand(orthonormal(np.column_stack([axes, total])))
            return True
        self.view.expand(orthonormal(finite(rows.sum(_sketch, width, along=(np.arange(n),)))))
        return rough

    def fit(self, weights: Array) -> None:
        """Weighted mean and leading weighted principal axes inside the view."""
        total, gram = self.view.coordinates.sum("weighted_gram", along=(weights,))
        gram, size = finite(gram), float(np.trace(gram))
        self.weights, self.weight = weights, float(weights.sum())
        if not self.fixed:
            shift = total / self.weight
            gram -= self.weight * np.outer(shift, shift)
            self.view.move(shift)
        before = self.axes
        self._turn(before, lambda A: gram @ A, lambda: principal_axes(gram))
        if self._rounded_away(size):
            rows = self.view.coordinates.map(_triangle, along=(weights,))
            self._turn(before, lambda A: rows.T @ (rows @ A), lambda: singular_axes(rows))

    def _turn(
        self,
        axes: Array,
        moments: Callable[[Array], Array],
        best: Callable[[], tuple[Array, Array]],
    ) -> None:
        """Turn the axes to the best ones, or one step towards them; ``moments`` multiplies."""
        if self.power:
            # The leading axes move one step towards the best ones; the rest completes them.
            moved = linalg.qr(moments(axes[:, : self.n_components]), check_finite=False)[0]
            inner = moved[:, : self.n_components]
            turn = principal_axes(inner.T @ moments(inner))[1]
            self.axes = np.hstack([inner @ turn, moved[:, self.n_components :]])
            squares = np.einsum("ij,ij->j", self.axes, moments(self.axes))
            self.values = np.maximum(squares, 0.0)
        else:
            self.values, self.axes = best()
        outside = float(self.weights @ self.view.outside)
        self.lost = float(self.values[self.n_components :].sum()) + outside
        self.total = float(self.values.sum()) + outside

    def _rounded_away(self, size: float) -> bool:
        """Whether rounding of second moments of this size may cost digits of the objective.

        It does where few samples weigh so much more than all others that these are lost in the
        sum: their share of the subspace must then come from the weighted rows themselves.
        """
        c = self.n_components
        if c >= len(self.values):
            return False
        unit = 2.0 ** (-23 if self.view.coordinates.dtype == np.float32 else -52)
        error, gap = unit * size, float(self.values[c - 1] - self.values[c])
        return error * error > unit**0.7 * self.lost * max(gap, error)

    def residuals(self) -> Array:
        """Squared distance of every row to the subspace; rounding error counts as zero."""
        tail = self.axes[:, self.n_components :]
        residuals = self.view.outside + self.view.coordinates.map(_tail_norms, tail)
        return np.where(residuals > self.floor**2, residuals, 0.0)

    def expand(self, weights: Array, enough: float) -> bool:
        """Add to the basis what the weighted covariance makes of the components.

        The gain from it is estimated first, from how far the components are from being
        eigenvectors and from the part of the weighted mean that is not in the span. Nothing is
        added, and false returned, if it is at most ``enough``.
        """
        view, c = self.view, self.n_components
        width, largest = view.codes.shape[1], min(view.rows.shape)
        if view.basis is None or width >= largest:
            return False
        # Residuals at rounding level are as good as none.
        enough = max(enough, self.floor**2 * float(weights.sum()))
        if not self.expanded and self._moments_pay(1 / FIRST_GAIN):
            return self._rebase(weights, enough)
        scores = view.coordinates.map("project", self.axes[:, :c])
        scores *= weights[:, None].astype(scores.dtype)
        images = view.rows.adjoint(np.column_stack([scores, weights]))
        images -= view.projection(images)
        squares = np.einsum("ij,ij->j", images, images)
        gaps = self.values[:c] - (self.values[self.edge] if len(self.values) > c else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.append(squares[:c] / gaps, 0.0 if self.fixed else squares[c] / weights.sum())
        gains[squares == 0] = 0.0
        if gains.sum() <= enough:
            return False
        if self._moments_pay(gains.sum() / enough):
            return self._rebase(weights, enough)
        self.expanded, self.exact, self.edge = True, False, c
        useful = np.argsort(-gains)[: largest - width]
        useful = np.sort(useful[gains[useful] > 0.1 * enough / len(gains)])
        if width + len(useful) > 2 * (c + OVERSAMPLING):
            leading = slice(c + OVERSAMPLING)
            view.restrict(self.axes[:, leading])
            self.values = self.values[leading]
            self.axes = np.eye(len(self.values))
        added = orthonormal(images[:, useful], against=view.basis)
        view.expand(added)
        self.axes = linalg.block_diag(self.axes, np.eye(added.shape[1]))
        self.values = np.append(self.values, np.zeros(added.shape[1]))
        return True

    def _moments_cost(self) -> float:
        """Cost of second moments and of a view of their leading axes.

        The unit is one multiplication in a product with few columns; those of a sum of squares
        take half of it.
        """
        n, d = self.view.rows.shape
        return float(n * d * (0.5 * d + self.width) + 2.5 * d**3)

    def _moments_pay(self, reduction: float) -> bool:
        """Whether second moments of all features cost less than the expansions still needed.

        These are to make what there is to gain smaller by the factor ``reduction``. Each does so
        by about the square of the ratio of the variances at the edge of a wide view and along
        the last component: one or two do where the spectrum has a gap, and many are needed where
        it has none.
        """
        rows, c = self.view.rows, self.n_components
        n, d = rows.shape
        if d > GRAM_FEATURES or not rows.is_dense or len(self.values) <= c:
            return False
        ratio = min(float(self.values[-1]) / max(float(self.values[c - 1]), TINY), 0.99)
        n_steps = max(1.0, np.log(reduction) / (-2 * np.log(max(ratio, TINY))))
        return self._moments_cost() < n_steps * EXPANSION * n * d * c

    def _rebase(self, weights: Array, enough: float) -> bool:
        """Take the leading eigenvectors of the weighted second moments as basis, if that gains."""
        rows = self.view.rows
        d = rows.shape[1]
        total, gram = rows.sum("weighted_gram", along=(weights,))
        gram, shift = finite(gram), np.zeros(d)
        if not self.fixed:
            shift = total / weights.sum()
            gram -= weights.sum() * np.outer(shift, shift)
        values, axes = self._leading_axes(gram)
        least = float(np.trace(gram)) - float(values[: self.n_components].sum())
        if weights @ self.residuals() - least <= enough:
            return False
        self.view.rebase(rows.center + shift, axes)
        self.values, self.axes = values, np.eye(len(values))
        # These are the leading directions: what lies outside varies less than all of them.
        self.expanded, self.exact, self.edge = True, True, -1
        return True

    def _leading_axes(self, gram: Array) -> tuple[Array, Array]:
        """Leading axes of second moments: fewer where the spectrum has a gap."""
        d, c = len(gram), self.n_components
        if d <= 8 * self.width:
            values, axes = principal_axes(gram)
        else:
            leading = (d - self.width, d - 1)
            values, axes = linalg.eigh(gram, subset_by_index=leading, check_finite=False)
            values, axes = values[::-1], axes[:, ::-1]
        narrow = min(c + OVERSAMPLING, len(values) - 1)
        width = narrow if values[narrow] < GAP * values[c - 1] else self.width
        return values[:width], axes[:, :width]

    def coordinates(self) -> tuple[Rows, Array]:
        """Coordinates of the rows in the view, and their squared distances from its span."""
        return self.view.coordinates, self.view.outside

    def variances(self) -> tuple[Array, float]:
        """Weighted variance along each principal axis, and in all."""
        return self.values[: self.n_components] / self.weight, self.total / self.weight

    def rank_for(self, share: float) -> int:
        """How many components hold this share of the weighted variance; needs a full view."""
        reached = np.cumsum(self.values) >= share * self.total * (1 - 1e-12)
        return int(np.argmax(reached)) + 1

    def subspace(self) -> tuple[Array, Array]:
        """Centre and principal axes (as rows) of the last fit, in the features of the data."""
        return self.leading(self.n_components)

    def leading(self, n_axes: int) -> tuple[Array, Array]:
        """Centre and up to ``n_axes`` principal axes (as rows) of the last fit."""
        leading = self.axes[:, :n_axes]
        if not self.compacted:
            return self.view.point, self.view.directions(leading).T
        # The data were compacted. The covariance maps each axis to a multiple of itself, and
        # it does so in the features as well as in the compact coordinates.
        scores = self.view.coordinates.map("project", leading) * self.weights[:, None]
        images = self.source.adjoint(np.column_stack([scores, self.weights]))
        shift = 0.0 if self.fixed else images[:, -1] / self.weight
        return self.source.center + shift, orthonormal(images[:, :-1]).T


def _triangle(block: DenseBlock, weights: Array) -> Array:
    """A triangle with the weighted second moments of the rows, good to all digits of these."""
    weighted = block.dense() * np.sqrt(weights)[:, None]
    return np.asarray(linalg.qr(weighted, mode="r", check_finite=False)[0][: weighted.shape[1]])


def _tail_norms(block: DenseBlock, tail: Array) -> Array:
    return square_norms(block.project(tail))


def _sketch(block: DenseBlock, index: Array, width: int) -> Array:
    """Random signs times the rows, and their sum; the same for any way of reading them."""
    rng = np.random.default_rng([9_081_972, int(index[0])])
    signs = rng.integers(0, 2, size=(len(index), width), dtype=np.int8) * 2 - 1
    return block.adjoint(np.column_stack([signs, np.ones(len(index), np.int8)]))
