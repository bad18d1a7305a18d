"""Smaller matrices with the same inner products, to work on instead of the data."""

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.linalg import Array, finite
from robustpca.engine.rows import ArrayRows, Rows

# Wide data this small are turned into a square by one QR factorisation, which needs copies.
FEW_ROWS, FEW_BLOCKS = 256, 4
# Products between all pairs of blocks are formed for at most this many blocks.
PAIRED_BLOCKS = 24


class ProductRows(ArrayRows):
    """Rows known by their products, so that distances are good to half of the digits."""

    floor = 1e-7


def compact(rows: Rows) -> Rows:
    """A square matrix whose rows have the inner products of these centred rows.

    With more features than samples every fit may as well use it: it is a rotation of the data
    into as many coordinates as there are samples. Rows that would not become smaller, or
    whose products would cost too much, are returned as they are.
    """
    n, d = rows.shape
    n_blocks = len(rows.bounds)
    if n >= d or n_blocks > PAIRED_BLOCKS or not rows.is_dense:
        return rows
    exact = rows.precise()
    if n <= FEW_ROWS and n_blocks <= FEW_BLOCKS:
        turned = finite(exact.map("dense")).T
        # All that is below the first rows of the factor is zero.
        factor = linalg.qr(turned, mode="r", check_finite=False)[0][:n]
        return ArrayRows(np.ascontiguousarray(factor.T))
    products = inner_products(exact)
    # The pivoted factor stops where the rows become dependent.
    factor, pivots, rank, _ = linalg.lapack.dpstrf(products, lower=1, overwrite_a=1)
    square = np.zeros((n, n))
    square[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    return ProductRows(square)


def inner_products(rows: Rows) -> Array:
    """Inner products of all centred rows in the lower triangle; the rest is not to be used."""
    # Not np.empty: what happens to lie in the unused half may not be finite.
    products = np.zeros((rows.shape[0],) * 2)
    for i, (start, stop) in enumerate(rows.bounds):
        block = rows.block(start, stop).dense()
        products[start:stop, start:stop] = block @ block.T
        if stop < len(products):
            products[stop:, start:stop] = rows.map(_products, block, first=i + 1)
    return finite(products)


def _products(block: DenseBlock, other: Array) -> Array:
    out = np.empty((len(block), len(other)))
    for place, tile in block.tiles():
        out[place] = tile @ other.T
    return out
