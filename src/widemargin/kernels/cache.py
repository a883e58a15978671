"""Rows of a kernel matrix that is too large for memory, computed when needed, some of them cached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._native import kernels
from .._threads import ThreadTeam, row_blocks
from .._types import Array
from ..data.samples import Samples, SampleSubset
from .functions import Kernel
from .tiles import add_kernel_product

_GATHERED_ROWS = 2048  # gathered at a time
_COPIED_ROWS = 64  # copied by a thread at a time


class KernelRows:
    """Products with K(X, X) (n, n), whose rows are computed when needed and cached as far as memory allows.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    cache_bytes : int
        Of the cache. A cached row is replaced only if the last product did not use it: with least-recently-used
        replacement, a set of rows larger than the cache would evict every row before its next use.
    team : ThreadTeam
    """

    def __init__(self, kernel: Kernel, samples: Samples, cache_bytes: int, team: ThreadTeam) -> None:
        self.kernel = kernel
        self.samples = samples
        self.team = team
        self.n_entries = 0
        n = len(samples)
        capacity = min(n, cache_bytes // (n * samples.dtype.itemsize))
        # pages are allocated at their first use
        self._store = np.empty((capacity, n), samples.dtype)
        self._slot = np.full(n, -1)
        self._row = np.full(capacity, -1)
        self._last_use = np.full(capacity, -1)
        self._n_products = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the cached rows."""
        return int(np.count_nonzero(self._row >= 0) * len(self) * self._store.itemsize)

    @property
    def has_room(self) -> bool:
        """Whether the cache has room for any row."""
        return len(self._store) > 0

    def release(self) -> None:
        """Free the cache, for good."""
        self._slot[:] = -1
        self._store, self._row, self._last_use = self._store[:0].copy(), self._row[:0], self._last_use[:0]

    def __len__(self) -> int:
        return len(self._slot)

    def add_product(
        self,
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
        *,
        keep: bool = True,
        n_known: int = 0,
        K_known: Array | None = None,
    ) -> None:
        """f[n_known:] += coef @ K[rows, n_known:] for f of shape (n,), float64; with `keep`, new rows are cached.

        With n_known > 0, `rows` are below it, and K_known (n_known, >= n_known) is K[:n_known, :n_known], from which
        cached rows get their first columns; None if the cache has no room.
        """
        self._n_products += 1
        cached = self._slot[rows] >= 0
        self._last_use[self._slot[rows[cached]]] = self._n_products
        kernels.add_rows(self.team.native, self._store, self._slot[rows[cached]], coef[cached], f)
        missing, missing_coef = rows[~cached], coef[~cached]
        slots = self._free_slots(len(missing) if keep else 0)
        n_cached = len(slots)
        if K_known is not None:
            self._keep_known(slots, K_known, missing[:n_cached])
        self._compute(missing[:n_cached], missing_coef[:n_cached], f, n_known, slots)
        self._compute(missing[n_cached:], missing_coef[n_cached:], f, n_known, None)
        self._slot[missing[:n_cached]] = slots
        self._row[slots] = missing[:n_cached]
        self._last_use[slots] = self._n_products

    def add_product_to(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        coef: NDArray[np.float64],
        f: NDArray[np.float64],
    ) -> None:
        """f[columns] += coef @ K[rows, columns], without the cache."""
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
        n_known: int,
        slots: NDArray[np.integer] | None,
    ) -> None:
        columns = SampleSubset(self.samples, np.arange(n_known, len(self))) if n_known else self.samples
        self.n_entries += len(rows) * len(columns)
        for block in row_blocks(len(rows), _GATHERED_ROWS):
            keep = None if slots is None else (self._store[:, n_known:], slots[block])
            batch = self.samples.take(rows[block])
            add_kernel_product(self.kernel, batch, coef[None, block], columns, f[None, n_known:], self.team, keep)

    def _keep_known(self, slots: NDArray[np.integer], K: Array, rows: NDArray[np.integer]) -> None:
        def row_block(block: slice) -> None:
            self._store[slots[block], : len(K)] = K[rows[block], : len(K)]

        self.team.map(row_block, row_blocks(len(rows), _COPIED_ROWS))

    def _free_slots(self, n: int) -> NDArray[np.integer]:
        """Up to n slots that are empty or that the last product did not use, in ascending order."""
        unused = np.flatnonzero(self._last_use < self._n_products - 1)
        oldest = unused[np.argsort(self._last_use[unused], kind="stable")[:n]]
        self._slot[self._row[oldest][self._row[oldest] >= 0]] = -1
        return np.sort(oldest)

    def is_cached(self, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Mask of the rows that are cached."""
        return np.asarray(self._slot[rows] >= 0)

    def copy(self, rows: NDArray[np.integer], columns: NDArray[np.integer], out: Array) -> None:
        """Write K[rows, columns], for cached rows, into the leading columns of `out`."""
        for i, slot in enumerate(self._slot[rows]):
            np.take(self._store[slot], columns, out=out[i, : len(columns)])
