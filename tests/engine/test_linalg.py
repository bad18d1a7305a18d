import numpy as np
import pytest
from scipy import sparse

from robustpca.engine import linalg
from robustpca.engine.linalg import (
    column_percentiles,
    csr_of,
    flip_signs,
    in_safe_units,
    median,
    medians,
    orthonormal,
    principal_axes,
    root_between,
    selected,
    square_norms,
)

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def random_basis(rng, n_rows, n_columns):
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


def assert_orthonormal(Q, against=None):
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), rtol=0, atol=1e-14)
    if against is not None:
        np.testing.assert_allclose(against.T @ Q, 0, rtol=0, atol=1e-14)


def assert_spans(Q, A, atol=1e-13):
    np.testing.assert_allclose(Q @ (Q.T @ A), A, rtol=0, atol=atol)


class TestOrthonormal:
    @pytest.mark.parametrize("shape", [(7, 1), (7, 4), (7, 7)])
    def test_columns_are_orthonormal_and_span_the_same_space(self, shape, rng):
        A = rng.normal(size=shape)
        Q = orthonormal(A)
        assert Q.shape == shape
        assert_orthonormal(Q)
        assert_spans(Q, A)

    def test_columns_of_very_different_lengths_are_all_kept(self, rng):
        A = rng.normal(size=(7, 3)) * [1e-12, 1, 1e12]
        Q = orthonormal(A)
        assert_orthonormal(Q)
        assert_spans(Q, A / np.linalg.norm(A, axis=0))

    @pytest.mark.parametrize("rank", [0, 1, 2])
    def test_a_lack_of_rank_is_made_up_for(self, rank, rng):
        A = rng.normal(size=(7, rank)) @ rng.normal(size=(rank, 4))
        Q = orthonormal(A)
        assert Q.shape == (7, 4)
        assert_orthonormal(Q)
        assert_spans(Q, A)

    def test_equal_and_zero_columns_are_replaced(self, rng):
        x, y = rng.normal(size=(2, 6))
        A = np.column_stack([x, np.zeros(6), x, y])
        Q = orthonormal(A)
        assert_orthonormal(Q)
        assert_spans(Q, A)

    def test_the_result_is_orthogonal_to_another_basis(self, rng):
        against, A = random_basis(rng, 9, 3), rng.normal(size=(9, 4))
        Q = orthonormal(A, against=against)
        assert Q.shape == (9, 4)
        assert_orthonormal(Q, against)
        assert_spans(np.column_stack([against, Q]), A)

    def test_another_basis_without_columns_makes_no_difference(self, rng):
        A = rng.normal(size=(6, 3))
        np.testing.assert_array_equal(orthonormal(A, against=np.empty((6, 0))), orthonormal(A))

    @pytest.mark.parametrize("seed", range(20))
    def test_columns_inside_the_other_basis_are_replaced(self, seed):
        rng = np.random.default_rng(seed)
        against = random_basis(rng, 9, 4)
        inside, free = against @ rng.normal(size=(4, 2)), rng.normal(size=(9, 1))
        Q = orthonormal(np.column_stack([inside, free]), against=against)
        assert_orthonormal(Q, against)
        assert_spans(np.column_stack([against, Q]), free)

    @pytest.mark.parametrize("seed", range(20))
    def test_columns_that_leave_the_other_basis_by_little_are_not_lost(self, seed):
        rng = np.random.default_rng(seed)
        whole = random_basis(rng, 9, 5)
        against, direction = whole[:, :4], whole[:, 4:]
        Q = orthonormal(against @ rng.normal(size=(4, 1)) + 1e-8 * direction, against=against)
        assert_orthonormal(Q, against)
        # The column is rounded to 1e-16, so 1e-8 of it tells a direction to 1e-8 or so.
        assert_spans(Q, direction, atol=2e-7)

    def test_the_two_bases_may_fill_the_space(self, rng):
        against = random_basis(rng, 6, 4)
        Q = orthonormal(against[:, :2], against=against)
        assert_orthonormal(np.column_stack([against, Q]))

    def test_its_arguments_are_not_changed(self, rng):
        A, against = rng.normal(size=(6, 2)), random_basis(rng, 6, 2)
        A.flags.writeable = against.flags.writeable = False
        orthonormal(A, against=against)


class TestPrincipalAxes:
    def test_values_fall_and_rebuild_the_matrix_with_their_axes(self, rng):
        A = rng.normal(size=(12, 5))
        gram = A.T @ A
        values, axes = principal_axes(gram)
        assert np.all(np.diff(values) <= 0)
        assert_orthonormal(axes)
        np.testing.assert_allclose(axes * values @ axes.T, gram, rtol=0, atol=1e-13)

    def test_planted_values_and_axes_are_found(self, rng):
        axes = random_basis(rng, 5, 5)
        planted = np.array([9.0, 4.0, 2.0, 1.0, 0.5])
        values, found = principal_axes(axes * planted @ axes.T)
        np.testing.assert_allclose(values, planted, rtol=1e-13)
        np.testing.assert_allclose(np.abs(axes.T @ found), np.eye(5), rtol=0, atol=1e-13)

    @pytest.mark.parametrize("seed", range(10))
    def test_values_are_never_negative(self, seed):
        a = np.random.default_rng(seed).normal(size=(2, 8))
        values, axes = principal_axes(a.T @ a)
        assert np.all(values >= 0)
        np.testing.assert_allclose(values[2:], 0, rtol=0, atol=1e-13)
        assert_orthonormal(axes)

    def test_a_zero_matrix_keeps_the_coordinate_axes_in_order(self):
        values, axes = principal_axes(np.zeros((4, 4)))
        np.testing.assert_array_equal(values, np.zeros(4))
        np.testing.assert_array_equal(axes, np.eye(4))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_matrix_is_not_changed(self, rng, dtype):
        a = rng.normal(size=(6, 4)).astype(dtype)
        gram = a.T @ a
        gram.flags.writeable = False
        principal_axes(gram)

    def test_single_precision_is_computed_in_single_precision(self, rng, monkeypatch):
        # NumPy's eigenvectors of it would be those of double precision, rounded.
        monkeypatch.setattr(np.linalg, "eigh", None)
        a = rng.normal(size=(300, 40)).astype(np.float32)
        gram = a.T @ a
        values, axes = principal_axes(gram)
        assert values.dtype == axes.dtype == np.float32
        size = float(values[0])
        np.testing.assert_allclose(axes.T @ axes, np.eye(40), rtol=0, atol=1e-5)
        np.testing.assert_allclose(axes * values @ axes.T, gram, rtol=0, atol=1e-5 * size)


class TestFlipSigns:
    def test_the_largest_entry_of_each_row_becomes_positive(self, rng):
        components = rng.normal(size=(50, 7))
        flipped = flip_signs(components)
        np.testing.assert_array_equal(flipped.max(axis=1), np.abs(components).max(axis=1))
        np.testing.assert_array_equal(np.abs(flipped), np.abs(components))
        signs = flipped / components
        np.testing.assert_array_equal(signs, np.broadcast_to(signs[:, :1], signs.shape))

    def test_a_component_and_its_negative_become_the_same(self, rng):
        components = rng.normal(size=(20, 5))
        np.testing.assert_array_equal(flip_signs(-components), flip_signs(components))

    def test_the_first_entry_decides_a_tie(self):
        flipped = flip_signs(np.array([[0.1, -0.7, 0.7], [0.1, 0.7, -0.7]]))
        np.testing.assert_array_equal(flipped, [[-0.1, 0.7, -0.7], [0.1, 0.7, -0.7]])

    @pytest.mark.parametrize("error", [-1e-13, 1e-13])
    def test_rounding_does_not_decide_a_tie(self, error):
        flipped = flip_signs(np.array([[0.1, -0.7, 0.7 + error]]))
        assert flipped[0, 1] == 0.7

    def test_a_clear_difference_does_decide(self):
        flipped = flip_signs(np.array([[0.1, -0.7, 0.7001]]))
        np.testing.assert_array_equal(flipped, [[0.1, -0.7, 0.7001]])

    def test_a_zero_row_stays_zero(self):
        np.testing.assert_array_equal(flip_signs(np.zeros((2, 3))), np.zeros((2, 3)))

    def test_the_components_are_not_changed(self):
        components = np.array([[-2.0, 1.0]])
        flip_signs(components)
        np.testing.assert_array_equal(components, [[-2.0, 1.0]])


def test_square_norms_of_single_precision_are_summed_in_double(rng):
    A = rng.normal(size=(4, 10_000)).astype(SINGLE)
    expected = np.sum(A.astype(DOUBLE) ** 2, axis=1)
    np.testing.assert_allclose(square_norms(A), expected, rtol=1e-13)
    assert square_norms(A).dtype == DOUBLE


def test_square_norms_of_bytes_do_not_overflow():
    np.testing.assert_array_equal(square_norms(np.full((2, 3), 255, np.uint8)), [195075, 195075])


@pytest.mark.parametrize(
    ("columns", "taken"), [([0], [0]), ([1, 2], [1, 2]), ([0, 1, 2], [2, 3]), ([], [0])]
)
def test_columns_that_vanish_are_replaced_outside_of_the_given_span(columns, taken):
    axes = np.eye(6)
    A = axes[:, columns] if columns else np.zeros((6, 1))
    Q = orthonormal(A, against=axes[:, taken])
    np.testing.assert_allclose(Q.T @ Q, np.eye(A.shape[1]), atol=1e-14)
    np.testing.assert_allclose(axes[:, taken].T @ Q, 0.0, atol=1e-14)


def test_percentiles_of_columns_are_those_of_numpy_without_missing_entries(rng):
    A = rng.normal(size=(57, 6))
    A[rng.random(A.shape) < 0.2] = np.nan
    A[3, 4], A[:, 5] = 1.0, np.nan
    found = column_percentiles(A, [10, 50, 90])
    expected = np.nanpercentile(A[:, :5], [10, 50, 90], axis=0)
    np.testing.assert_allclose(found[:, :5], expected, rtol=1e-12)
    assert np.isnan(found[:, 5]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, bool])
@pytest.mark.parametrize("shape", [(30, 7), (1, 9), (9, 1), (0, 4), (4, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_sparse_array_is_that_of_scipy(dtype, shape, order, rng):
    A = np.where(rng.random(shape) < 0.2, rng.normal(size=shape), 0.0).astype(dtype, order=order)
    A[1:2] = 0
    A[2:3, :1] = np.nan
    found, expected = csr_of(A), sparse.csr_array(A)
    assert found.dtype == expected.dtype
    assert found.indices.dtype == expected.indices.dtype == np.int32
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("n_values", [1, 2, 7, 300, 301])
@pytest.mark.parametrize("kind", ["random", "ordered", "two values", "misleading sample"])
def test_a_value_is_selected_by_its_place(kind, n_values, rng, monkeypatch):
    monkeypatch.setattr(linalg, "MANY_VALUES", 100)
    monkeypatch.setattr(linalg, "SAMPLED_VALUES", 60)
    values = rng.normal(size=n_values)
    if kind == "ordered":
        values.sort()
    elif kind == "two values":
        values = np.sign(values)
    elif kind == "misleading sample":
        values[:: max(1, n_values // 60)] += 100
    ordered = np.sort(values)
    for rank in {0, n_values // 10, n_values // 2, n_values - 1}:
        assert selected(values, rank) == ordered[rank]


@pytest.mark.parametrize("n_values", [1, 2, 7, 1000, 200_000, 200_001])
def test_medians_are_those_of_numpy(n_values, rng):
    values = rng.standard_cauchy(n_values)
    assert median(values) == np.median(values)
    assert median(np.zeros(n_values)) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_values", [1, 2, 7, 1000])
def test_medians_of_rows_are_those_of_numpy_in_any_layout(n_values, dtype, rng):
    A = rng.standard_cauchy((5, n_values)).astype(dtype)
    for rows in (A, np.asfortranarray(A)):
        np.testing.assert_array_equal(medians(rows), np.median(A, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_safe_units_are_a_power_of_two(dtype, rng):
    for size in (np.finfo(dtype).tiny, 1.0, np.finfo(dtype).max / 8):
        A = (rng.uniform(-1, 1, size=(4, 3)) * size).astype(dtype)
        found = in_safe_units(A)
        assert found.dtype == dtype
        assert 0.5 <= np.abs(found).max() < 1
        np.testing.assert_array_equal(found * (A.flat[0] / found.flat[0]), A)
    assert not in_safe_units(np.zeros((2, 2))).any()


@pytest.mark.parametrize("power", [1, 3, 9])
def test_a_root_is_found_where_values_vanish_too_fast_for_the_tolerance(power):
    # SciPy ends in an error for the higher powers, after a hundred steps.
    found = root_between(lambda x: (x - 1 / 3) ** power, 0.0, 1.0, 1e-16)
    assert found == pytest.approx(1 / 3, abs=1e-9)
