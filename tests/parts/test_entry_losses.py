"""A proximal step beats every other point, and terms cost what the textbooks say."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from robustpca.parts import entry_losses as terms
from robustpca.parts.entry_losses import (
    LOSSES,
    GraphSmoothness,
    HuberNorm,
    L1Norm,
    L21Norm,
    NuclearNorm,
    SquaredNorm,
    conjugate_gradients,
    row_shrink,
    singular_value_threshold,
    soft_threshold,
)
from robustpca.parts.graphs import knn_graph, laplacian

examples = settings(max_examples=25)

# A path of five vertices with unequal weights, and one vertex that nobody knows.
ADJACENCY = sparse.diags_array([[1.0, 0.3, 2.0, 0.0]], offsets=[1], shape=(5, 5)).tocsr()
PATH = laplacian(ADJACENCY + ADJACENCY.T, normalized=False)

SHAPE = (5, 4)
# What is missing, zero, at a knee or a threshold below must occur; so must all between.
entries = st.sampled_from([0.0, 0.5, -0.5, 0.7, 1.0, -2.0]) | st.floats(-10, 10, width=32)
matrices = arrays(np.float64, SHAPE, elements=entries)
steps = st.sampled_from([1e-3, 0.5, 1.0, 2.0]) | st.floats(1e-3, 1e3)

# A new entry of LOSSES comes under the laws by itself; the others try several parameters.
ENTRY_LOSSES = [
    *(kind() for kind in LOSSES.values()),
    L1Norm(0.7),
    HuberNorm(0.7, 0.5),
    HuberNorm(3.0, 2.0),
    SquaredNorm(0.2),
]
TERMS = [
    *ENTRY_LOSSES,
    L21Norm(),
    L21Norm(0.7),
    NuclearNorm(),
    NuclearNorm(0.7),
    GraphSmoothness(PATH, 0.7),
]


def named(term):
    return "GraphSmoothness" if isinstance(term, GraphSmoothness) else repr(term)


every_term = pytest.mark.parametrize("term", TERMS, ids=named)
every_loss = pytest.mark.parametrize("loss", ENTRY_LOSSES, ids=repr)


def spectral_ball(A, radius):
    """Nearest matrix whose singular values are at most ``radius``."""
    left, values, right = np.linalg.svd(A, full_matrices=False)
    return (left * np.minimum(values, radius)) @ right


def row_balls(A, radius):
    """Nearest matrix whose rows are at most ``radius`` long."""
    return np.array([row * min(1, radius / max(np.linalg.norm(row), 1e-300)) for row in A])


@every_term
@examples
@given(A=matrices, other=matrices, step=steps, closeness=st.sampled_from([1.0, 1e-2, 1e-4]))
def test_a_proximal_step_beats_every_other_point(term, A, other, step, closeness):
    def cost(Z):
        return term.value(Z) + np.sum((Z - A) ** 2) / (2 * step)

    best = term.prox(A, step)
    near = best + closeness * (other - best)
    # The cost is strongly convex, so a point at a distance is worse by at least its square.
    worse = cost(best) + np.sum((near - best) ** 2) / (2 * step)
    assert cost(near) >= worse - 1e-12 * (1 + cost(near))


@every_term
@examples
@given(A=matrices, B=matrices, step=steps)
def test_proximal_steps_are_firmly_nonexpansive(term, A, B, step):
    moved = term.prox(A, step) - term.prox(B, step)
    assert np.sum(moved**2) <= np.vdot(moved, A - B) + 1e-12 * (1 + np.sum((A - B) ** 2))


@every_term
@examples
@given(A=matrices)
def test_a_step_of_zero_is_the_identity(term, A):
    np.testing.assert_allclose(term.prox(A, 0.0), A, rtol=0, atol=1e-13)


@every_loss
@examples
@given(A=matrices, step=steps)
def test_a_proximal_step_of_a_loss_is_optimal(loss, A, step):
    best = loss.prox(A, step)
    force = (A - best) / step
    # The force is a subgradient: it is feasible, and loss and conjugate add up to the product.
    if not isinstance(loss, SquaredNorm):
        assert np.abs(force).max() <= loss.weight * (1 + 1e-12) + 1e-12 / step
    product = np.vdot(best, force)
    total = loss.value(best) + loss.conjugate_of(float(np.sum(force**2)))
    assert total == pytest.approx(product, rel=1e-10, abs=1e-10 * (1 + 1 / step))


@pytest.mark.parametrize(
    ("term", "ball"),
    [
        (L1Norm(0.7), lambda A, radius: np.clip(A, -radius, radius)),
        (NuclearNorm(0.7), spectral_ball),
        (L21Norm(0.7), row_balls),
    ],
    ids=["l1", "nuclear", "l21"],
)
@examples
@given(A=matrices, step=steps)
def test_what_a_norm_takes_away_is_the_projection_on_its_dual_ball(term, ball, A, step):
    # Moreau: a point is its proximal step and the proximal step of the conjugate.
    projected = ball(A, 0.7 * step)
    np.testing.assert_allclose(A - term.prox(A, step), projected, rtol=0, atol=1e-12)
    # The two are aligned as a norm and its dual must be.
    aligned = np.vdot(term.prox(A, step), projected / step)
    assert term.value(term.prox(A, step)) == pytest.approx(aligned, rel=1e-9, abs=1e-9)


@examples
@given(A=matrices, step=steps)
def test_what_a_graph_takes_away_is_the_gradient_where_it_leads(A, step):
    term = GraphSmoothness(PATH, 0.7)
    best = term.prox(A, step)
    np.testing.assert_allclose(A - best, step * term.gradient(best), rtol=0, atol=1e-11)


@examples
@given(A=matrices, threshold=st.floats(0, 10))
def test_soft_threshold_is_the_textbook_formula(A, threshold):
    expected = np.sign(A) * np.maximum(np.abs(A) - threshold, 0)
    found = soft_threshold(A, threshold)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    # Zeros are exact: a sparse part is counted by them.
    np.testing.assert_array_equal(found == 0, np.abs(A) <= threshold)


@examples
@given(A=matrices, threshold=st.floats(0, 10))
def test_row_shrink_is_the_textbook_formula(A, threshold):
    expected = np.zeros_like(A)
    for row, out in zip(A, expected, strict=True):
        if row.any():
            out[:] = max(1 - threshold / np.linalg.norm(row), 0) * row
    np.testing.assert_allclose(row_shrink(A, threshold), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5), (1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 2.0, 100.0])
def test_singular_value_threshold_lowers_planted_singular_values(shape, threshold, rng):
    left = np.linalg.qr(rng.normal(size=(shape[0], min(shape))))[0]
    right = np.linalg.qr(rng.normal(size=(shape[1], min(shape))))[0]
    values = np.array([5.0, 3.0, 2.0, 0.5, 0.1])[: min(shape)]
    found = singular_value_threshold((left * values) @ right.T, threshold)
    expected = (left * np.maximum(values - threshold, 0)) @ right.T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@examples
@given(A=matrices, threshold=st.floats(0, 5), seed=st.integers(0, 99))
def test_singular_value_threshold_commutes_with_orthogonal_transforms(A, threshold, seed):
    rng = np.random.default_rng(seed)
    P, Q = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in SHAPE)
    turned = singular_value_threshold(P @ A @ Q.T, threshold)
    expected = P @ singular_value_threshold(A, threshold) @ Q.T
    np.testing.assert_allclose(turned, expected, rtol=0, atol=1e-12)
    flipped = singular_value_threshold(A.T, threshold).T
    np.testing.assert_allclose(flipped, singular_value_threshold(A, threshold), rtol=0, atol=1e-12)


def test_thresholding_nothing_gives_nothing():
    zeros = np.zeros((4, 3))
    for shrink in (soft_threshold, row_shrink, singular_value_threshold):
        for threshold in (0.0, 1.0):
            np.testing.assert_array_equal(shrink(zeros, threshold), zeros)


@examples
@given(A=matrices)
def test_values_agree_with_those_of_cvxpy(A):
    expected = {
        L1Norm(0.7): 0.7 * cp.norm1(A),
        SquaredNorm(0.7): 0.7 * cp.sum_squares(A) / 2,
        # Of slope one beyond the threshold; that of cvxpy has twice the threshold.
        HuberNorm(0.7, 0.5): 0.7 * cp.sum(cp.huber(A, 0.5)) / (2 * 0.5),
        HuberNorm(1.0, 2.0): cp.sum(cp.huber(A, 2.0)) / (2 * 2.0),
        L21Norm(0.7): 0.7 * cp.mixed_norm(A, 2, 1),
        NuclearNorm(0.7): 0.7 * cp.normNuc(A),
    }
    for term, formula in expected.items():
        assert term.value(A) == pytest.approx(formula.value, rel=1e-12, abs=1e-12), term


@pytest.mark.parametrize(
    ("loss", "entry", "value"),
    [
        (L1Norm(2.0), -3.0, 6.0),
        (SquaredNorm(2.0), 3.0, 9.0),
        (HuberNorm(1.0, 2.0), 1.0, 1 / 4),
        (HuberNorm(1.0, 2.0), 2.0, 1.0),
        (HuberNorm(1.0, 2.0), -5.0, 4.0),
        (HuberNorm(3.0, 2.0), 6.0, 15.0),
    ],
    ids=repr,
)
def test_values_worked_out_by_hand(loss, entry, value):
    assert loss.value(np.array([[entry, 0.0]])) == pytest.approx(value, rel=1e-15)


@examples
@given(A=matrices, threshold=st.floats(0.01, 5))
def test_huber_is_what_is_left_once_sparse_part_and_noise_are_split_best(A, threshold):
    large = soft_threshold(A, threshold)
    expected = np.abs(large).sum() + np.sum((A - large) ** 2) / (2 * threshold)
    assert HuberNorm(1.0, threshold).value(A) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@examples
@given(A=matrices)
def test_huber_lies_between_the_absolute_value_and_half_a_threshold_less(A):
    value, absolute = HuberNorm(1.0, 0.5).value(A), np.abs(A).sum()
    assert absolute - 0.25 * A.size - 1e-12 <= value <= absolute + 1e-12


def test_huber_with_a_tiny_threshold_is_the_absolute_value(rng):
    A = rng.normal(size=SHAPE)
    huber, l1 = HuberNorm(0.7, 1e-12), L1Norm(0.7)
    assert huber.value(A) == pytest.approx(l1.value(A), rel=1e-11)
    np.testing.assert_allclose(huber.prox(A, 0.4), l1.prox(A, 0.4), rtol=0, atol=1e-11)


@every_loss
@examples
@given(A=matrices, step=steps)
def test_the_two_numbers_of_the_dual_map_make_the_proximal_step(loss, A, step):
    slope, bound = loss.dual_map(step)
    expected = A - np.clip(slope * A, -bound, bound)
    np.testing.assert_allclose(loss.prox(A, step), expected, rtol=0, atol=1e-14)


@every_loss
def test_the_dual_map_of_several_steps_is_that_of_each(loss):
    several = np.array([1e-3, 0.5, 2.0, 1e4])
    slopes, bounds = (np.broadcast_to(part, 4) for part in loss.dual_map(several))
    for step, slope, bound in zip(several, slopes, bounds, strict=True):
        assert (slope, bound) == pytest.approx(loss.dual_map(step), rel=1e-15)


@every_loss
@examples
@given(A=matrices, scale=st.floats(1e-3, 1e3))
def test_a_loss_in_other_units_costs_the_same_but_for_its_degree(loss, A, scale):
    expected = scale**loss.degree * loss.value(A)
    assert loss.scaled(scale).value(scale * A) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@every_loss
@examples
@given(A=matrices, hidden=arrays(np.bool_, SHAPE), step=steps)
def test_missing_entries_cost_nothing_and_stay_missing(loss, A, hidden, step):
    holed = np.where(hidden, np.nan, A)
    expected = loss.value(np.where(hidden, 0.0, A))
    assert loss.value(holed) == pytest.approx(expected, rel=1e-13, abs=1e-300)
    moved = loss.prox(holed, step)
    np.testing.assert_array_equal(np.isnan(moved), hidden)
    np.testing.assert_array_equal(moved[~hidden], loss.prox(A, step)[~hidden])


@every_loss
def test_a_matrix_without_any_entry_costs_nothing(loss):
    assert loss.value(np.full(SHAPE, np.nan)) == 0


@every_term
def test_single_precision_stays_single(term, rng):
    A = rng.normal(size=SHAPE)
    single = term.prox(A.astype(np.float32), 0.3)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, term.prox(A, 0.3), rtol=0, atol=2e-6)
    assert type(term.value(A.astype(np.float32))) is float
    assert term.value(A.astype(np.float32)) == pytest.approx(term.value(A), rel=1e-6)


@every_term
def test_terms_leave_their_argument_alone(term, rng):
    A = rng.normal(size=SHAPE)
    A.flags.writeable = False
    before = A.copy()
    term.value(A)
    term.prox(A, 0.3)
    np.testing.assert_array_equal(A, before)


def test_the_value_of_many_small_entries_in_single_precision_is_not_lost():
    A = np.full((3000, 1000), 0.1, dtype=np.float32)
    assert L1Norm().value(A) == pytest.approx(3e5, rel=1e-7)
    assert SquaredNorm().value(A) == pytest.approx(1.5e4, rel=1e-6)
    assert L21Norm().value(A) == pytest.approx(3000 * np.sqrt(10), rel=1e-6)


@pytest.mark.parametrize("loss", [HuberNorm(1.0, 1e20), SquaredNorm()], ids=repr)
def test_values_of_large_entries_in_single_precision_do_not_overflow(loss):
    A = np.full((2, 2), 1e20, dtype=np.float32)
    assert loss.value(A) == pytest.approx(loss.value(A.astype(np.float64)), rel=1e-6)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_rows_are_shortened_whatever_their_unit(scale, rng):
    A = rng.normal(size=SHAPE)
    np.testing.assert_allclose(row_shrink(scale * A, scale) / scale, row_shrink(A, 1.0), atol=1e-12)


class TestGraphSmoothness:
    @pytest.fixture
    def graph(self, rng):
        return laplacian(knn_graph(rng.normal(size=(30, 3)), 4), normalized=False)

    def test_value_is_how_much_neighbours_differ(self, rng):
        A = rng.normal(size=SHAPE)
        weights = (ADJACENCY + ADJACENCY.T).toarray()
        differences = np.sum((A[:, None] - A[None]) ** 2, axis=-1)
        expected = 0.7 * np.sum(weights * differences) / 2
        assert GraphSmoothness(PATH, 0.7).value(A) == pytest.approx(expected, rel=1e-13)

    def test_gradient_is_the_slope_of_the_value(self, graph, rng):
        term = GraphSmoothness(graph, 0.7)
        A, direction = rng.normal(size=(2, 30, 4))
        # The value is a quadratic, so central differences are exact whatever the step.
        slope = (term.value(A + direction) - term.value(A - direction)) / 2
        assert np.vdot(term.gradient(A), direction) == pytest.approx(slope, rel=1e-11)

    @pytest.mark.parametrize("normalized", [True, False])
    def test_no_two_gradients_differ_by_more_than_lipschitz_says(self, normalized, rng):
        matrix = laplacian(knn_graph(rng.normal(size=(30, 3)), 4), normalized=normalized)
        values, vectors = np.linalg.eigh(matrix.toarray())
        term = GraphSmoothness(matrix, 0.7, values[-1])
        A, B = rng.normal(size=(2, 30, 4))
        change = np.linalg.norm(term.gradient(A) - term.gradient(B))
        assert change <= term.lipschitz * np.linalg.norm(A - B)
        # Along the roughest eigenvector they do differ by as much.
        rough = vectors[:, -1:]
        assert np.linalg.norm(term.gradient(rough)) == pytest.approx(term.lipschitz, rel=1e-12)

    def test_the_norm_of_a_normalised_laplacian_is_at_most_the_default(self, rng):
        matrix = laplacian(knn_graph(rng.normal(size=(30, 3)), 4), normalized=True)
        A = rng.normal(size=(30, 4))
        term = GraphSmoothness(matrix, 0.7)
        assert np.linalg.norm(term.gradient(A)) <= term.lipschitz * np.linalg.norm(A)

    @pytest.mark.parametrize("large", [False, True], ids=["inverse", "conjugate gradients"])
    @pytest.mark.parametrize("step", [1e-3, 0.5, 20.0, 1e4])
    def test_prox_solves_the_linear_system(self, large, step, graph, rng, monkeypatch):
        if large:
            monkeypatch.setattr(terms, "DENSE_VERTICES", 29)
        A = rng.normal(size=(30, 6))
        A[:, 1], A[:, 2] = 0.0, 1.0  # nothing, and a column that is smooth already
        expected = np.linalg.solve(np.eye(30) + 2 * step * 0.7 * graph.toarray(), A)
        found = GraphSmoothness(graph, 0.7).prox(A, step)
        # The condition number of the system times rounding error.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * (10 + 10 * step))
        np.testing.assert_array_equal(found[:, 1], 0.0)

    @pytest.mark.parametrize("large", [False, True], ids=["inverse", "conjugate gradients"])
    def test_each_step_has_its_own_answer(self, large, graph, rng, monkeypatch):
        if large:
            monkeypatch.setattr(terms, "DENSE_VERTICES", 29)
        A, term = rng.normal(size=(30, 4)), GraphSmoothness(graph, 0.7)
        for step in (0.5, 3.0, 0.5, 0.0, 0.1):
            expected = np.linalg.solve(np.eye(30) + 1.4 * step * graph.toarray(), A)
            np.testing.assert_allclose(term.prox(A, step), expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("large", [False, True], ids=["inverse", "conjugate gradients"])
    def test_a_dense_laplacian_will_do(self, large, graph, rng, monkeypatch):
        if large:
            monkeypatch.setattr(terms, "DENSE_VERTICES", 29)
        A = rng.normal(size=(30, 4))
        found = GraphSmoothness(graph.toarray(), 0.7).prox(A, 0.5)
        expected = GraphSmoothness(graph, 0.7).prox(A, 0.5)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("precision", [np.float32, np.float64])
    @pytest.mark.parametrize("large", [False, True], ids=["inverse", "conjugate gradients"])
    def test_single_precision_stays_single(self, large, precision, graph, rng, monkeypatch):
        if large:
            monkeypatch.setattr(terms, "DENSE_VERTICES", 29)
        term = GraphSmoothness(graph.astype(precision), 0.7)
        A = rng.normal(size=(30, 4))
        found = term.prox(A.astype(np.float32), 0.5)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, term.prox(A, 0.5), rtol=0, atol=3e-6)

    def test_a_strong_graph_leaves_the_mean_of_each_component(self, rng):
        A = rng.normal(size=SHAPE)
        found = GraphSmoothness(PATH, 1.0).prox(A, 1e9)
        np.testing.assert_allclose(found[:4], np.tile(A[:4].mean(axis=0), (4, 1)), atol=1e-6)
        # The vertex without neighbours carries no penalty.
        np.testing.assert_allclose(found[4], A[4], rtol=1e-12)

    def test_a_graph_without_edges_does_nothing(self, rng):
        A = rng.normal(size=SHAPE)
        term = GraphSmoothness(sparse.csr_array((5, 5)), 0.7)
        assert term.value(A) == 0
        np.testing.assert_allclose(term.prox(A, 3.0), A, rtol=1e-15)

    def test_weight_zero_does_nothing(self, rng):
        A = rng.normal(size=SHAPE)
        term = GraphSmoothness(PATH, 0.0)
        assert term.value(A) == 0
        np.testing.assert_array_equal(term.prox(A, 3.0), A)

    def test_conjugate_gradients_serve_columns_of_all_sizes(self, graph, rng):
        A = rng.normal(size=(30, 4)) * [1.0, 1e-6, 1e6, 1e-12]
        expected = np.linalg.solve(np.eye(30) + 3.0 * graph.toarray(), A)
        found = conjugate_gradients(graph, 3.0, A)
        error = np.linalg.norm(found - expected, axis=0) / np.linalg.norm(expected, axis=0)
        assert error.max() < 1e-10

    def test_conjugate_gradients_need_few_steps(self, graph, rng):
        class Counted:
            products = 0

            def __matmul__(self, A):
                self.products += 1
                return graph @ A

        counted = Counted()
        conjugate_gradients(counted, 0.5, rng.normal(size=(30, 4)))
        assert counted.products <= 31
