"""Trimmed means of many coordinates at once, by counting and never by sorting.

A loop asks for the trimmed means of the same data again and again, with a few signs changed in
between. The first and the last value that are not trimmed move little then, so it is enough to
search a narrow band around where they were.
"""

from typing import Any

import numpy as np

from robustpca.engine.blocks import even_slices
from robustpca.engine.linalg import Array
from robustpca.engine.threads import ThreadPool, compiled

# Coordinates are dealt out in this many parts, whatever the number of threads.
N_PARTS = 16
# Values around a threshold that the band of the next call should hold, as a share of all.
BAND = 1 / 256
# With at most this many values all of them are searched.
FEW = 256
# Values of a coordinate from which its first bands are guessed, and how many standard errors
# of their ranks these reach.
N_SAMPLE, REACH = 64, 2.5


class TrimmedMeans:
    """Means of the rows of a matrix without the smallest and the largest entries of each.

    Parameters
    ----------
    A : ndarray of shape (n_coordinates, n_samples)
        The matrix, in C order.
    trim : float
        Share of the entries to leave out at either end, at most 0.5, which is the median.
    pool : ThreadPool
        Threads to share the work.
    """

    def __init__(self, A: Array, trim: float, pool: ThreadPool) -> None:
        self.A, self.pool = A, pool
        n = A.shape[1]
        self.n_trimmed = min(int(trim * n), (n - 1) // 2)
        # Ranks in a sample between which the first retained value of all must nearly surely be.
        rank = N_SAMPLE * (self.n_trimmed + 0.5) / n
        error = REACH * np.sqrt(rank * (1 - rank / N_SAMPLE)) + 1
        self.low, self.high = int(np.floor(rank - error)), min(int(rank + error), N_SAMPLE - 1)
        # Where the first and the last retained value were, and how far they may have moved.
        self.bands = np.full((4, len(A)), np.nan, A.dtype)
        self.parts = even_slices(len(A), N_PARTS)

    def __call__(self, signs: Array) -> Array:
        """The trimmed mean of each row, its entries taken times ``signs``."""
        means = np.empty(len(self.A))
        signs = signs.astype(self.A.dtype)
        kernel, inf = compiled(_trimmed_means), self.A.dtype.type(np.inf)

        def work(part: slice) -> None:
            scratch = np.empty(self.A.shape[1] + N_SAMPLE, self.A.dtype)
            numbers = (self.n_trimmed, self.low, self.high, inf)
            kernel(self.A, signs, *numbers, scratch, self.bands, means, part.start, part.stop)

        self.pool.map(work, self.parts)
        return means


def _trimmed_means(
    A: Any,
    signs: Any,
    n_trimmed: int,
    low: int,
    high: int,
    inf: Any,
    scratch: Any,
    bands: Any,
    means: Any,
    start: int,
    stop: int,
) -> None:
    """Kernel: trimmed means of the rows ``start`` to ``stop``; moves their bands.

    An attempt counts the values below, inside and between two bands, [a, b] and [c, d]. If the
    first and the last retained value are inside, they are selected from the values in the bands.
    The bands are those of the last call, then a guess from a sample, then everything.
    """
    n = A.shape[1]
    first, last = n_trimmed, n - n_trimmed - 1
    inside, sample = scratch[:n], scratch[n:]
    for j in range(start, stop):
        attempt, found, row = 0, False, A[j]
        while not found:
            if attempt == 0:
                a, b = bands[0, j] - bands[2, j], bands[0, j] + bands[2, j]
                c, d = bands[1, j] - bands[3, j], bands[1, j] + bands[3, j]
            elif attempt == 1 and n > FEW:
                for i in range(N_SAMPLE):
                    value, k = signs[i * n // N_SAMPLE] * row[i * n // N_SAMPLE], i
                    while k > 0 and sample[k - 1] > value:
                        sample[k] = sample[k - 1]
                        k -= 1
                    sample[k] = value
                a = sample[low] if low >= 0 else -inf
                d = sample[N_SAMPLE - 1 - low] if low >= 0 else inf
                b, c = sample[high], sample[N_SAMPLE - 1 - high]
            else:
                a, b, c, d = -inf, inf, -inf, inf
            attempt += 1
            if not b < c:
                # Bands that meet are one band.
                b, c = d, a
            n_below, n_low, n_between, n_high, total = 0, 0, 0, 0, 0.0
            for i in range(n):
                value = signs[i] * row[i]
                n_below += value < a
                n_low += value <= b
                n_between += value < c
                n_high += value <= d
                total += value if (b < value) & (value < c) else 0.0
            found = n_below <= first < n_low and n_between <= last < n_high
        # Writing every value, and moving on behind those inside only, takes no branches.
        k = 0
        for i in range(n):
            value = signs[i] * row[i]
            inside[k] = value
            k += ((a <= value) & (value <= b)) | ((c <= value) & (value <= d))
        # Select the first retained value, then the last: smaller ones to the front, then equals.
        begin, end = first - n_below, last - n_below - max(n_between - n_low, 0)
        left, size = 0, k
        for wanted in (begin, end):
            right = size - 1
            while left < right:
                pivot, k = inside[(left + right) // 2], left
                for i in range(left, right + 1):
                    value = inside[i]
                    inside[i], inside[k] = inside[k], value
                    k += value < pivot
                if wanted < k:
                    right = k - 1
                    continue
                left = k
                for i in range(left, right + 1):
                    value = inside[i]
                    inside[i], inside[k] = inside[k], value
                    k += value <= pivot
                if wanted < k:
                    break
                left = k
            left = begin
        for i in range(begin, end + 1):
            total += inside[i]
        least, most = inside[begin], inside[end]
        # Equal values have themselves as their mean, to the last digit.
        means[j] = least if least == most else total / (last - first + 1)
        bands[0, j], bands[1, j] = least, most
        bands[2, j] = (b - least) * (BAND * n / (n_low - first))
        bands[3, j] = (most - c) * (BAND * n / (last - n_between + 1))
