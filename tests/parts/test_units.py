"""Whether columns have different units, and what is subtracted and divided by."""

import numpy as np
import pytest
from sklearn import datasets

from robustpca.parts.units import Differences, column_units, spreads, unit_differences


def table(seed=0, n=400, d=20, offset=0.0, decades=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
    return X * 10 ** rng.uniform(0, decades, d) + rng.uniform(-offset, offset, d)


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_measured_tables_have_different_units(name):
    found = unit_differences(getattr(datasets, f"load_{name}")().data)
    assert found.medians
    assert found.spreads


def test_pixels_and_lengths_share_a_unit():
    assert unit_differences(datasets.load_digits().data) == Differences()
    # Four columns are few, so that offsets are not left in the data.
    assert unit_differences(datasets.load_iris().data) == Differences(lone=True)


@pytest.mark.parametrize("seed", range(10))
def test_offsets_and_scales_of_a_table_are_noticed_and_their_absence_too(seed):
    assert unit_differences(table(seed)) == Differences()
    assert unit_differences(table(seed, offset=300)).medians
    assert unit_differences(table(seed, decades=4)).spreads
    assert unit_differences(table(seed) + 1e6) == Differences(far=True)


def test_a_photograph_shares_a_unit_though_its_pixels_differ():
    photograph = datasets.load_sample_image("china.jpg").mean(axis=2)
    # Parts of one picture under changing light: bright and dark pixels stay what they are.
    light = np.random.default_rng(0).uniform(0.9, 1.1, size=(60, 1))
    frames = light * photograph[::8, ::8].reshape(1, -1)
    spread = np.std(frames, axis=0)
    assert np.std(np.median(frames, axis=0)) > 3 * np.median(spread)
    assert unit_differences(frames) == Differences()


@pytest.mark.parametrize("seed", range(10))
def test_medians_that_are_zero_but_for_chance_make_no_image_of_a_table(seed):
    # Medians of columns in ever larger units grow together, however near to zero they are.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 5)) @ rng.normal(size=(5, 64)) + 0.1 * rng.normal(size=(1000, 64))
    X[rng.random(X.shape) < 0.01] += 10
    assert unit_differences(X * np.geomspace(0.01, 100, 64)) == Differences(spreads=True)


def test_missing_wrong_and_constant_entries_do_not_matter():
    X = table(1, offset=300, decades=1)
    X[:, 3] = 7.0
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.02] = 1e9
    X[rng.random(X.shape) < 0.1] = np.nan
    assert unit_differences(X).medians
    units = column_units(X, "auto", "auto")
    assert (units.scale > 0).all()
    assert np.isfinite(units.scale).all()
    np.testing.assert_allclose(units.shift, np.nanmedian(X, axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_offsets_of_few_columns_are_subtracted_and_nothing_is_scaled(seed):
    X = table(seed)
    for moved in ([3], [3, 7, 11]):
        offset = np.zeros(20)
        offset[moved] = 2.0
        assert unit_differences(X + offset) == Differences(lone=True)
        units = column_units(X + offset, "auto", "auto")
        np.testing.assert_array_equal(units.shift, np.median(X + offset, axis=0))
        assert (units.scale == 1).all()
    # So is that of a column that is constant otherwise.
    X[:, 3] = 5.0
    assert unit_differences(X) == Differences(lone=True)
    # All columns may be moved alike, as those of images are.
    assert unit_differences(table(seed) + 5.0) == Differences()


def test_a_column_of_huge_numbers_does_not_make_the_others_rounding_errors():
    times = 1.7e12 + 3.6e6 * np.arange(400)
    found = unit_differences(np.column_stack([table(0), times]))
    assert found.medians
    # Columns that are rounding errors of the others have no unit.
    errors = 1e-16 * np.random.default_rng(0).normal(size=(400, 10))
    assert unit_differences(np.column_stack([table(0), errors])) == Differences()


def test_few_rows_say_nothing_about_units():
    assert unit_differences(table(0, n=9, offset=1e5)) == Differences()
    assert unit_differences(table(0, n=10, offset=1e5)).medians


def test_the_spread_of_a_column_of_mostly_equal_entries_is_not_zero():
    X = np.zeros((100, 3))
    X[:20, 0] = np.arange(20)
    X[0, 1] = 5.0
    found = spreads(X)
    assert (found[:2] > 0).all()
    assert found[2] == 0
    X = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 30.0]
    np.testing.assert_allclose(spreads(X), [1.0, 30.0], rtol=0.05)


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_entries_of_any_size_are_brought_to_size_one(factor):
    X = factor * table(0)
    units = column_units(X, None, None)
    data = units.remove(X)
    assert 0.4 < np.abs(data).max() < 2.1
    # A power of two: nothing is rounded.
    np.testing.assert_array_equal(units.restore(data), X)


def test_data_that_stay_as_they_are_are_not_copied():
    X = table(0)
    units = column_units(X, "auto", "auto")
    assert units.trivial
    assert units.remove(X) is X
    assert units.restore(X) is X


def test_units_are_removed_and_restored_in_the_precision_of_the_data():
    X = table(0, offset=1000, decades=2).astype(np.float32)
    units = column_units(X, "median", "mad")
    data = units.remove(X)
    assert data.dtype == np.float32
    np.testing.assert_allclose(np.median(data, axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(spreads(data), 1, rtol=1e-3)
    np.testing.assert_allclose(units.restore(data), X, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [[1.0, np.nan], [np.nan, 2.0]]])
def test_columns_of_one_entry_say_nothing_about_units(X):
    assert unit_differences(np.array(X)) == Differences()
