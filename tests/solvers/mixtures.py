"""Matrices with a low-rank and a sparse part, for tests of the loops that take them apart."""

import numpy as np


def planted(rng, shape, rank, *, corrupted=0.1, noise=0.0, missing=0.0):
    """Low rank + sparse + noise, with holes: the data, and the two parts."""
    low = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    large = 5 * np.sqrt(rank) * rng.uniform(-1, 1, size=shape)
    wrong = np.where(rng.random(shape) < corrupted, large, 0.0)
    X = low + wrong + noise * rng.normal(size=shape)
    X[rng.random(shape) < missing] = np.nan
    return X, low, wrong


def as_array(part):
    """A part as an ordinary array, in whatever form it is stored."""
    if hasattr(part, "dense"):
        return part.dense()
    return part.toarray() if hasattr(part, "toarray") else part
