"""The design matrix of a memory map larger than the memory budget: a block's pages are released once it was read."""

from __future__ import annotations

import mmap

import numpy as np

from .._native import dense
from .._threads import MAX_BLOCKS, ThreadTeam, count_blocks, row_blocks, value_blocks
from .._types import Array, Matrix, RowIndices, Rows
from .dense import DenseMatrix

_BLOCK_BYTES = 2**21  # of the pages that a thread holds at one time


class MappedPages:
    """The pages of a read-only memory map `source` that hold an array X (n, d) in C order."""

    def __init__(self, X: Array, source: mmap.mmap) -> None:
        self._source = source
        self._start = X.ctypes.data - np.frombuffer(source, np.uint8).ctypes.data
        self._row_bytes = X.strides[0]

    def release(self, rows: slice) -> None:
        """Release the pages of some rows: the next access reads them from the file again."""
        first = -(-(self._start + rows.start * self._row_bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        length = self._start + rows.stop * self._row_bytes - first
        if length > 0:
            self._source.madvise(mmap.MADV_DONTNEED, first, length)


class MappedMatrix(DenseMatrix):
    """A memory map of which each thread holds one block at a time."""

    def __init__(self, X: Array, pages: MappedPages, team: ThreadTeam) -> None:
        super().__init__(X, team)
        self._pages = pages

    @property
    def block_rows(self) -> int:
        """Samples of a block."""
        return max(256, _BLOCK_BYTES // self.row_bytes)

    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n), block by block."""
        out = np.empty((len(W), self.shape[0]))

        def multiply(rows: slice) -> None:
            out[:, rows] = DenseMatrix(self._X[rows], self._team).matvec(W)
            self._pages.release(rows)

        self._team.map(multiply, row_blocks(self.shape[0], self.block_rows))
        return out

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X (k, d), block by block; at most 64 partial sums are held."""
        n, size = self.shape[0], self.block_rows
        groups = row_blocks(n, max(size, count_blocks(n, MAX_BLOCKS)))
        sums = np.zeros((len(groups), len(coef), self.shape[1]))

        def add(group: int) -> None:
            first = groups[group].start
            for block in row_blocks(groups[group].stop - first, size):
                rows = slice(first + block.start, first + block.stop)
                before = None if base is None else base[:, rows]
                sums[group] += DenseMatrix(self._X[rows], self._team).rmatvec(coef[:, rows], before)
                self._pages.release(rows)

        self._team.map(add, range(len(groups)))
        total: Matrix = sums.sum(axis=0)
        return total

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """A copy of the samples `chosen`."""
        return self.copy(chosen), np.arange(len(chosen))

    def copy(self, chosen: RowIndices) -> Array:
        """The samples `chosen`, in ascending order, block by block."""
        taken = np.empty((len(chosen), self.shape[1]), self._X.dtype)

        def copy_block(rows: slice) -> None:
            first, end = np.searchsorted(chosen, (rows.start, rows.stop))
            dense.take_rows(self._team.native, self._X, np.ascontiguousarray(chosen[first:end]), taken[first:end])
            self._pages.release(rows)

        self._team.map(copy_block, row_blocks(self.shape[0], self.block_rows))
        return taken


def mapped_pages(X: Rows, max_bytes: int) -> MappedPages | None:
    """The pages of X if it is a read-only memory map in C order that is larger than the budget; else None.

    A map that could be written to, private or shared, is none, whether X is writeable or not: released pages of a
    private map lose what was written to them.
    """
    source = X
    while isinstance(source, np.ndarray):
        source = source.base
    if not isinstance(source, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    if not memoryview(source).readonly or not X.flags.c_contiguous or X.nbytes <= max_bytes:
        return None
    return MappedPages(X, source)


def has_finite_rows(X: Array, pages: MappedPages) -> bool:
    """Whether no entry of X is NaN or infinite, block by block; the pages are released."""
    for rows in value_blocks(*X.shape):
        if not np.isfinite(X[rows]).all():
            return False
        pages.release(rows)
    return True


def take_rows(X: Rows, rows: RowIndices, max_bytes: int) -> Rows:
    """X[rows], for ascending row numbers; the pages of a memory map larger than the budget are released on the way."""
    if (pages := mapped_pages(X, max_bytes)) is None:
        return X[rows]
    taken = np.empty((len(rows), X.shape[1]), X.dtype)
    for block in row_blocks(len(rows), 64):  # the system reads some 16 pages around each row
        taken[block] = X[rows[block]]
        pages.release(slice(rows[block][0], rows[block][-1] + 1))
    return taken
