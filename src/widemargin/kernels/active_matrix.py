"""The kernel matrix of a set of rows that changes, in one buffer."""

from __future__ import annotations

import numpy as np

from .._native import kernels
from .._types import Array, Bytes, RowIndices
from .kernel_operator import KernelOperator
from .tiles import fill_gram, fill_with_transpose

_MAX_UNUSED = 0.3  # remove rows outside the last wanted set once they are more than this part of all


class ActiveMatrix:
    """K[rows, rows] for a changing set of rows: new rows are appended, unused ones removed once they are too many.

    The largest matrix has `n_bytes`, and `capacity` rows; `rows` (m,) are those of the matrix, in no particular order.
    """

    def __init__(self, operator: KernelOperator, n_bytes: int) -> None:
        self.operator = operator
        self.rows: RowIndices = np.empty(0, np.intp)
        dtype = operator.samples.dtype
        self.capacity = min(len(operator), int(np.sqrt(n_bytes / dtype.itemsize)))
        self._buffer = np.empty(self.capacity**2, dtype)  # pages are allocated at their first use
        self._stride = 0
        self._position = np.full(len(operator), -1)

    def renumber(self, operator: KernelOperator, numbers: RowIndices) -> None:
        """Continue as a matrix of `operator`, in which row i has the number `numbers[i]`; -1: it is removed."""
        kept = np.flatnonzero(numbers[self.rows] >= 0)
        if len(kept) < len(self.rows):
            self._compact(kept)
        rows, self.rows = numbers[self.rows], self.rows[:0]
        self.operator, self._position = operator, np.full(len(operator), -1)
        self.capacity = min(len(operator), int(np.sqrt(len(self._buffer))))
        self._set(rows)

    @property
    def n_bytes(self) -> int:
        """Memory of the largest matrix."""
        return self._buffer.nbytes

    @property
    def unused(self) -> Bytes:
        """The memory beside the matrix, until its next `update`."""
        return self._buffer[self._stride**2 :].view(np.uint8)

    @property
    def K(self) -> Array:
        """Array (m, >= m), C-contiguous: its leading m columns are the kernel matrix."""
        return self._view(len(self.rows), self._stride)

    def _view(self, m: int, stride: int) -> Array:
        return self._buffer[: m * stride].reshape(m, stride)

    def clear(self) -> None:
        """Remove all rows, and give the pages of the memory back."""
        self._set(self.rows[:0])
        n, dtype = len(self._buffer), self._buffer.dtype
        self._buffer, self._stride = np.empty(0, dtype), 0
        self._buffer = np.empty(n, dtype)

    def update(self, wanted: RowIndices) -> None:
        """Add the rows of `wanted`, `capacity` at most, that are not in the matrix."""
        new = wanted[self._position[wanted] < 0]
        m = len(self.rows)
        n_used = len(wanted) - len(new)
        if m - n_used > _MAX_UNUSED * m or m + len(new) > self._stride:
            self._compact(np.sort(self._position[wanted][self._position[wanted] >= 0]))
            self._widen(n_used + len(new))
        self._append(new)

    def _set(self, rows: RowIndices) -> None:
        self._position[self.rows] = -1
        self.rows = rows
        self._position[rows] = np.arange(len(rows))

    def _compact(self, positions: RowIndices) -> None:
        """Remove all rows but those at `positions`, which are ascending. If it is stopped, the matrix is empty."""
        K, rows = self.K, self.rows
        self._set(rows[:0])
        kernels.remove_rows(self.operator.team.native, K, positions)
        self._set(rows[positions])

    def _widen(self, m: int) -> None:
        """Increase the stride to m and a quarter more, moving the stored rows, the last one first."""
        if m <= self._stride:
            return
        stride, n_here = min(self.capacity, int(1.25 * m)), len(self.rows)
        old, new = self._view(n_here, self._stride), self._view(n_here, stride)
        for i in range(n_here - 1, -1, -1):
            new[i, :n_here] = old[i, :n_here]
        self._stride = stride

    def _append(self, new: RowIndices) -> None:
        """Append rows, and as columns their transpose. If it is stopped, the matrix is as it was."""
        if not len(new):
            return
        operator, m, end = self.operator, len(self.rows), len(self.rows) + len(new)
        K = self._view(end, self._stride)
        operator.n_entries += len(new) * m + len(new) ** 2 // 2
        batch, old = operator.samples.take(new), operator.samples.take(self.rows)
        fill_with_transpose(operator.kernel, batch, old, K[m:end, :m], K[:m, m:end], operator.team)
        fill_gram(operator.kernel, batch, K[m:end, m:end], operator.team)
        self._set(np.concatenate([self.rows, new]))
