"""Rows in blocks on all cores. A solver sees `Rows`: two passes.

Blocks depend on the data alone and their sums are added in their order, so that results do not depend on `n_jobs`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit import dense
from .._jit.workspace import Rows as RowArrays
from .._parallel import ThreadTeam, count_blocks, row_blocks
from .csr import CSRRows
from .dense import DenseBlocks, read_only
from .mapped import mapped_pages
from .scratch import SumScratch

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_BLOCK_BYTES = 2**18  # at least, of an array in memory: a thread takes another block every 10 microseconds or so
_SUM_BLOCKS, _SUM_ROWS = 64, 256  # at most; of each at least


class Rows(Protocol):
    """The data as the solver sees them: n rows of d features."""

    @property
    def shape(self) -> tuple[int, int]:
        """n and d."""

    @property
    def arrays(self) -> RowArrays | None:
        """The rows as compiled code can visit them one by one, in any order; None where that is dear."""

    @property
    def is_local(self) -> bool:
        """Whether this process can read the rows itself."""

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, in the mean."""

    def outputs(self, W: Matrix) -> Matrix:
        """Products of k vectors (k, d) with every row: (k, n)."""

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """Sums of the rows, weighted by each row of coef (k, n), less those of `since` (k, n): (k, d).

        Most rows of weight 0 are not read.
        """

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """An array in C order that has some rows among its own, and where; if they are local."""

    def take(self, chosen: Indices) -> Rows:
        """A copy of some rows, in ascending order, if they are local."""


class BlockRows:
    """`Rows` of an array in Fortran's order or in a file, and a team of threads."""

    is_local = True

    def __init__(self, blocks: DenseBlocks, team: ThreadTeam) -> None:
        self._blocks = blocks
        self._team = team
        self.shape = blocks.shape
        self._scratch = SumScratch()

    @property
    def arrays(self) -> RowArrays | None:
        """Those of the blocks."""
        return self._blocks.arrays

    @property
    def row_bytes(self) -> int:
        """That of the blocks."""
        return self._blocks.row_bytes

    def outputs(self, W: Matrix) -> Matrix:
        """One pass over all rows."""
        out = np.empty((len(W), self.shape[0]))
        self._team.map(
            lambda rows: self._blocks.outputs(rows, W, out[:, rows]), row_blocks(len(out.T), self._blocks.block_rows)
        )
        return out

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """One pass over the rows that count."""
        blocks = row_blocks(self.shape[0], self._blocks.sum_rows)
        sums = self._scratch.sums((len(blocks), len(coef), self.shape[1]))

        def add(block: int) -> None:
            rows, out = blocks[block], sums[block]
            out[...] = 0.0
            weights = np.ascontiguousarray(coef[:, rows]) if since is None else coef[:, rows] - since[:, rows]
            self._blocks.add(rows, weights, out)

        self._team.map(add, range(len(blocks)))
        total: Matrix = sums.sum(axis=0)
        return total

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """A copy."""
        return read_only(self._blocks.copy(chosen)), np.arange(len(chosen))

    def take(self, chosen: Indices) -> BlockRows:
        """A copy, of the same kind but for the order in memory."""
        return _wrap(self._blocks.take(chosen, self._team), self._team)


class ArrayRows(BlockRows):
    """Rows of an array in memory, in C order: compiled code goes from block to block."""

    def __init__(self, blocks: DenseBlocks, team: ThreadTeam) -> None:
        super().__init__(blocks, team)
        self._X = blocks.X

    def outputs(self, W: Matrix) -> Matrix:
        """Of one vector; of several as products of matrices."""
        if len(W) > 1:
            return super().outputs(W)
        out = np.empty((1, self.shape[0]))
        size = max(1, _BLOCK_BYTES // self.row_bytes)
        self._team.together(
            count_blocks(self.shape[0], size), lambda turn: dense.all_row_outputs(self._X, W[0], size, turn, out[0])
        )
        return out

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """Few blocks, as each has sums of its own."""
        size = max(_SUM_ROWS, _BLOCK_BYTES // self.row_bytes, count_blocks(self.shape[0], _SUM_BLOCKS))
        sums = self._scratch.sums((count_blocks(self.shape[0], size), len(coef), self.shape[1]))
        coef = np.ascontiguousarray(coef)  # the kernel is compiled for one layout
        before = coef[:, :0] if since is None else np.ascontiguousarray(since)
        self._team.together(len(sums), lambda turn: dense.all_row_sums(self._X, coef, before, size, turn, sums))
        total: Matrix = sums.sum(axis=0)
        return total

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """The array itself."""
        return self._X, chosen

    def take(self, chosen: Indices) -> BlockRows:
        """Row by row, in C order."""
        taken = np.empty((len(chosen), self.shape[1]), self._X.dtype)
        size = max(1, _BLOCK_BYTES // self.row_bytes)
        self._team.together(
            count_blocks(len(chosen), size), lambda turn: dense.all_taken_rows(self._X, chosen, size, turn, taken)
        )
        return ArrayRows(DenseBlocks(taken), self._team)


def make_rows(X: Any, team: ThreadTeam, memory_budget: int = 2**30) -> Rows:
    """Wrap validated data of shape (n, d): an array in C or Fortran order, a memory map, or CSR.

    Parameters
    ----------
    X : ndarray, memmap or CSR array, float32 or float64
        Not copied.
    team : ThreadTeam
    memory_budget : int
        Bytes. Of a read-only memory map that is larger, in C order, no more than some blocks are held at a time.
    """
    return CSRRows(X, team) if sp.issparse(X) else _wrap(DenseBlocks(X, mapped_pages(X, memory_budget)), team)


def _wrap(blocks: DenseBlocks, team: ThreadTeam) -> BlockRows:
    return (ArrayRows if blocks.is_in_order else BlockRows)(blocks, team)
