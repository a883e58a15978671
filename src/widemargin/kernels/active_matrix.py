"""The kernel matrix of a set of rows that changes, in memory given once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._threads import row_blocks
from .cache import KernelRows
from .tiles import fill, fill_gram

Rows = NDArray[np.intp]
Array = NDArray[np.floating]

_IDLE_SHARE = 0.3  # of the rows: with more that nobody asked for, the matrix is made smaller
_ROOM = 1.25  # times the rows that are there: space for those that will join
_COPIED = 64  # rows at a time


class ActiveMatrix:
    """K[rows, rows] for a set of rows that is asked for again and again: the new ones join, the idle ones stay a while.

    Parameters
    ----------
    source : KernelRows of n rows
    n_bytes : int
        For the largest matrix there can be.

    Attributes
    ----------
    capacity : int
        How many rows fit.
    rows : ndarray of shape (m,)
        The rows that are there, in no order.
    """

    def __init__(self, source: KernelRows, n_bytes: int) -> None:
        self.source = source
        self.rows: Rows = np.empty(0, np.intp)
        dtype = source.samples.dtype
        self.capacity = min(len(source), int(np.sqrt(n_bytes / dtype.itemsize)))
        self._buffer = np.empty(self.capacity**2, dtype)  # touched only as far as it is used
        self._stride = 0
        self._place = np.full(len(source), -1)

    def borrow(self, other: ActiveMatrix) -> None:
        """Before any row is there: use the memory, and so the capacity, of another, which begins later.

        Touched pages are much cheaper than fresh ones.
        """
        if other._buffer.dtype == self._buffer.dtype:
            self._buffer, self.capacity = other._buffer, min(self.capacity, other.capacity)

    @property
    def K(self) -> Array:
        """The matrix in the leading m columns of a C-contiguous array of m rows."""
        return self._view(len(self.rows), self._stride)

    def _view(self, m: int, stride: int) -> Array:
        return self._buffer[: m * stride].reshape(m, stride)

    def fill_leading(self, m: int) -> None:
        """Let the rows be 0 ... m - 1, in this order."""
        self._stride = m
        self._set(np.arange(m))
        source = self.source
        source.n_entries += m * m // 2
        fill_gram(source.kernel, source.samples.take(self.rows), self.K, source.team)

    def update(self, wanted: Rows) -> None:
        """Let the wanted rows, `capacity` at most, be among those that are there."""
        new = wanted[self._place[wanted] < 0]
        m = len(self.rows)
        n_used = len(wanted) - len(new)
        if m - n_used > _IDLE_SHARE * m or m + len(new) > self._stride:
            self._compact(np.sort(self._place[wanted][self._place[wanted] >= 0]))
            self._widen(n_used + len(new))
        self._append(new)

    def _set(self, rows: Rows) -> None:
        self._place[self.rows] = -1
        self.rows = rows
        self._place[rows] = np.arange(len(rows))

    def _compact(self, places: Rows) -> None:
        """Keep some places, in ascending order, and move their rows together: none is overwritten before it is read."""
        K, m = self.K, len(places)
        for i, place in enumerate(places):
            np.take(K[place], places, out=K[i, :m])
        self._set(self.rows[places])

    def _widen(self, m: int) -> None:
        """Make the rows long enough for m of them and some more, the last one first."""
        if m <= self._stride:
            return
        stride, n_here = min(self.capacity, int(_ROOM * m)), len(self.rows)
        old, new = self._view(n_here, self._stride), self._view(n_here, stride)
        for i in range(n_here - 1, -1, -1):
            new[i, :n_here] = old[i, :n_here]
        self._stride = stride

    def _append(self, new: Rows) -> None:
        """Kept rows are copied and the others computed; what is there already gets its new columns by symmetry."""
        source, m = self.source, len(self.rows)
        is_kept = source.is_kept(new)
        kept, other = new[is_kept], new[~is_kept]
        self._set(np.concatenate([self.rows, kept, other]))
        K, end, last = self.K, m + len(kept), len(self.rows)

        def copy(block: slice) -> None:
            source.copy(kept[block], self.rows, K[m:end][block])
            K[:m, m:end][:, block] = K[m:end, :m][block].T
            K[end:last, m:end][:, block] = K[m:end, end:last][block].T

        source.team.map(copy, row_blocks(len(kept), _COPIED))
        if len(other):
            source.n_entries += len(other) * m + len(other) ** 2 // 2
            batch = source.samples.take(other)
            fill(
                source.kernel, batch, source.samples.take(self.rows[:m]), K[end:last, :m], K[:m, end:last], source.team
            )
            fill_gram(source.kernel, batch, K[end:last, end:last], source.team)
