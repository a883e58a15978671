"""The kernel SVM, exactly: one binary problem, or one for every pair of classes on shared data.

Source: Hsieh, Si, Dhillon, A Divide-and-Conquer Solver for Kernel Support Vector Machines, ICML 2014; this file holds
its last line, "solve SVM on the whole data".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .._config import get_config
from .._parallel import ThreadTeam, blas_limit, effective_n_jobs, run
from .._progress import Part, Progress
from ..kernels.cache import KernelRows
from ..kernels.functions import Kernel
from ..kernels.samples import Samples, SampleSubset
from ..solvers.dual import DualSolver, svm_problem
from ..solvers.result import DualResult

Vector = NDArray[np.float64]

_VECTORS = 16  # float64 vectors of n that a solve holds at its peak
_SQUARE_SHARE = 0.4  # of the memory, for the active set's kernel matrix; the rest caches rows
_LEAST_BYTES = 2**22
_PROBE = 64


@dataclass(frozen=True)
class Settings:
    """How to solve: what does not depend on the data.

    Attributes
    ----------
    fit_intercept : bool
    tol : float
    max_iter : int
        Working sets for each binary problem; -1 for no limit.
    memory_budget : int
        Bytes beyond the caller's data.
    n_jobs : int or None
    """

    fit_intercept: bool = False
    tol: float = 1e-3
    max_iter: int = -1
    memory_budget: int = 2**30
    n_jobs: int | None = None


def solve_binary(
    kernel: Kernel, samples: Samples, y: Vector, upper: Vector, settings: Settings, progress: Progress | Part
) -> DualResult:
    """Train one exact machine.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    y : ndarray of shape (n,), float64
        Labels, +1 and -1.
    upper : ndarray of shape (n,), float64
        Largest alpha of each row: C times its weight.
    settings : Settings
    progress : Progress or Part

    Returns
    -------
    DualResult
        Signed dual variables y * alpha and their certificate.

    Notes
    -----
    Tiles are float32 for float32 data, where an entry is off by about 1e-7. Decision values sum as many of them as
    there are support vectors, times alpha: where that noise comes near `tol`, the solution is polished in float64.
    """
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
        result = _solve(kernel, samples, y, upper, settings, progress, team, np.zeros(len(y)))
        if result.converged and _noise(kernel, samples, result.beta) > 0.25 * settings.tol:
            precise = samples.astype(np.dtype(np.float64))
            result = _solve(kernel, precise, y, upper, settings, progress, team, result.beta)
    return result


def _solve(
    kernel: Kernel,
    samples: Samples,
    y: Vector,
    upper: Vector,
    settings: Settings,
    progress: Progress | Part,
    team: ThreadTeam,
    beta: Vector,
) -> DualResult:
    n = len(y)
    overhead = samples.nbytes + _VECTORS * 8 * n + team.n_threads * get_config()["block_bytes"]
    free = max(_LEAST_BYTES, settings.memory_budget - overhead)
    square_bytes = min(n * n * samples.dtype.itemsize, int(_SQUARE_SHARE * free))
    solver = DualSolver(
        KernelRows(kernel, samples, free - square_bytes, team),
        svm_problem(y, upper),
        equality=settings.fit_intercept,
        tol=settings.tol,
        square_bytes=square_bytes,
        progress=progress,
        max_iter=settings.max_iter,
    )
    return solver.solve(beta)


def _noise(kernel: Kernel, samples: Samples, beta: Vector) -> float:
    """Standard deviation that float32 tiles leave in the decision values, from a probe of entries."""
    support = np.flatnonzero(beta)
    if samples.dtype == np.float64 or not len(support):
        return 0.0
    A = samples.take(support[:: max(1, len(support) // _PROBE)])
    B = samples.take(np.arange(0, len(samples), max(1, len(samples) // _PROBE)))
    rough, exact = (np.empty((len(A), len(B)), dtype) for dtype in (np.float32, np.float64))
    kernel.fill(A, B, rough)
    kernel.fill(A.astype(exact.dtype), B.astype(exact.dtype), exact)
    return float(np.sqrt(np.mean((rough - exact) ** 2)) * np.linalg.norm(beta))


def solve_pairs(
    kernel: Kernel,
    samples: Samples,
    classes: NDArray[np.integer],
    upper: Vector,
    settings: Settings,
    progress: Progress,
) -> list[DualResult]:
    """Train a machine for every pair of classes, on views of the same data.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    classes : ndarray of shape (n,), int
        Class numbers 0 .. k - 1, each present.
    upper : ndarray of shape (n,), float64
    settings : Settings
    progress : Progress

    Returns
    -------
    list of DualResult
        For the pairs (0, 1), (0, 2), ... (k - 2, k - 1), the first class positive; beta has the length n of all data,
        zero outside the pair. Pairs run side by side and share `memory_budget`.
    """
    pairs = list(combinations(range(int(classes.max()) + 1), 2))
    n_workers = min(effective_n_jobs(settings.n_jobs), len(pairs))
    share = replace(settings, memory_budget=settings.memory_budget // n_workers)
    progress.stage(f"{len(pairs)} pairs of classes", len(pairs))
    samples.squares  # noqa: B018 - computed once, before the threads share it
    tasks: list[Callable[[], DualResult]] = [
        partial(_solve_pair, kernel, samples, classes, pair, upper, share, progress, n_workers) for pair in pairs
    ]
    return run(tasks, settings.n_jobs)


def _solve_pair(
    kernel: Kernel,
    samples: Samples,
    classes: NDArray[np.integer],
    pair: tuple[int, int],
    upper: Vector,
    settings: Settings,
    progress: Progress,
    n_workers: int,
) -> DualResult:
    rows = np.flatnonzero((classes == pair[0]) | (classes == pair[1]))
    y = np.where(classes[rows] == pair[0], 1.0, -1.0)
    result = solve_binary(kernel, SampleSubset(samples, rows), y, upper[rows], settings, progress.part(n_workers))
    progress.advance()
    beta = np.zeros(len(classes))
    beta[rows] = result.beta
    return replace(result, beta=beta)
