import numpy as np
import pytest

from robustpca.datasets import (
    drop_pixels,
    occlude_blocks,
    occlude_randomly,
    reset_entries,
    shift_samples,
)

SHAPE = (12, 10)

CORRUPTIONS = {
    "occlude_blocks": lambda X, **options: occlude_blocks(X, SHAPE, **options),
    "occlude_blocks with noise": lambda X, **options: occlude_blocks(
        X, SHAPE, fill="noise", **options
    ),
    "occlude_randomly": lambda X, **options: occlude_randomly(X, SHAPE, **options),
    "drop_pixels": lambda X, **options: drop_pixels(X, 0.3, **options),
    "reset_entries": reset_entries,
    "reset_entries, shared": lambda X, **options: reset_entries(X, shared=True, **options),
    "shift_samples": lambda X, **options: shift_samples(X, np.arange(1, 121), **options),
}
every_corruption = pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)


def block_sizes(mask):
    """Height and width of the block in each image, after checking that it is a full block."""
    sizes = []
    for image in mask.reshape(-1, *SHAPE):
        rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
        assert image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert image.sum() == len(rows) * len(columns)
        sizes.append((len(rows), len(columns)))
    return np.array(sizes)


@every_corruption
def test_entries_outside_the_mask_stay_and_those_inside_change(corrupt, rng):
    # No entry is 0, and no entry drawn anew from a continuous range repeats the old one.
    X = rng.uniform(1, 2, size=(40, 120))
    corrupted, mask = corrupt(X, random_state=0)
    assert mask.dtype == bool
    assert mask.any()
    np.testing.assert_array_equal(corrupted != X, mask)


@every_corruption
def test_the_input_is_not_modified(corrupt, rng):
    X = rng.uniform(1, 2, size=(40, 120))
    before = X.copy()
    corrupted, _ = corrupt(X, random_state=0)
    np.testing.assert_array_equal(X, before)
    assert not np.shares_memory(corrupted, X)


@every_corruption
def test_the_same_seed_gives_the_same_corruption_and_another_seed_another(corrupt, rng):
    X = rng.uniform(1, 2, size=(40, 120))
    first, again, other = (corrupt(X, random_state=seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@every_corruption
@pytest.mark.parametrize(
    ("given", "expected"),
    [("float32", "float32"), ("float64", "float64"), ("int64", "float64"), ("uint8", "float64")],
)
def test_floats_keep_their_type_and_integers_become_double(corrupt, given, expected, rng):
    X = rng.integers(1, 200, size=(40, 120)).astype(given)
    assert corrupt(X, random_state=0)[0].dtype == expected


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda X: occlude_blocks(X, SHAPE, samples=0),
        lambda X: occlude_blocks(X, SHAPE, area=0),
        lambda X: occlude_randomly(X, SHAPE, samples=0),
        lambda X: drop_pixels(X, 0),
        lambda X: reset_entries(X, samples=0),
        lambda X: reset_entries(X, features=0),
        lambda X: shift_samples(X, 5.0, samples=0),
    ],
)
def test_a_share_of_0_returns_an_identical_copy(corrupt, rng):
    X = rng.normal(size=(10, 120))
    corrupted, mask = corrupt(X)
    np.testing.assert_array_equal(corrupted, X)
    assert corrupted is not X
    assert not mask.any()


@pytest.mark.parametrize(
    ("of", "area", "size"),
    [
        ("area", 0.25, (6, 5)),
        ("area", 0.4, (8, 6)),
        ("area", 1.0, (12, 10)),
        ("area", 0.0001, (1, 1)),
        ("side", 0.25, (3, 2)),
        ("side", 0.5, (6, 5)),
    ],
)
def test_every_block_has_the_size_that_was_asked_for(of, area, size, rng):
    X = rng.uniform(1, 2, size=(30, 120))
    _, mask = occlude_blocks(X, SHAPE, area, of=of, random_state=0)
    assert (block_sizes(mask) == size).all()


def test_blocks_reach_every_place_of_the_image(rng):
    X = rng.uniform(1, 2, size=(400, 120))
    _, mask = occlude_blocks(X, SHAPE, 0.25, random_state=0)
    images = mask.reshape(-1, *SHAPE)
    tops, lefts = images.any(axis=2).argmax(axis=1), images.any(axis=1).argmax(axis=1)
    assert set(tops) == set(range(12 - 6 + 1))
    assert set(lefts) == set(range(10 - 5 + 1))


def test_blocks_cover_exactly_the_share_of_samples(rng):
    X = rng.uniform(1, 2, size=(33, 120))
    for samples, expected in ((0.2, 7), (0.5, 16), (1.0, 33)):
        _, mask = occlude_blocks(X, SHAPE, samples=samples, random_state=0)
        assert mask.any(axis=1).sum() == expected


def test_blocks_are_filled_as_asked(rng):
    X = rng.uniform(1, 2, size=(30, 120))
    for fill, expected in ((0, 0.0), (7.5, 7.5), ("mean", X.mean())):
        corrupted, mask = occlude_blocks(X, SHAPE, fill=fill, random_state=0)
        np.testing.assert_allclose(corrupted[mask], expected, rtol=1e-15)
    corrupted, mask = occlude_blocks(X, SHAPE, fill="noise", random_state=0)
    noise = corrupted[mask]
    assert X.min() <= noise.min() < 1.02
    assert 1.98 < noise.max() <= X.max()


def test_random_blocks_vary_within_the_bounds_of_their_area(rng):
    X = rng.uniform(1, 2, size=(1000, 120))
    _, mask = occlude_randomly(X, SHAPE, samples=0.5, random_state=0)
    covered = mask.any(axis=1)
    assert covered.sum() == 500
    sizes = block_sizes(mask[covered])
    heights, widths = sizes.T
    # The width is rounded to the nearest column, which moves the area by half a column.
    assert (heights * widths >= 0.25 * 120 - heights / 2).all()
    assert (heights * widths <= 0.5 * 120 + heights / 2).all()
    assert (heights * widths).min() < 0.3 * 120
    assert (heights * widths).max() > 0.45 * 120
    assert len(np.unique(sizes, axis=0)) > 10
    assert (heights < widths).any()
    assert (heights > widths).any()
    assert (heights / widths).max() < 2.5


@pytest.mark.parametrize("shape", [(2, 100), (100, 2)])
def test_random_blocks_keep_their_area_where_the_image_is_narrow(shape, rng):
    X = rng.uniform(1, 2, size=(50, 200))
    _, mask = occlude_randomly(X, shape, samples=1.0, min_area=0.5, max_area=0.5, random_state=0)
    assert (mask.sum(axis=1) == 100).all()


def test_every_row_loses_exactly_the_same_number_of_pixels(rng):
    X = rng.uniform(1, 2, size=(25, 120))
    for share, expected in ((0.1, 12), (0.33, 40), (1.0, 120)):
        corrupted, mask = drop_pixels(X, share, random_state=0)
        assert (mask.sum(axis=1) == expected).all()
        assert (corrupted[mask] == 0).all()
    assert len(np.unique(drop_pixels(X, 0.1, random_state=0)[1], axis=0)) == 25


def test_resets_have_exact_counts_and_stay_within_the_range(rng):
    X = rng.normal(size=(33, 47))
    corrupted, mask = reset_entries(X, samples=0.2, features=0.3, random_state=0)
    counts = mask.sum(axis=1)
    assert sorted(counts) == [0] * 26 + [14] * 7
    assert corrupted[mask].min() >= X.min()
    assert corrupted[mask].max() <= X.max()
    # Uniform on the range, not bell-shaped like the data: the spread tells the two apart.
    assert corrupted[mask].std() > 0.2 * np.ptp(X)


def test_resets_take_the_same_features_only_if_shared(rng):
    X = rng.normal(size=(50, 40))
    shared = reset_entries(X, shared=True, random_state=0)[1]
    apart = reset_entries(X, shared=False, random_state=0)[1]
    assert len(np.unique(shared[shared.any(axis=1)], axis=0)) == 1
    assert len(np.unique(apart[apart.any(axis=1)], axis=0)) == 10
    assert shared.sum() == apart.sum() == 10 * 8


def test_shifts_move_an_exact_number_of_samples_by_the_same_vector(rng):
    X, shift = rng.normal(size=(33, 4)), np.array([0.0, -3.0, 50.0, 1.0])
    before = shift.copy()
    corrupted, mask = shift_samples(X, shift, 0.2, random_state=0)
    moved = mask.any(axis=1)
    assert moved.sum() == 7
    # Whole samples are moved, also where the shift is 0.
    assert mask[moved].all()
    np.testing.assert_allclose(corrupted[moved] - X[moved], np.tile(shift, (7, 1)), atol=1e-12)
    np.testing.assert_array_equal(shift, before)
    everywhere, _ = shift_samples(X, 2.5, 1.0)
    np.testing.assert_array_equal(everywhere, X + 2.5)


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (lambda X: occlude_blocks(X, (5, 5)), r"image_shape=\(5, 5\) needs 25 features.* has 120"),
        (lambda X: occlude_blocks(X, (-12, -10)), r"image_shape=\(-12, -10\)"),
        (lambda X: occlude_randomly(X, (5, 5)), r"image_shape=\(5, 5\) needs 25 features"),
        (lambda X: occlude_blocks(X, SHAPE, area=25), "area=25 is not a share.* 0 to 1"),
        (lambda X: occlude_blocks(X, SHAPE, samples=3), "samples=3 is not a share of the 8"),
        (lambda X: occlude_blocks(X, SHAPE, of="width"), "of='width'.*'area' or 'side'"),
        (lambda X: occlude_blocks(X, SHAPE, fill="grey"), "fill='grey'.*'noise' or 'mean'"),
        (lambda X: occlude_blocks(X, SHAPE, fill=np.nan), "fill=nan is not a finite number"),
        (lambda X: occlude_randomly(X, SHAPE, min_area=0.6), "min_area=0.6 and max_area=0.5"),
        (lambda X: drop_pixels(X, -0.1), "share=-0.1 is not a share of the 120"),
        (lambda X: reset_entries(X, features=1.2), "features=1.2 is not a share of the 120"),
        (lambda X: shift_samples(X, [1, 2]), r"shift has shape \(2,\).* each of the 120 features"),
        (lambda X: shift_samples(X, np.inf), "shift has entries that are not finite"),
        (lambda X: shift_samples(X, 1, samples=-1), "samples=-1 is not a share of the 8"),
    ],
)
def test_wrong_arguments_are_refused_with_the_numbers(corrupt, message, rng):
    with pytest.raises(ValueError, match=message):
        corrupt(rng.uniform(1, 2, size=(8, 120)))
