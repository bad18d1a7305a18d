"""A compact matrix is square and has the inner products of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustpca.engine.compact import FEW_ROWS, compact
from robustpca.engine.rows import ArrayRows


@pytest.mark.parametrize("n", [2, 80, FEW_ROWS + 20])
def test_wide_rows_become_a_square_with_the_same_inner_products(n, rng):
    X = rng.normal(size=(n, 700)) + 3
    rows = ArrayRows(X).median_centred()
    found = compact(rows)
    assert found.shape == (n, n)
    Z = X - rows.center
    A = found.map("dense")
    assert_allclose(A @ A.T, Z @ Z.T, atol=1e-9 * np.square(Z).sum() / n)


def test_rows_that_would_not_become_smaller_stay_as_they_are(rng):
    rows = ArrayRows(rng.normal(size=(50, 50)))
    assert compact(rows) is rows
