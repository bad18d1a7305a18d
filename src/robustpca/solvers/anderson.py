"""Anderson acceleration of a loop that replaces one large matrix at every pass.

A pass turns ``A`` into ``A + F(A)``. The last few passes say how the steps change with the matrix;
the next one is taken from where, to first order, the step would be shortest. A step that turns out
longer than those before is taken back, so the loop converges whenever the plain one does.
"""

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import empty_beside

# Passes that are remembered, and bytes that the memory may take beside the data.
MEMORY, MOST_BYTES = 6, 2**28
# A step longer than the shortest by this factor is taken back.
LONGER = 1.5
# Inner products are formed in single precision. Steps that change by a smaller share are the same
# ones, of which nothing follows.
RIDGE, SAME = 1e-6, 1e-4


class Anderson:
    """The last steps of a matrix and how they changed, in single precision, where it is.

    A pass over the tiles of the matrix calls `record` with each step; `combine` then chooses
    coefficients, and a second pass over the tiles calls `move`.
    """

    def __init__(self, A: Array) -> None:
        self.memory = max(1, min(MEMORY, MOST_BYTES // (8 * A.size)))
        self.gram = np.zeros((self.memory, self.memory))
        self.changes: list[Array] = []
        self.moves: list[Array] = []
        self.step = empty_beside(A, dtype=np.float32)
        self.forget(True)

    @property
    def arrays(self) -> list[Array]:
        """All that is as large as the matrix."""
        return [self.step, *self.changes, *self.moves]

    def forget(self, altogether: bool = False) -> None:
        """Begin again with the next step, ``altogether`` if steps have another length now."""
        self.filled: list[int] = []
        self.newest: int | None = None
        if altogether:
            self.shortest = np.inf
        self.coefficients = np.zeros(0)
        self.undo = False

    def record(self, place: slice, step: Array) -> Array:
        """Note the step of a tile; returns the tile's share of all inner products."""
        products = np.zeros((2, self.memory))
        if self.newest is not None:
            change = self.changes[self.newest][place]
            np.subtract(step, self.step[place], out=change, casting="same_kind")
            self.moves[self.newest][place] += change
        self.step[place] = step
        current = self.step[place].ravel()
        for slot in self._slots():
            other = self.changes[slot][place].ravel()
            products[:, slot] = other @ change.ravel(), other @ current
        return products

    def _slots(self) -> list[int]:
        return self.filled if self.newest is None else [*self.filled, self.newest]

    def combine(self, products: Array, length: float) -> None:
        """Choose the next matrix, from the inner products and the length of the step."""
        self.undo = self.newest is not None and length > LONGER * self.shortest
        if self.undo:
            return
        self.shortest = min(self.shortest, length)
        if self.newest is not None:
            self.gram[self.newest] = self.gram[:, self.newest] = products[0]
            self.filled = self._slots()
        least = (SAME * length) ** 2
        slots = [slot for slot in self.filled if self.gram[slot, slot] > least]
        gram, towards = self.gram[np.ix_(slots, slots)], products[1, slots]
        scale = 1 / np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float32).tiny))
        gram = gram * scale[:, None] * scale + RIDGE * np.eye(len(slots))
        self.coefficients = scale * np.linalg.solve(gram, scale * towards)
        # The next move takes the place of the oldest one.
        self.mixed = list(slots)
        if len(self.changes) < self.memory:
            self.newest = len(self.changes)
            self.changes.append(empty_beside(self.step))
            self.moves.append(empty_beside(self.step))
        elif len(self.filled) < self.memory:
            self.newest = next(slot for slot in range(self.memory) if slot not in self.filled)
        else:
            self.newest, self.filled = self.filled[0], self.filled[1:]

    def move(self, place: slice, tile: Array) -> None:
        """Lead a tile of the matrix, after its step, to where the next pass begins."""
        assert self.newest is not None
        if self.undo:
            tile -= self.moves[self.newest][place]
            return
        shift, term = np.zeros(tile.shape, np.float32), np.empty(tile.shape, np.float32)
        for slot, coefficient in zip(self.mixed, self.coefficients, strict=True):
            shift += np.multiply(self.moves[slot][place], np.float32(coefficient), out=term)
        tile -= shift
        np.subtract(self.step[place], shift, out=self.moves[self.newest][place])

    def moved(self) -> None:
        """All tiles are where they belong."""
        if self.undo:
            self.forget()
