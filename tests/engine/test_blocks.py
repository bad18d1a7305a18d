"""Blocks of rows, and the tiles that they are cut into."""

import numpy as np
import pytest
from scipy import sparse

from robustpca.engine import blocks as module
from robustpca.engine.blocks import (
    FEATURES,
    DenseBlock,
    NearBlock,
    SparseBlock,
    WideBlock,
    cached_rows,
    even_slices,
    slices,
)
from robustpca.engine.linalg import square_norms
from robustpca.engine.rows import ArrayRows

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
KINDS = [DenseBlock, NearBlock, SparseBlock]


def random_basis(rng, n_rows, n_columns):
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


@pytest.mark.parametrize(
    ("n_rows", "row_bytes", "at_least"),
    [(0, 8, 128), (1, 8, 128), (128, 1 << 20, 128), (1000, 1 << 20, 100), (1 << 19, 40, 128)],
)
def test_tiles_follow_each_other_and_fit_the_cache(n_rows, row_bytes, at_least):
    tiles = slices(n_rows, cached_rows(row_bytes, at_least))
    assert [i for tile in tiles for i in range(tile.start, tile.stop)] == list(range(n_rows))
    largest = max(at_least, module.TILE_BYTES // row_bytes)
    assert all(0 < tile.stop - tile.start <= largest for tile in tiles)
    assert all(tile.stop - tile.start == largest for tile in tiles[:-1])


def test_slices_may_begin_anywhere():
    assert slices(17, 5, 6) == [slice(6, 11), slice(11, 16), slice(16, 17)]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 1001])
def test_even_slices_differ_by_one_at_most_and_are_never_empty(length):
    places = even_slices(length, 4)
    assert [i for place in places for i in range(length)[place]] == list(range(length))
    assert len(places) == min(length, 4)
    sizes = [place.stop - place.start for place in places]
    assert not sizes or max(sizes) - min(sizes) <= 1


@pytest.fixture(params=["one tile", "many tiles"])
def _tiles(request, monkeypatch):
    if request.param == "many tiles":
        monkeypatch.setattr(module, "TILE_BYTES", 1)


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
    @pytest.mark.parametrize("kind", [DenseBlock, NearBlock])
    @pytest.mark.parametrize("far", [1.0, 1e6])
    def test_rough_sums_are_good_to_single_precision_however_far_the_centre(self, kind, far, rng):
        X, weights = rng.normal(size=(60, 7)) + far, rng.random(60)
        total, gram = kind(X, np.full(7, far), DOUBLE).rough_gram(weights)
        Z = X - far
        np.testing.assert_allclose(total, weights @ Z, atol=1e-13 * far)
        np.testing.assert_allclose(gram, (weights[:, None] * Z).T @ Z, atol=1e-5)
        assert np.abs(gram - (weights[:, None] * Z).T @ Z).max() > 1e-12
        assert not np.isfinite(kind(1e30 * X, np.zeros(7), DOUBLE).rough_gram(weights)[1]).all()
        A = rng.normal(size=(60, 3))
        adjoint = kind(X, np.full(7, far), DOUBLE).rough_adjoint(A)
        np.testing.assert_allclose(adjoint, Z.T @ A, atol=1e-4)
        assert np.abs(adjoint - Z.T @ A).max() > 1e-12

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
    @pytest.mark.parametrize("kind", KINDS)
    def test_centred_rows_or_columns_or_some_rows_of_them(self, kind, dtype, tolerance, rng):
        X = sparse_rows(rng).astype(dtype)
        center = rng.normal(size=7).astype(dtype).astype(DOUBLE)
        block, centred = as_block(kind, X, center, dtype), X.astype(DOUBLE) - center
        chosen, some = rng.random(300) < 0.2, slice(2, 5)
        for found, expected in [
            (block.dense(), centred),
            (block.dense(some), centred[:, some]),
            (block.select(chosen).dense(), centred[chosen]),
        ]:
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        assert isinstance(block.select(chosen), kind)

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


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("n_features", [1, 300, FEATURES + 5, 3 * FEATURES])
@pytest.mark.parametrize("n_columns", [1, 3, 16])
def test_wide_blocks_multiply_as_others_do(dtype, n_features, n_columns, rng):
    X = rng.normal(size=(37, n_features)).astype(dtype)
    center = rng.normal(size=n_features).astype(dtype).astype(float)
    wide, dense = (kind(X, center, np.dtype(dtype)) for kind in (WideBlock, DenseBlock))
    basis, A = rng.normal(size=(n_features, n_columns)), rng.normal(size=(37, n_columns))
    atol = (1e-4 if dtype == np.float32 else 1e-11) * np.sqrt(n_features)
    np.testing.assert_allclose(wide.project(basis), dense.project(basis), atol=atol)
    np.testing.assert_allclose(wide.adjoint(A), dense.adjoint(A), atol=atol)
    np.testing.assert_allclose(wide.square_norms(), dense.square_norms(), rtol=1e-5)
    assert wide.project(basis).dtype == wide.adjoint(A).dtype == dtype


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_a_sum_in_parts_is_the_sum(dtype, rng, monkeypatch):
    X = (rng.normal(size=(40, 3 * FEATURES + 7)) + 1).astype(dtype)
    rows, A = ArrayRows(X).median_centred(5, WideBlock), rng.normal(size=(40, 5))
    assert isinstance(rows.block(0, 1), WideBlock)
    expected = (X - rows.center).T @ A
    whole = rows.adjoint(A)
    monkeypatch.setattr(module, "TERM_BYTES", 1)
    np.testing.assert_array_equal(rows.adjoint(A), whole)
    np.testing.assert_allclose(whole, expected, atol=1e-3 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("kind", [DenseBlock, NearBlock, SparseBlock, WideBlock])
def test_rounding_of_a_product_with_a_unit_vector_is_bounded(kind, dtype, rng):
    X, center = rng.normal(size=(60, 2500)), 3 * rng.normal(size=2500)
    X, center = (A.astype(dtype) for A in (X + center, center))
    unit = rng.normal(size=2500).astype(dtype)
    unit /= np.linalg.norm(unit)
    exact = X.astype(np.longdouble) - center
    lengths = np.sqrt(np.sum(exact**2, axis=1)).astype(float)
    error = as_block(kind, X, center.astype(DOUBLE), dtype).project(unit[:, None])[:, 0]
    error = np.abs(error - exact @ unit.astype(np.longdouble)).astype(float) / lengths
    bound = kind.rounding(2500, 2 * np.linalg.norm(center) / lengths)
    assert np.all(error <= bound * np.finfo(dtype).eps / 2)
