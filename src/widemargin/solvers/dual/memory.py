"""The memory of a dual solver: kept kernel rows beside the active set's kernel matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._config import get_config
from ..._threads import ThreadTeam
from ...data.samples import Samples
from ...kernels.cache import KernelRows
from ...kernels.functions import Kernel
from ...kernels.tiles import TILE_ROWS

_VECTORS = 16  # float64 vectors (n,) that a solve holds at its peak
_ACTIVE_SHARES = (0.3, 0.5)  # least and most of the memory for the active matrix; the rest is for kept kernel rows
_CHEAP_ROW = 128  # multiply-adds of an inner product: entries of shorter rows are computed again faster than kept
_LEAST_BYTES = 2**22
_ALLOCATOR_BYTES = 2**24  # kept by the interpreter and the allocator
_TILES = 8  # held by a thread at one time, with their batches and allocator's share
_LEAST_TILES = 3  # of a thread without them: a tile, its exponents, and the rows of both sides
_GATHERED = 2**14  # rows in batches at one time, about
_RESULT_VECTORS = 3  # of 8 bytes, (m,), that a solution of m coordinates keeps: rows, beta and decision values


def split_memory(
    kernel: Kernel, samples: Samples, memory_budget: int, team: ThreadTeam, n_active: int = 0
) -> tuple[KernelRows, int]:
    """Divide a memory budget between kept kernel rows and the active set's kernel matrix.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    memory_budget : int
        Bytes beside the caller's data. The samples' copies, vectors and tiles are subtracted first.
    team : ThreadTeam
    n_active : int
        Rows of the first active set, if they are known.

    Returns
    -------
    (KernelRows, int)
        Kernel rows with their cache, and the bytes of the active matrix.

    Notes
    -----
    The first write to a page takes as long as computing the kernel entries of short rows: only entries of long rows,
    or of a Python function, are kept.
    """
    n, itemsize = len(samples), samples.dtype.itemsize
    free = max(_LEAST_BYTES, free_bytes(samples, memory_budget) - _working_bytes(samples, n, _TILES * team.n_threads))
    least, most = _ACTIVE_SHARES
    if kernel.sample_form != "rows" and samples.row_cost <= _CHEAP_ROW:
        return KernelRows(kernel, samples, 0, team), min(n * n * itemsize, free)
    active_bytes = min(n * n * itemsize, int(np.clip(n_active**2 * itemsize, least * free, most * free)))
    return KernelRows(kernel, samples, free - active_bytes, team), active_bytes


def free_bytes(samples: Samples, memory_budget: int) -> int:
    """What a memory budget leaves beside the samples' copies and what the allocator keeps: 4 MB at least."""
    return max(_LEAST_BYTES, memory_budget - samples.nbytes - _ALLOCATOR_BYTES)


def share_budget(samples: Samples, memory_budget: int, n: int) -> int:
    """The memory budget of each of n solves at one time, which have the samples' copies and the allocator in common."""
    free = free_bytes(samples, memory_budget)
    return max(0, memory_budget - free) + free // n


def needed_bytes(samples: Samples, sizes: Sequence[int], n_threads: int) -> int:
    """The least memory for problems of m coordinates each, for m in `sizes`, solved one a thread.

    The samples' copies, the vectors and tiles of the largest problems, the smallest active matrices, and all solutions.
    """
    n_workers, itemsize = min(n_threads, len(sizes)), samples.dtype.itemsize
    needed = samples.nbytes + 8 * _RESULT_VECTORS * sum(sizes)
    for m in sorted(sizes)[-n_workers:]:
        tiles = _LEAST_TILES * (n_threads // n_workers)
        needed += _working_bytes(samples, m, tiles) + min(_LEAST_BYTES, m * m * itemsize)
    return needed


def _working_bytes(samples: Samples, m: int, n_tiles: int) -> int:
    """Bytes beside kernel entries that a solve of m of the samples takes: gathered rows, vectors and tiles."""
    tile = min(get_config()["block_bytes"], TILE_ROWS * m * samples.dtype.itemsize)
    return min(m, _GATHERED) * samples.row_bytes + _VECTORS * 8 * m + n_tiles * tile
