import numpy as np
import pytest
from scipy import sparse

from robustpca.engine import linalg
from robustpca.engine.linalg import (
    DenseBlock,
    NearBlock,
    SparseBlock,
    flip_signs,
    orthonormal,
    principal_axes,
    square_norms,
    tile_slices,
)

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
KINDS = [DenseBlock, NearBlock, SparseBlock]


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

    def test_the_matrix_is_not_changed(self, rng):
        a = rng.normal(size=(6, 4))
        gram = a.T @ a
        gram.flags.writeable = False
        principal_axes(gram)


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
    ("n_rows", "row_bytes", "at_least"),
    [(0, 8, 128), (1, 8, 128), (128, 1 << 20, 128), (1000, 1 << 20, 100), (1 << 19, 40, 128)],
)
def test_tiles_follow_each_other_and_fit_the_cache(n_rows, row_bytes, at_least):
    tiles = list(tile_slices(n_rows, row_bytes, at_least))
    assert [i for tile in tiles for i in range(tile.start, tile.stop)] == list(range(n_rows))
    largest = max(at_least, linalg.TILE_BYTES // row_bytes)
    assert all(0 < tile.stop - tile.start <= largest for tile in tiles)
    assert all(tile.stop - tile.start == largest for tile in tiles[:-1])


@pytest.fixture(params=["one tile", "many tiles"])
def _tiles(request, monkeypatch):
    if request.param == "many tiles":
        monkeypatch.setattr(linalg, "TILE_BYTES", 1)


def as_block(kind, X, center, dtype):
    return kind(sparse.csr_matrix(X) if kind is SparseBlock else X, center, dtype)


def sparse_rows(rng, n_samples=300, n_features=7):
    """Rows with many zeros, some of them empty, so that all kinds of block have work to do."""
    X = rng.normal(size=(n_samples, n_features)) * (rng.uniform(size=(n_samples, n_features)) < 0.5)
    X[5] = 0
    return X


def assert_agrees_with_numpy(block, centred, rng, tolerance):
    """Compare all that a block does with the same done on the dense array ``centred``."""
    n, d = centred.shape
    basis, other = random_basis(rng, d, 3), rng.normal(size=(n, 2))
    weights, chosen = rng.uniform(size=n), rng.integers(0, n, size=20)
    weights[:3] = 0
    scale = np.linalg.norm(centred, axis=1).max()

    def assert_close(actual, expected, size):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)

    assert len(block) == n
    taken = block.take(chosen)
    assert taken.dtype == DOUBLE
    assert_close(taken, centred[chosen], scale)

    codes, norms = block.coordinates(basis)
    assert codes.dtype == block.project(basis).dtype == block.dtype
    assert_close(codes, centred @ basis, scale)
    assert_close(block.project(basis), centred @ basis, scale)
    assert_close(norms, np.sum(centred**2, axis=1), scale**2)
    assert_close(block.square_norms(), np.sum(centred**2, axis=1), scale**2)

    residuals = centred - centred @ basis @ basis.T
    distances = block.square_distances(codes, norms, basis)
    assert_close(distances, np.sum(residuals**2, axis=1), scale**2)
    assert np.all(distances >= 0)

    adjoint = block.adjoint(other)
    assert adjoint.dtype == DOUBLE
    assert_close(adjoint, centred.T @ other, scale * np.abs(other).sum())

    for given, used in [(None, np.ones(n)), (weights, weights)]:
        total, gram = block.weighted_gram(given)
        assert total.dtype == gram.dtype == DOUBLE
        assert_close(total, used @ centred, scale * used.sum())
        assert_close(gram, (centred * used[:, None]).T @ centred, scale**2 * used.sum())


# Double precision leaves 1e-16 per operation. Single precision leaves 6e-8, and rows are
# multiplied in it, so a few units of that are all that can be asked.
PRECISIONS = [pytest.param(DOUBLE, 1e-14, id="float64"), pytest.param(SINGLE, 5e-7, id="float32")]


@pytest.mark.usefixtures("_tiles")
class TestBlocks:
    @pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_block_agrees_with_the_centred_array(self, kind, dtype, tolerance, rng):
        X = sparse_rows(rng).astype(dtype)
        center = rng.normal(size=7).astype(dtype).astype(DOUBLE)
        block = as_block(kind, X, center, dtype)
        assert_agrees_with_numpy(block, X.astype(DOUBLE) - center, rng, tolerance)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_block_around_the_origin_agrees_with_the_array(self, kind, rng):
        X = sparse_rows(rng)
        assert_agrees_with_numpy(as_block(kind, X, np.zeros(7), DOUBLE), X, rng, 1e-14)

    @pytest.mark.parametrize("kind", KINDS)
    def test_bytes_do_not_wrap_around(self, kind, rng):
        X = rng.integers(0, 256, size=(300, 7), dtype=np.uint8)
        center = np.full(7, 127.5)
        block = as_block(kind, X, center, DOUBLE)
        assert_agrees_with_numpy(block, X.astype(DOUBLE) - center, rng, 1e-13)

    @pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.bool_])
    def test_a_dense_block_reads_numbers_of_any_type(self, dtype, rng):
        X = rng.integers(0, 2, size=(300, 7)).astype(dtype)
        block = DenseBlock(X, np.full(7, 0.75), DOUBLE)
        assert_agrees_with_numpy(block, X.astype(DOUBLE) - 0.75, rng, 1e-14)

    @pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
    @pytest.mark.parametrize("kind", [DenseBlock, NearBlock])
    @pytest.mark.parametrize("layout", ["fortran", "every other row", "every other column"])
    def test_the_layout_in_memory_does_not_matter(self, kind, layout, dtype, tolerance, rng):
        wide = rng.normal(size=(600, 14)).astype(dtype)
        X = {
            "fortran": np.asfortranarray(wide[:300, :7]),
            "every other row": wide[::2, :7],
            "every other column": wide[:300, ::2],
        }[layout]
        assert X.shape == (300, 7)
        center = rng.normal(size=7).astype(dtype).astype(DOUBLE)
        block = kind(X, center, dtype)
        assert_agrees_with_numpy(block, X.astype(DOUBLE) - center, rng, tolerance)

    def test_a_dense_block_loses_no_digits_to_a_large_offset(self, rng):
        # Multiples of 2^-20 below 2^10 stay exact when 10^6 is added, so the truth is known.
        small = np.round(rng.normal(size=(300, 7)) * 2**20) / 2**20
        offset = np.array([1e6, -1e6, 1e6, 1e6, 0, -1e6, 1e6])
        X = small + offset
        np.testing.assert_array_equal(X - offset, small)
        assert_agrees_with_numpy(DenseBlock(X, offset, DOUBLE), small, rng, 1e-14)

    def test_a_dense_block_subtracts_before_it_multiplies_in_single_precision_too(self, rng):
        # Multiples of 2^-8 below 8 stay exact in single precision when 2^14 is added.
        small = np.round(rng.uniform(-4, 4, size=(300, 7)) * 2**8) / 2**8
        X = (small + 2**14).astype(SINGLE)
        np.testing.assert_array_equal(X.astype(DOUBLE) - 2**14, small)
        block = DenseBlock(X, np.full(7, 2.0**14), SINGLE)
        assert_agrees_with_numpy(block, small, rng, 5e-7)

    def test_other_blocks_lose_no_more_digits_than_the_centre_is_longer_than_the_rows(self, rng):
        small = np.round(rng.normal(size=(300, 7)) * 2**20) / 2**20
        X = small + 1000.0
        # The centre is 1e3 as long as the rows, so 1e-16 becomes 1e-13 ...
        assert_agrees_with_numpy(NearBlock(X, np.full(7, 1e3), DOUBLE), small, rng, 1e-12)
        # ... and 1e-10 where a difference of squares is taken.
        block = as_block(SparseBlock, X, np.full(7, 1e3), DOUBLE)
        assert_agrees_with_numpy(block, small, rng, 1e-9)

    @pytest.mark.parametrize("dtype", [DOUBLE, SINGLE, np.dtype(np.uint8)])
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_block_never_changes_what_it_is_given(self, kind, dtype, rng):
        X = rng.integers(0, 3, size=(300, 7)).astype(dtype)
        given = sparse.csr_matrix(X) if kind is SparseBlock else X
        center, basis, other = rng.normal(size=7), random_basis(rng, 7, 3), np.ones((300, 2))
        weights = rng.uniform(size=300)
        for array in (center, basis, other, weights, *([] if kind is SparseBlock else [X])):
            array.flags.writeable = False
        before = X.copy()
        block = kind(given, center, SINGLE if dtype == SINGLE else DOUBLE)
        block.take(np.arange(5))
        codes, norms = block.coordinates(basis)
        codes, norms = codes.copy(), norms.copy()
        codes.flags.writeable = norms.flags.writeable = False
        block.project(basis)
        block.square_norms()
        block.square_distances(codes, norms, basis)
        block.adjoint(other)
        block.weighted_gram()
        block.weighted_gram(weights)
        np.testing.assert_array_equal(given.toarray() if kind is SparseBlock else given, before)

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_row_and_one_column_are_enough(self, kind, rng):
        X = np.array([[3.0]])
        block = as_block(kind, X, np.array([1.0]), DOUBLE)
        codes, norms = block.coordinates(np.ones((1, 1)))
        assert (codes[0, 0], norms[0]) == (2.0, 4.0)
        assert block.square_distances(codes, norms, np.ones((1, 1)))[0] == 0
        total, gram = block.weighted_gram(np.array([0.25]))
        np.testing.assert_allclose([total[0], gram[0, 0]], [0.5, 1.0], rtol=1e-15)

    @pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
    def test_all_centred_rows_can_be_had_at_once(self, dtype, tolerance, rng):
        X = rng.normal(size=(300, 7)).astype(dtype)
        center = rng.normal(size=7).astype(dtype).astype(DOUBLE)
        centred = DenseBlock(X, center, dtype).dense()
        assert centred.dtype == dtype
        np.testing.assert_allclose(centred, X.astype(DOUBLE) - center, rtol=0, atol=tolerance)

    @pytest.mark.parametrize("kind", [DenseBlock, NearBlock])
    @pytest.mark.parametrize(
        ("dtype", "off", "tolerance"),
        # The row itself is rounded to 1e-16 (6e-8) of its length, that is 1e-8 (6e-5) of its
        # distance; the norm minus that of the codes would be all error at such a distance.
        [(DOUBLE, 1e-8, 1e-6), (SINGLE, 1e-3, 2e-3)],
        ids=["float64", "float32"],
    )
    def test_distances_of_rows_near_the_subspace_are_accurate(
        self, kind, dtype, off, tolerance, rng
    ):
        whole = random_basis(rng, 20, 8)
        basis, outside = whole[:, :4], whole[:, 4:]
        away = rng.normal(size=(300, 4))
        rows = 3 * rng.normal(size=(300, 4)) @ basis.T + off * away @ outside.T
        rows = rows.astype(dtype)
        block = kind(rows, np.zeros(20), dtype)
        distances = block.square_distances(*block.coordinates(basis), basis)
        expected = off**2 * np.sum(away**2, axis=1)
        # Rows that happen to lie nearer than the rest have less to be accurate about.
        clear = expected > off**2
        np.testing.assert_allclose(distances[clear], expected[clear], rtol=tolerance)
        naive = block.square_norms() - square_norms(block.project(basis))
        assert np.median(np.abs(naive - expected)[clear] / expected[clear]) > 10 * tolerance

    @pytest.mark.parametrize("kind", [DenseBlock, NearBlock])
    def test_rows_on_the_subspace_are_at_no_distance(self, kind, rng):
        basis = random_basis(rng, 20, 4)
        rows = rng.normal(size=(300, 4)) @ basis.T
        rows[7] = 0
        block = kind(rows, np.zeros(20), DOUBLE)
        distances = block.square_distances(*block.coordinates(basis), basis)
        # Rounding leaves vectors of 1e-15, whose square is 1e-30.
        assert np.all((distances >= 0) & (distances < 1e-28))
        assert distances[7] == 0

    def test_distances_of_sparse_rows_are_good_to_the_rounding_of_their_norms(self, rng):
        basis = random_basis(rng, 20, 4)
        rows = rng.normal(size=(300, 4)) @ basis.T
        block = as_block(SparseBlock, rows, np.zeros(20), DOUBLE)
        distances = block.square_distances(*block.coordinates(basis), basis)
        assert np.all((distances >= 0) & (distances < 1e-14 * square_norms(rows).max()))


@pytest.mark.parametrize(
    ("columns", "taken"), [([0], [0]), ([1, 2], [1, 2]), ([0, 1, 2], [2, 3]), ([], [0])]
)
def test_columns_that_vanish_are_replaced_outside_of_the_given_span(columns, taken):
    axes = np.eye(6)
    A = axes[:, columns] if columns else np.zeros((6, 1))
    Q = orthonormal(A, against=axes[:, taken])
    np.testing.assert_allclose(Q.T @ Q, np.eye(A.shape[1]), atol=1e-14)
    np.testing.assert_allclose(axes[:, taken].T @ Q, 0.0, atol=1e-14)
