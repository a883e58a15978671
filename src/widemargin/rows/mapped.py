"""Memory maps larger than the memory budget: their pages are given back once a block has been read."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parallel import row_blocks

Array = NDArray[np.floating]

_FILE_BYTES = 2**23  # read between two times of giving pages back


class MappedPages:
    """The pages of a read-only memory map that an array in C order lies in."""

    def __init__(self, X: Array, source: mmap.mmap) -> None:
        self._source = source
        self._start = X.ctypes.data - np.frombuffer(source, np.uint8).ctypes.data
        self._row_bytes = X.strides[0]

    def release(self, rows: slice) -> None:
        """Give the pages of some rows back; whoever reads them next has them read from the file again."""
        first = -(-(self._start + rows.start * self._row_bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        length = self._start + rows.stop * self._row_bytes - first
        if length > 0:
            self._source.madvise(mmap.MADV_DONTNEED, first, length)


def mapped_pages(X: Any, memory_budget: int) -> MappedPages | None:
    """The pages of X, if they are to be given back: X is a read-only map in C order and larger than the budget."""
    source = X
    while isinstance(source, np.ndarray):
        source = source.base
    if not isinstance(source, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    # A writable private map would lose what has been written to it.
    return (
        None if X.flags.writeable or not X.flags.c_contiguous or X.nbytes <= memory_budget else MappedPages(X, source)
    )


def has_finite_rows(X: Array, pages: MappedPages) -> bool:
    """Whether no entry is NaN or infinite, block by block."""
    for rows in row_blocks(len(X), max(1, _FILE_BYTES // max(1, X.strides[0]))):
        if not np.isfinite(X[rows]).all():
            return False
        pages.release(rows)
    return True
