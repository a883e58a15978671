"""A symmetric kernel matrix that is too large to hold, seen by rows: some of them kept, the number given in bytes."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._jit import dual
from .._parallel import ThreadTeam, row_blocks
from .blocks import accumulate, fill_rows, tile_columns
from .functions import Kernel
from .samples import Samples

Array = NDArray[np.floating]

_GATHERED = 2048  # rows that are gathered at a time


class KernelRows:
    """Rows of K(X, X): products with it, and square pieces of it, computing as few entries twice as the bytes allow.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    cache_bytes : int
        For kept rows. A kept row is only given up once it was idle for a whole product, since a set of rows larger
        than the cache would otherwise push itself out in turn.
    team : ThreadTeam
    """

    def __init__(self, kernel: Kernel, samples: Samples, cache_bytes: int, team: ThreadTeam) -> None:
        self.kernel = kernel
        self.samples = samples
        self.team = team
        self.n_entries = 0
        n = len(samples)
        capacity = min(n, cache_bytes // (n * samples.dtype.itemsize))
        # never touched beyond what is used, so that the operating system gives no memory for the rest
        self._store = np.empty((capacity, n), samples.dtype)
        self._slot = np.full(n, -1)
        self._row = np.full(capacity, -1)
        self._used = np.full(capacity, -1)
        self._clock = 0

    def __len__(self) -> int:
        return len(self._slot)

    def add_product(
        self, rows: NDArray[np.integer], coef: NDArray[np.float64], f: NDArray[np.float64], *, keep: bool = True
    ) -> None:
        """f += coef @ K[rows] for f of shape (n,); new rows are kept while there is room, if `keep`."""
        self._clock += 1
        cached = self._slot[rows] >= 0
        self._used[self._slot[rows[cached]]] = self._clock
        self._add_kept(self._slot[rows[cached]], coef[cached], f)
        missing, missing_coef = rows[~cached], coef[~cached]
        slots = self._free_slots(len(missing) if keep else 0)
        n_kept = len(slots)
        self._compute(missing[:n_kept], missing_coef[:n_kept], f, slots)
        self._compute(missing[n_kept:], missing_coef[n_kept:], f, None)
        self._slot[missing[:n_kept]] = slots
        self._row[slots] = missing[:n_kept]
        self._used[slots] = self._clock

    def _add_kept(self, slots: NDArray[np.integer], coef: NDArray[np.float64], f: NDArray[np.float64]) -> None:
        def column_block(columns: slice) -> None:
            dual.add_rows(self._store[:, columns], slots, coef, f[columns])

        self.team.map(column_block, row_blocks(len(self), tile_columns(self._store.dtype)))

    def _compute(
        self,
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
        slots: NDArray[np.integer] | None,
    ) -> None:
        if len(rows):
            self.n_entries += len(rows) * len(self)
            for block in row_blocks(len(rows), _GATHERED):
                keep = None if slots is None else (self._store, slots[block])
                batch = self.samples.take(rows[block])
                accumulate(self.kernel, batch, coef[None, block], self.samples, f[None], self.team, keep)

    def _free_slots(self, n: int) -> NDArray[np.integer]:
        """Up to n slots that are empty or were idle in the last product, in ascending order."""
        idle = np.flatnonzero(self._used < self._clock - 1)
        oldest = idle[np.argsort(self._used[idle], kind="stable")[:n]]
        self._slot[self._row[oldest][self._row[oldest] >= 0]] = -1
        return np.sort(oldest)

    def square(self, rows: NDArray[np.integer], out: Array) -> None:
        """out[...] = K[rows, rows]: kept rows are copied, the others computed."""
        cached = np.flatnonzero(self._slot[rows] >= 0)
        other = np.flatnonzero(self._slot[rows] < 0)
        copy = partial(self._copy_row_block, rows, cached, out)
        self.team.map(copy, row_blocks(len(cached), 64))
        batch = self.samples.take(rows)
        self.n_entries += len(other) * len(rows)
        fill_rows(self.kernel, batch, other, out, self.team)

    def _copy_row_block(self, rows: NDArray[np.integer], cached: NDArray[np.integer], out: Array, block: slice) -> None:
        for i in cached[block]:
            np.take(self._store[self._slot[rows[i]]], rows, out=out[i])
