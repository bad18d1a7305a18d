"""Weighted PCA in a view that is expanded: the model that the reweighting loop mostly fits."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
# Directions that a view has beyond the components asked for; so many where it is mostly found
# anew, which lasts longer in a wider one.
OVERSAMPLING, WIDER = 10, 25
# The first view is expanded until its sum of squares is this near to that of the data.
START_TOL = 1e-3
# What a first expansion can gain is brought to about this share of itself by the later ones.
FIRST_GAIN = 1e-5
# Each of them does so where the variances behind the view are known, and leaves out directions
# that hold this share of the gain.
CORRECTED_GAIN, NEGLECTED = 0.05, 0.03
# What is left is surely no more than this share of the gain.
LEFT = 0.2
# Least differences of variances that are divided by: as a share of the largest variance, and of
# the larger one of the two if both are known.
TINY_GAP, LEAST_GAP = 1e-9, 0.1
# Rows are brought to single precision for products with at least so many components.
MANY = 20
# Weights go this share of their last change further before they are fitted.
MOMENTUM = 0.4
# Passes read a copy of the data in single precision if the tolerance is not below this one, and the
# copy is no larger; and as long as no row is nearer to the subspace: its squared distance as a
# share of its squared norm. Such a row might weigh so much that the digits lost would matter.
SINGLE_TOL, SINGLE_BYTES, SINGLE_LEAST = 1e-8, 1 << 26, 1e-5
# An expansion costs about as much as this many products of the data with the components.
EXPANSION = 3.5
# Second moments are worth so many expansions to a view behind which variances are known, or by this
# factor more if one would leave too much.
EXACT, TWICE = 1.5, 1.4
TINY = 1e-300


@dataclass(frozen=True)
class Complement:
    """What second moments, of some weights, tell about the directions behind a view.

    ``values`` are the sums of squares along the leading ones, ``axes`` (columns), and ``total`` is
    that of all of them.
    """

    values: Array
    axes: Array
    total: float

    def corrections(self, images: Array, levels: Array, outside: float) -> Array:
        """What a view lacks of the eigenvectors, given their images outside of it.

        By perturbation theory, images are divided by the differences of the eigenvalues, which are
        ``levels`` inside and known from these moments behind the view. Weights have changed since
        then: the latter are brought to the present sum of squares ``outside``.
        """
        values = self.values * (outside / self.total if self.total > 0 else 0.0)
        gaps = np.maximum(levels - values[:, None], LEAST_GAP * levels)
        # Directions that are not among the axes hardly vary: their differences are the levels.
        along = self.axes.T @ images.astype(self.axes.dtype)
        along *= (1 / gaps - 1 / levels).astype(along.dtype)
        return np.asarray(images / levels + self.axes @ along)


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
    share : float, default=None
        Share of the variance that `rank_for` will be asked for. `n_components` may then be any, and
        is what the view is made for afterwards.
    center : ndarray of shape (n_features,), default=None
        A centre to hold fixed; by default it is the weighted mean of the rows.
    power : bool, default=False
        Whether a fit takes one step of orthogonal iteration instead of the best subspace.
    rough : bool, default=False
        Whether PCA is not needed to any digits because the first weights come from elsewhere.
    tol : float, default=0.0
        The least gain that counts, as a share of the sum. It says how many digits are needed.

    Attributes
    ----------
    exact : bool
        Whether the view holds the best subspace of all for the weights of the last expansion, but
        for what is not worth another one.
    """

    def __init__(
        self,
        rows: Rows,
        n_components: int,
        *,
        share: float | None = None,
        center: Array | None = None,
        power: bool = False,
        rough: bool = False,
        tol: float = 0.0,
    ) -> None:
        self.n_components, self.fixed = n_components, center is not None
        self.source = rows.median_centred() if center is None else rows.centred(center)
        compacted = compact(self.source)
        self.compacted = compacted is not self.source
        if self.compacted and not self.fixed:
            compacted = compacted.median_centred()
        self.view, self.weights = View(compacted), np.empty(0)
        # The view in which the last fit was, until it is expanded.
        self.fitted: View | None = None
        self.known: tuple[Any, int, Array] = None, 0, np.empty(0)
        self.values, self.axes = np.empty(0), np.empty((0, 0))
        self.total, self.lost, self.floor = 0.0, 0.0, 0.0
        self.power, self.expanded, self.edge = False, False, n_components
        self.exact, self.rough, self.spectrum = False, rows.dtype == np.float64, np.empty(0)
        self.complement: Complement | None = None
        # What the last expansion was to gain.
        self.promised = np.inf
        uniform = np.ones(rows.shape[0])
        enough = self._initialise(uniform, share, power, rough, tol)
        self.fit(uniform)
        if not enough:
            self.refine(uniform)
        self.floor = self.view.source.floor * float(np.sqrt(self.total / len(uniform)))
        self.power, self.momentum = power, 0.0 if power else MOMENTUM

    @property
    def given(self) -> tuple[Any, ...]:
        """The data, and what passes read instead of them."""
        return self.source, self.view.source, self.view.rows

    @property
    def width(self) -> int:
        """Directions of a view in which passes are cheap and few expansions are needed."""
        beyond = WIDER if self._moments_are_cheap() else OVERSAMPLING
        return min(self.n_components + beyond, *self.source.shape)

    def refine(self, weights: Array) -> None:
        """Expand the view until the fit with these weights is as good as on the full data."""
        while self.expand(weights, START_TOL * self.lost):
            before = self.lost
            self.fit(weights)
            # The estimate of the gain is no good where the spectrum is flat; the gain itself is.
            if before - self.lost <= START_TOL * self.lost:
                break

    def _initialise(
        self, uniform: Array, share: float | None, power: bool, rough: bool, tol: float
    ) -> bool:
        """Choose the first basis; true if it holds all that is needed of PCA."""
        rows = self.view.rows
        n, d = rows.shape
        few = max(64, 3 * self.n_components)
        has_moments = rows.is_dense and d <= GRAM_FEATURES
        # One step of orthogonal iteration needs axes that no later view changes.
        by_all = share is not None and (power or not has_moments)
        if d <= few or (by_all and d <= n) or (self._is_too_large() and d <= GRAM_FEATURES):
            return True
        if by_all or n <= few:
            self.view.expand(orthonormal(finite(rows.adjoint(np.eye(n)))))
            return True
        width = self.n_components + OVERSAMPLING
        sketch = 2 * n * d * width + 3 * self._expansion_cost()
        if has_moments and (share is not None or self._moments_cost() <= sketch):
            # So few features that their second moments cost no more than a sketch.
            if tol >= SINGLE_TOL and not power and self.rough and 4 * n * d <= SINGLE_BYTES:
                self.view = View.in_single_precision(rows)
            shift, axes = self._moments(uniform, share)
            if not self._is_too_large():
                self._rebase_view(uniform, shift, axes)
                self.exact = True
            return True
        self.view.expand(orthonormal(finite(rows.sum(_sketch, width, along=(np.arange(n),)))))
        return rough

    def _is_too_large(self) -> bool:
        """Whether coordinates of all rows in a view for so many components take too much memory."""
        width, itemsize = self.n_components + OVERSAMPLING, self.view.rows.dtype.itemsize
        return self.source.shape[0] * 2 * width * itemsize > VIEW_BYTES

    def fit(self, weights: Array) -> None:
        """Weighted mean and leading weighted principal axes inside the view."""
        if weights is self.weights and self.fitted is self.view and not self.power:
            return
        total, gram = self.view.coordinates.sum("weighted_gram", along=(weights,))
        gram, size = finite(gram), float(np.trace(gram))
        self.weights, self.weight, self.fitted = weights, float(weights.sum()), self.view
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
        self._add_up()

    def _add_up(self) -> None:
        """Sum of squares in all, and that outside of the subspace."""
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
        # Axes are never changed in place: the same ones have the same residuals.
        axes, n_components, known = self.known
        if axes is not self.axes or n_components != self.n_components:
            tail = self.axes[:, self.n_components :]
            known = self.view.outside + self.view.coordinates.map(_tail_norms, tail)
            known[~(known > self.floor**2)] = 0.0
            if self.view.is_single and (known < SINGLE_LEAST * self.view.norms).any():
                self.view = self.view.precise()
                return self.residuals()
            self.known = self.axes, self.n_components, known
        return known

    def expand(self, weights: Array, enough: float) -> bool:
        """Add to the basis what the weighted covariance makes of the components.

        The gain from it is estimated first, from how far the components are from being
        eigenvectors and from the part of the weighted mean that is not in the span. Nothing is
        added, and false returned, if it is at most ``enough``. Where expansions gain little each,
        the leading axes of all second moments take the place of the basis.
        """
        view, c = self.view, self.n_components
        width, largest = view.codes.shape[1], min(view.rows.shape)
        if view.basis is None or width >= largest:
            return False
        # Residuals at rounding level are as good as none.
        enough = max(enough, self.floor**2 * float(weights.sum()))
        # There surely is something to gain before the first expansion.
        likely = not self.expanded and enough < START_TOL * self.lost
        if likely and self._moments_pay(1 / FIRST_GAIN):
            return self._rebase(weights, enough)
        directions, gains = self._missing(weights)
        self.promised = float(gains.sum())
        if self.promised <= enough:
            return False
        if self._moments_pay(self.promised / max(enough, TINY)):
            return self._rebase(weights, enough)
        self.expanded, self.edge = True, c
        self.exact = self.complement is not None and LEFT * self.promised <= enough
        neglected = max(0.1 * enough, NEGLECTED * self.promised if self.complement else 0.0)
        useful = _main_directions(directions, gains, neglected)[:, : largest - width]
        if width + useful.shape[1] > 2 * (c + OVERSAMPLING):
            leading = slice(c + OVERSAMPLING)
            view.restrict(self.axes[:, leading])
            self.values = self.values[leading]
            self.axes = np.eye(len(self.values))
        added = orthonormal(useful - view.projection(useful), against=view.basis)
        view.expand(added)
        self.fitted = None
        self.axes = linalg.block_diag(self.axes, np.eye(added.shape[1]))
        self.values = np.append(self.values, np.zeros(added.shape[1]))
        return True

    def _levels(self) -> Array:
        """Sums of squares along the components, above those of the directions behind the view.

        Where nothing is known about the latter, the edge of the view stands for all of them.
        """
        values, c = self.values, self.n_components
        if self.complement is None and len(values) > c:
            values = values - values[self.edge]
        return np.maximum(values[:c], TINY_GAP * float(self.values[0]) + TINY)

    def _missing(self, weights: Array) -> tuple[Array, Array]:
        """What the view lacks of components and centre, and what that could lower the sum by."""
        # Weights may be too large for single precision.
        unit = float(weights.max())
        images, levels = self._images(weights / unit), self._levels() / unit
        missing = images.copy()
        if self.complement is None:
            missing[:, :-1] /= levels
        else:
            outside = float(self.weights @ self.view.outside) / unit
            missing[:, :-1] = self.complement.corrections(images[:, :-1], levels, outside)
        return missing, unit * np.maximum(np.einsum("ij,ij->j", missing, images), 0.0)

    def _images(self, weights: Array) -> Array:
        """Images of the components under the weighted covariance, outside of the view.

        The last column is that of the mean, over the root of the sum of the weights. Directions
        need few digits: single precision does where it did for second moments.
        """
        view, axes = self.view, self.axes[:, : self.n_components]
        rough = self._images_are_rough() and self.complement is not None
        scores = view.coordinates.map(_weighted_scores, axes, rough, along=(weights,))
        if rough and not self.view.is_single:
            images = view.rows.sum("rough_adjoint", along=(scores,))
        else:
            images = view.rows.adjoint(scores).astype(np.float64, copy=False)
        images -= view.projection(images)
        images[:, -1] *= 0.0 if self.fixed else weights.sum() ** -0.5
        return np.asarray(images)

    def _images_are_rough(self) -> bool:
        """Whether single precision does for images of the components, and saves time."""
        return self.rough and self.n_components >= MANY

    def _moments_cost(self) -> float:
        """Cost of second moments and of a view of their leading axes.

        The unit is one multiplication in a product with few columns; those of a sum of squares
        take half of it, or a third if single precision does.
        """
        n, d = self.view.rows.shape
        width = self.n_components + OVERSAMPLING
        return float(n * d * ((0.35 if self.rough else 0.5) * d + width) + 2.0 * d**3)

    def _expansion_cost(self) -> float:
        """Cost of one expansion by as many directions as components, and of two more passes."""
        n, d = self.view.rows.shape
        c, width = self.n_components, self.n_components + OVERSAMPLING
        one_pass = n * width * (0.5 * width + width - c) + 20.0 * width**3
        return float(EXPANSION * n * d * c + 4 * d * (width + c) * c + 2 * one_pass)

    def _corrected_cost(self) -> float:
        """Cost of an expansion by the main directions, and of two passes that are wider by them."""
        n, d = self.view.rows.shape
        c, width = self.n_components, self.n_components + OVERSAMPLING
        products = 1.1 if self._images_are_rough() else 1.7
        wider = 2 * n * ((width + c / 2) ** 2 - width**2)
        return float(products * n * d * c + 4 * d * d * c + wider)

    def _moments_are_cheap(self, reduction: float = 1 / FIRST_GAIN) -> bool:
        """Whether second moments cost less than expansions that correct the view by as much."""
        n_steps = min(max(1.0, np.log(reduction) / -np.log(CORRECTED_GAIN)), TWICE)
        return self._moments_cost() < EXACT * n_steps * self._corrected_cost()

    def _moments_pay(self, reduction: float) -> bool:
        """Whether second moments of all features cost less than the expansions still needed.

        These are to make what there is to gain smaller by the factor ``reduction``. Each does so
        by about the square of the ratio of the variances at the edge of a wide view and along
        the last component: one or two do where the spectrum has a gap, and many are needed where
        it has none. If the variances behind the view are known, one or two do as well.
        """
        rows, c = self.view.rows, self.n_components
        if self.complement is not None:
            return self._moments_are_cheap(reduction)
        values = self.values if len(self.values) > c else self.spectrum
        if rows.shape[1] > GRAM_FEATURES or not rows.is_dense or len(values) <= c:
            return False
        ratio = min(float(values[-1]) / max(float(values[c - 1]), TINY), 0.99)
        n_steps = max(1.0, np.log(reduction) / (-2 * np.log(max(ratio, TINY))))
        return self._moments_cost() < n_steps * self._expansion_cost()

    def _rebase(self, weights: Array, enough: float) -> bool:
        """Take the leading eigenvectors of the weighted second moments as basis, if that gains."""
        before, lost = dict(self.__dict__), float(weights @ self.residuals())
        self._rebase_view(weights, *self._moments(weights))
        self.fit(weights)
        if self.lost > lost:
            self.__dict__.update(before)
            return False
        # These are the leading directions: what lies outside varies less than all of them.
        self.expanded, self.exact, self.edge = True, True, -1
        self.promised = lost - self.lost
        return self.promised > enough

    def _rebase_view(self, weights: Array, shift: Array, axes: Array) -> None:
        """Take the leading axes of second moments as basis of another view."""
        self.view = copy.copy(self.view)
        self.view.rebase(self.view.rows.center + shift, axes)
        self.axes = np.eye(axes.shape[1])
        if self.view.is_single:
            # A fit in the view has no more digits than these moments.
            self.weights, self.weight, self.fitted = weights, float(weights.sum()), self.view
            self.values = self.spectrum * float(weights.max())
            self._add_up()

    def _moments(self, weights: Array, share: float | None = None) -> tuple[Array, Array]:
        """Weighted mean, from the centre of the rows, and leading axes of second moments.

        Axes need few digits if they only span a view, so single precision does wherever it tells
        the leading variances from the others. With a ``share`` of them to be held, there are as
        many components from now on as hold it.
        """
        largest = float(weights.max())
        while True:
            rows = self.view.rows
            kind = "rough_gram" if self.rough and not self.view.is_single else "weighted_gram"
            total, gram = rows.sum(kind, along=(weights / largest,))
            gram = gram if self.rough else finite(gram)
            weight = float(weights.sum()) / largest
            shift = np.zeros(len(total)) if self.fixed else total / weight
            gram -= weight * np.outer(shift, shift)
            if not self.rough:
                values, axes = self._leading_axes(gram, share)
                break
            if np.isfinite(gram).all():
                values, axes = self._leading_axes(gram.astype(np.float32), share)
                c = self.n_components
                size, gap = float(np.trace(gram)), float(values[c - 1] - values[-1])
                lost = size - float(values[:c].sum())
                error = 2.0**-23 * size / np.sqrt(len(gram))
                if size > 1e-20 and lost > 1e-3 * size and c * error**2 <= 1e-8 * lost * gap:
                    axes = orthonormal(axes.astype(np.float64))
                    break
            self.rough = False
            if self.view.is_single:
                self.view = self.view.precise()
        self.spectrum = values
        return shift, axes

    def _leading_axes(self, gram: Array, share: float | None) -> tuple[Array, Array]:
        """Leading axes of second moments for a view, and what is known of those behind it."""
        d, width = len(gram), self.width
        # Beside the moments of many rows, all axes of them cost little.
        if share is not None or d <= max(8 * width, self.source.shape[0] // 8):
            values, axes = principal_axes(gram)
        else:
            leading = (d - 2 * width, d - 1)
            values, axes = linalg.eigh(gram, subset_by_index=leading, check_finite=False)
            values, axes = values[::-1], axes[:, ::-1]
        if share is not None:
            self.n_components = _rank_of(values, share * float(values.sum(dtype=np.float64)))
            width = self.width
        # What is left of the sums may be less than rounding makes of the parts.
        left = float(np.trace(gram)) - float(values[:width].sum())
        behind = max(left, float(np.maximum(values[width:], 0.0).sum()))
        # BLAS would copy axes in reverse order for each product.
        self.complement = Complement(values[width:], np.ascontiguousarray(axes[:, width:]), behind)
        return values[:width], axes[:, :width]

    def coordinates(self) -> tuple[Rows, Array]:
        """Coordinates of the rows in the view, and their squared distances from its span."""
        return self.view.coordinates, self.view.outside

    def seen(self) -> tuple[Rows, Array, Array, Array]:
        """Coordinates of the rows, centre and components in these, and what is outside of them."""
        coordinates, outside = self.coordinates()
        return coordinates, coordinates.center, self.axes[:, : self.n_components].T, outside

    @property
    def scores(self) -> Callable[[Array], Array] | None:
        """Gives the scores of the rows with these numbers along the components, if it is cheap."""
        if self.compacted or self.view.basis is None:
            return None

        def scores(chosen: Array) -> Array:
            rows = np.zeros(len(self.weights), dtype=bool)
            rows[chosen] = True
            axes = self.axes[:, : self.n_components]
            return np.asarray(self.view.coordinates.map("take", along=(rows,)) @ axes)

        return scores

    def variances(self) -> tuple[Array, float]:
        """Weighted variance along each principal axis, and in all."""
        return self.values[: self.n_components] / self.weight, self.total / self.weight

    def rank_for(self, share: float) -> int:
        """How many components hold this share of the weighted variance.

        A view that does not hold it is made wider, for the same weights.
        """
        kept, most = self.n_components, min(self.view.rows.shape)
        while (rank := _rank_of(self.values, share * self.total)) > len(self.values) < most:
            self.n_components = min(len(self.values) * 5 // 4, most)
            if self._is_too_large():
                self.view = View(self.view.source.centred(self.view.point))
            else:
                self._rebase_view(self.weights, *self._moments(self.weights))
            self.fit(self.weights)
            self.n_components = kept
        return min(rank, most)

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


def _rank_of(values: Array, wanted: float) -> int:
    """How many leading values add up to so much; one more than there are if they do not."""
    sums = np.cumsum(values, dtype=np.float64)
    return int(np.searchsorted(sums, wanted * (1 - 1e-12))) + 1


def _main_directions(directions: Array, gains: Array, neglected: float) -> Array:
    """Few directions whose span holds all but ``neglected`` of the gains of these."""
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", directions, directions), TINY))
    directions = directions * (np.sqrt(gains) / lengths)
    values, turn = principal_axes(directions.T @ directions)
    left = values.sum() - np.cumsum(values)
    return np.asarray(directions @ turn[:, : int(np.argmax(left <= neglected)) + 1])


def _triangle(block: DenseBlock, weights: Array) -> Array:
    """A triangle with the weighted second moments of the rows, good to all digits of these."""
    weighted = block.dense() * np.sqrt(weights)[:, None]
    return np.asarray(linalg.qr(weighted, mode="r", check_finite=False)[0][: weighted.shape[1]])


def _weighted_scores(block: DenseBlock, weights: Array, axes: Array, rough: bool) -> Array:
    """Scores of the rows times their weights, and the weights."""
    dtype = np.dtype(np.float32) if rough else block.dtype
    scores = np.empty((len(block), axes.shape[1] + 1), dtype)
    np.multiply(block.project(axes), weights[:, None], out=scores[:, :-1], casting="same_kind")
    scores[:, -1] = weights
    return scores


def _tail_norms(block: DenseBlock, tail: Array) -> Array:
    return square_norms(block.project(tail))


def _sketch(block: DenseBlock, index: Array, width: int) -> Array:
    """Random signs times the rows, and their sum; the same for any way of reading them."""
    rng = np.random.default_rng([9_081_972, int(index[0])])
    signs = rng.integers(0, 2, size=(len(index), width), dtype=np.int8) * 2 - 1
    return block.adjoint(np.column_stack([signs, np.ones(len(index), np.int8)]))
