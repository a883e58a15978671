"""The memory of a dual solver, most of which is for the active set's kernel matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ..._config import SMALL_BYTES, get_config
from ..._memory import MemoryPlan
from ...data.samples import Samples
from ...kernels.tiles import TILE_ROWS

VECTORS = 16  # count so many float64 vectors (n,) for the peak of a solve
_LEAST_BYTES = 2**22  # give the matrix at least this, however small the budget
_TILES = 8  # count so many for a thread at one time, batches of rows and the allocator's share included
_LEAST_TILES = 3  # count at least so many: a tile, its exponents, and the rows of both sides
_GATHERED = 2**14  # count about so many rows in batches at one time
_RESULT_VECTORS = 3  # keep so many vectors (m,) of 8 bytes of a solution: rows, beta and decision values


def active_bytes(samples: Samples, n_bytes: int, n_threads: int) -> int:
    """How many of a solver's `n_bytes` the kernel matrix of the active set gets.

    The samples' copies, vectors (n,) and tiles are subtracted first.
    """
    n = len(samples)
    working = _working_bytes(samples, n, _TILES * n_threads)
    return min(n * n * samples.dtype.itemsize, max(_LEAST_BYTES, free_bytes(samples, n_bytes) - working))


def free_bytes(samples: Samples, n_bytes: int) -> int:
    """The bytes beside the samples' copies and what the allocator keeps: 4 MB at least."""
    return max(_LEAST_BYTES, n_bytes - samples.nbytes - SMALL_BYTES)


def among_solves(samples: Samples, memory: MemoryPlan, n: int, share: str | None = None) -> MemoryPlan:
    """The plan of each of n solves at one time, which have the samples' copies and the allocator in common."""
    return memory.among(n, share, common=max(0, memory.budget - free_bytes(samples, memory.budget)))


def needed_bytes(samples: Samples, sizes: Sequence[int], n_threads: int) -> int:
    """The least memory for problems of m coordinates each, for m in `sizes`, solved one a thread.

    The samples' copies, the vectors and tiles of the largest problems, the smallest active matrices, and all solutions.
    """
    n_workers, itemsize = min(n_threads, len(sizes)), samples.dtype.itemsize
    needed = samples.nbytes + solution_bytes(sum(sizes))
    for m in sorted(sizes)[-n_workers:]:
        tiles = _LEAST_TILES * (n_threads // n_workers)
        needed += _working_bytes(samples, m, tiles) + min(_LEAST_BYTES, m * m * itemsize)
    return needed


def solution_bytes(m: int) -> int:
    """Bytes that solutions of m coordinates in all keep."""
    return 8 * _RESULT_VECTORS * m


def _working_bytes(samples: Samples, m: int, n_tiles: int) -> int:
    """Bytes of a solve on m of the samples, beside kernel matrices: gathered rows, vectors and tiles."""
    tile = min(get_config()["block_bytes"], TILE_ROWS * m * samples.dtype.itemsize)
    return min(m, _GATHERED) * samples.row_bytes + VECTORS * 8 * m + n_tiles * tile
