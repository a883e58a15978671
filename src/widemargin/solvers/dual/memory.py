"""The memory of a dual solver: kept kernel rows beside the active set's kernel matrix."""

from __future__ import annotations

import numpy as np

from ..._config import get_config
from ..._threads import ThreadTeam
from ...data.samples import Samples
from ...kernels.cache import KernelRows
from ...kernels.functions import Kernel

_VECTORS = 16  # float64 vectors (n,) that a solve holds at its peak
_ACTIVE_SHARES = (0.3, 0.5)  # least and most of the memory for the active matrix; the rest is for kept kernel rows
_CHEAP_ROW = 128  # multiply-adds of an inner product: entries of shorter rows are computed again faster than kept
_LEAST_BYTES = 2**22
_ALLOCATOR_BYTES = 2**24  # kept by the interpreter and the allocator
_TILES = 8  # held by a thread at one time, with their batches and allocator's share
_GATHERED = 2**14  # rows in batches at one time, about


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
    gathered = min(n, _GATHERED) * samples.row_bytes
    overhead = samples.nbytes + gathered + _VECTORS * 8 * n + _TILES * team.n_threads * get_config()["block_bytes"]
    free = max(_LEAST_BYTES, memory_budget - overhead - _ALLOCATOR_BYTES)
    least, most = _ACTIVE_SHARES
    if kernel.sample_form != "rows" and samples.row_cost <= _CHEAP_ROW:
        return KernelRows(kernel, samples, 0, team), min(n * n * itemsize, free)
    active_bytes = min(n * n * itemsize, int(np.clip(n_active**2 * itemsize, least * free, most * free)))
    return KernelRows(kernel, samples, free - active_bytes, team), active_bytes
