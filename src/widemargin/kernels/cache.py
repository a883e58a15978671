"""A symmetric kernel matrix that is too large to hold, seen by rows: some of them kept, the number given in bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._native import kernels
from .._threads import ThreadTeam, row_blocks
from ..data.samples import Samples, SampleSubset
from .functions import Kernel
from .tiles import add_kernel_product

Array = NDArray[np.floating]

_GATHERED = 2048  # rows that are gathered at a time
_COPIED = 64


class KernelRows:
    """Rows of K(X, X) and products with it, computing as few entries twice as the bytes allow.

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

    @property
    def nbytes(self) -> int:
        """Of the rows that are kept."""
        return int(np.count_nonzero(self._row >= 0) * len(self) * self._store.itemsize)

    @property
    def has_room(self) -> bool:
        """Whether any row can be kept."""
        return len(self._store) > 0

    def release(self) -> None:
        """Give up the kept rows, and keep none from here on."""
        self._slot[:] = -1
        self._store, self._row, self._used = self._store[:0].copy(), self._row[:0], self._used[:0]

    def __len__(self) -> int:
        return len(self._slot)

    def add_product(
        self,
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
        *,
        keep: bool = True,
        first: int = 0,
        leading: Array | None = None,
    ) -> None:
        """f += coef @ K[rows] for f of shape (n,), from column `first` on; where there is room, new rows are kept.

        Rows that are kept must be whole: with `first`, they are `leading` rows, among the `first` whose square piece
        of K that is (a cache without room needs none).
        """
        self._clock += 1
        cached = self._slot[rows] >= 0
        self._used[self._slot[rows[cached]]] = self._clock
        kernels.add_rows(self.team.native, self._store, self._slot[rows[cached]], coef[cached], f)
        missing, missing_coef = rows[~cached], coef[~cached]
        slots = self._free_slots(len(missing) if keep else 0)
        n_kept = len(slots)
        if leading is not None:
            self._keep_leading(slots, leading, missing[:n_kept])
        self._compute(missing[:n_kept], missing_coef[:n_kept], f, first, slots)
        self._compute(missing[n_kept:], missing_coef[n_kept:], f, first, None)
        self._slot[missing[:n_kept]] = slots
        self._row[slots] = missing[:n_kept]
        self._used[slots] = self._clock

    def add_product_to(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
    ) -> None:
        """f[columns] += coef @ K[rows, columns], without a look at what is kept."""
        self.n_entries += len(rows) * len(columns)
        part = np.zeros(len(columns))
        add_kernel_product(
            self.kernel,
            SampleSubset(self.samples, rows),
            coef[None],
            SampleSubset(self.samples, columns),
            part[None],
            self.team,
        )
        f[columns] += part

    def _compute(
        self,
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
        first: int,
        slots: NDArray[np.integer] | None,
    ) -> None:
        columns = SampleSubset(self.samples, np.arange(first, len(self))) if first else self.samples
        self.n_entries += len(rows) * len(columns)
        for block in row_blocks(len(rows), _GATHERED):
            keep = None if slots is None else (self._store[:, first:], slots[block])
            batch = self.samples.take(rows[block])
            add_kernel_product(self.kernel, batch, coef[None, block], columns, f[None, first:], self.team, keep)

    def _keep_leading(self, slots: NDArray[np.integer], leading: Array, rows: NDArray[np.integer]) -> None:
        def row_block(block: slice) -> None:
            self._store[slots[block], : len(leading)] = leading[rows[block], : len(leading)]

        self.team.map(row_block, row_blocks(len(rows), _COPIED))

    def _free_slots(self, n: int) -> NDArray[np.integer]:
        """Up to n slots that are empty or were idle in the last product, in ascending order."""
        idle = np.flatnonzero(self._used < self._clock - 1)
        oldest = idle[np.argsort(self._used[idle], kind="stable")[:n]]
        self._slot[self._row[oldest][self._row[oldest] >= 0]] = -1
        return np.sort(oldest)

    def is_kept(self, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which of the rows are kept."""
        return np.asarray(self._slot[rows] >= 0)

    def copy(self, rows: NDArray[np.integer], columns: NDArray[np.integer], out: Array) -> None:
        """Write K[rows, columns] of kept rows into the leading columns of out."""
        for i, slot in enumerate(self._slot[rows]):
            np.take(self._store[slot], columns, out=out[i, : len(columns)])
