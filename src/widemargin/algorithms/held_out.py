"""Cross-validation of duals: decision values of held-out rows, for all folds and Cs of one kernel, from shared entries.

A fold's dual is that of all rows with the bounds [0, 0] for those held out. So folds and Cs have one kernel matrix in
common, and the decision values K beta of the solver contain those of the held-out rows: nothing is predicted. Several
machines (one for each pair of classes, or each target) read their part of the same matrix.

    compute K (n, n), if memory allows
    for every machine: K_m = K[rows, rows]
        for every fold, in parallel: solve for C_1 < C_2 < ..., each from the last solution
        decision values of held-out rows: those in K_m beta; of other classes' rows, K[these, support] beta

Where K does not fit in memory, K_m is computed for each machine; where that does not fit either, the folds of a C are
solved side by side, and share the kernel rows that they need. Where gaps must be at most `tol`, distances or entries
are computed in float64 as far as rounding could hide these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped
from .._progress import AnyProgress
from .._threads import ThreadTeam
from .._types import Array, DType, RowIndices, Vector
from ..data.samples import GramSamples, Samples, SampleSubset
from ..kernels.active_matrix import ActiveMatrix
from ..kernels.entry_precision import entry_error
from ..kernels.functions import ExponentialKernel, Kernel, Precomputed, check_finite
from ..kernels.kernel_operator import KernelOperator
from ..kernels.tiles import add_kernel_product, fill_gram
from ..solvers.dual.certificate import Limits
from ..solvers.dual.dual_path import DualPath, scale_bounds
from ..solvers.dual.in_memory import solve_in_memory
from ..solvers.dual.memory import VECTORS, active_bytes
from ..solvers.dual.problem import DualProblem
from ..solvers.dual.side_by_side import scaled_starts, solve_side_by_side
from ..solvers.dual.solver import DualSolver, zero_point
from ..solvers.results import DualResult


class Fold(NamedTuple):
    """Held-out rows (n_test,), each machine's dual at C = 1 with the bounds [0, 0] for them, and ascending Cs."""

    test: RowIndices
    problems: list[DualProblem]
    Cs: Sequence[float]


_FOLDS_SHARE = 0.25  # of the memory, at most, is for the vectors of folds that are solved together
_MAX_ERROR = 0.5  # of decision values / the gap allowed, for coefficients that are all at their bounds
_CORRECTION_COPIES = 3  # of the rows in float64: all of them, and the support vectors, also in batches

Path = tuple[DualProblem, Sequence[float]]  # a machine's dual in a fold, at C = 1, and ascending Cs


class HeldOutSolver:
    """Solves the duals of all folds and Cs of one kernel after another, in one buffer for their kernel matrices.

    Parameters
    ----------
    machine_rows : sequence of ndarray of int
        The rows of each machine, in ascending order: all n, or those of two classes.
    limits : Limits
    n_bytes : int
        Beside the caller's data.
    progress : AnyProgress
    team : ThreadTeam
    """

    def __init__(
        self,
        machine_rows: Sequence[RowIndices],
        limits: Limits,
        n_bytes: int,
        progress: AnyProgress,
        team: ThreadTeam,
    ) -> None:
        self.machine_rows = machine_rows
        self.is_exact = limits.max_relative_gap <= limits.tol  # float32 could hide such gaps
        self.limits = replace(limits, scales=self.is_exact)
        self.n_bytes = n_bytes
        self.progress = progress
        self.team = team
        self._buffer: NDArray[np.uint8] = np.empty(0, np.uint8)

    def held_out_values(self, kernel: Kernel, samples: Samples, folds: Sequence[Fold]) -> list[Array]:
        """Train the machines of every fold for its Cs, and evaluate them at its held-out rows.

        Parameters
        ----------
        kernel : Kernel
        samples : Samples of length n
        folds : sequence of Fold

        Returns
        -------
        list of ndarray of shape (n_C, n_test, n_machines), float64
            For each fold; NaN for what a stopped search has not solved.

        Notes
        -----
        Memory: n^2 entries if `n_bytes` allow, and m^2 a thread where machines have m < n rows. Folds (with
        several machines of fewer rows: machines) are shared out over the threads, each solved by one; without a matrix
        the active sets of folds are.
        """
        n_values = sum(len(fold.Cs) * len(fold.test) for fold in folds) * len(self.machine_rows)
        # beside kernel matrices: the folds' decision values, twice as they are joined at the end, and their problems
        n_bytes = self.n_bytes - 8 * (2 * n_values + 3 * len(folds) * sum(map(len, self.machine_rows)))
        try:
            with self.progress.interrupting(self.team.native):
                kernel, samples, K = self._in_memory(kernel, samples, folds, n_bytes)
        except Stopped:
            return [_unknown(fold, len(self.machine_rows)) for fold in folds]

        solve = partial(self._solve_machine, kernel, samples, K, folds, n_bytes)
        numbers, largest = range(len(self.machine_rows)), max(map(len, self.machine_rows))
        has_room = self.team.n_threads * self._needed_bytes(largest, samples.dtype) < _bytes_beside(samples, K, n_bytes)
        in_parallel = len(numbers) > 1 and largest < len(samples) and has_room
        solved = self.team.map(solve, numbers) if in_parallel else map(solve, numbers)
        return [np.stack(values, axis=-1) for values in zip(*solved, strict=True)]

    def _in_memory(
        self, kernel: Kernel, samples: Samples, folds: Sequence[Fold], n_bytes: int
    ) -> tuple[Kernel, Samples, Array | None]:
        """A precomputed kernel, its Gram samples and their kernel matrix K if it fits; else the given ones and None."""
        n, free = len(samples), _bytes_beside(samples, None, n_bytes)
        if self._needed_bytes(n, samples.dtype) > free:
            return kernel, samples, None
        paths = [(problem, fold.Cs) for fold in folds for problem in fold.problems]
        samples = self._precise(kernel, samples, paths, free)
        K = self._matrix(n, samples.dtype)
        fill_gram(kernel, samples, K, self.team)
        return Precomputed(), GramSamples(K, np.arange(n)), K

    def _precise(self, kernel: Kernel, samples: Samples, paths: Sequence[Path], n_bytes: int) -> Samples:
        """The samples: with distances in float64, or entries too, where rounding could hide a gap, and these fit."""
        if not self.is_exact:
            return samples
        norm = max(Cs[-1] * float(np.linalg.norm(problem.hi - problem.lo)) for problem, Cs in paths)
        n_bytes -= _copied_bytes(samples)
        double, found = np.dtype(np.float64), samples
        for dtype in (samples.dtype, double) if isinstance(kernel, ExponentialKernel) else (double,):
            is_fine = entry_error(kernel, found) * norm <= _MAX_ERROR * self.limits.max_relative_gap
            if is_fine or self._needed_bytes(len(samples), dtype) > n_bytes:
                break
            found = samples  # one copy at a time
            found = samples.astype(double, dtype)
        return found

    def _matrix(self, n: int, dtype: DType) -> Array:
        n_bytes = n * n * dtype.itemsize
        if self._buffer.nbytes != n_bytes:
            self._buffer = np.empty(0, np.uint8)
            self._buffer = np.empty(n_bytes, np.uint8)  # kept: the first write to a page takes long
        return self._buffer.view(dtype).reshape(n, n)

    def _needed_bytes(self, m: int, dtype: DType) -> int:
        return m * m * dtype.itemsize + VECTORS * 8 * m * self.team.n_threads

    def _solve_machine(
        self, kernel: Kernel, samples: Samples, K: Array | None, folds: Sequence[Fold], n_bytes: int, p: int
    ) -> list[Array]:
        """The held-out values (n_C, n_test) of machine p in each fold."""
        if not self.progress.go_on():
            return [_unknown(fold) for fold in folds]
        own, rows = samples, self.machine_rows[p]
        m, free = len(rows), n_bytes - (0 if K is None else K.nbytes)
        paths = [(fold.problems[p], fold.Cs) for fold in folds]
        with ThreadTeam(self.team.n_threads) as team:
            if m < len(samples):
                own, K = SampleSubset(samples, rows), None
                if self._needed_bytes(m, samples.dtype) <= free - samples.nbytes:
                    shared = (free - samples.nbytes) // self.team.n_threads  # other threads have machines of their own
                    chosen = self._precise(kernel, own.take(np.arange(m)), paths, shared)
                    K = np.empty((m, m), chosen.dtype)
                    fill_gram(kernel, chosen, K, team)
            whole = KernelOperator(kernel, samples, team)
            if K is None:
                return self._solve_side_by_side(KernelOperator(kernel, own, team), rows, paths, folds, free, whole)
            solved = self._solve(K, paths, team)
            return [self._values(whole, rows, *one) for one in zip(folds, solved, strict=True)]

    def _solve(self, K: Array, paths: list[Path], team: ThreadTeam) -> list[list[DualResult]]:
        """The results along each path of a machine, on its kernel matrix K (m, m)."""

        def follow(path: Path, team: ThreadTeam) -> list[DualResult]:
            def solve(problem: DualProblem, beta: Vector, decision: Vector) -> DualResult:
                return solve_in_memory(K, problem, beta, self.limits, team, self.progress, decision=decision)

            problem, Cs = path
            return DualPath(problem, solve).follow(Cs, self.progress)

        return team.map_with_team(follow, paths)

    def _solve_side_by_side(
        self,
        operator: KernelOperator,
        rows: RowIndices,
        paths: Sequence[Path],
        folds: Sequence[Fold],
        n_bytes: int,
        whole: KernelOperator,
    ) -> list[Array]:
        """The held-out values of a machine, of the rows of `operator`, in each fold: all folds together, C by C."""
        samples, n_threads, values = operator.samples, operator.team.n_threads, [_unknown(fold) for fold in folds]
        fold_bytes = VECTORS * 8 * len(rows)
        error, copies = 0.0, _CORRECTION_COPIES * _copied_bytes(samples)
        if self.is_exact and copies < 0.5 * n_bytes and (error := entry_error(operator.kernel, samples)):
            n_bytes -= copies
        n_together = min(len(folds), max(1, int(_FOLDS_SHARE * n_bytes / fold_bytes)))
        matrix = ActiveMatrix(operator, active_bytes(samples, n_bytes - (n_together - 1) * fold_bytes, n_threads))

        def make_solver(path: Path, c: int) -> DualSolver:
            problem = scale_bounds(path[0], path[1][c])
            return DualSolver(
                operator, problem, self.limits, active_matrix=matrix, progress=self.progress, entry_error=error
            )

        for same in _with_equal_costs(paths, n_together):
            Cs = paths[same[0]][1]
            solvers, results = list[DualSolver](), list[DualResult]()
            for c, C in enumerate(Cs):
                float64_betas = [solver.float64_beta for solver in solvers]
                solvers = [make_solver(paths[k], c) for k in same]
                starts = [zero_point(len(rows))] * len(same)
                try:
                    if c:
                        starts = scaled_starts(solvers, results, C / Cs[c - 1], float64_betas)
                except Stopped:
                    return values
                results = solve_side_by_side(solvers, starts)
                if self.progress.stopped_by:
                    return values
                for k, result in zip(same, results, strict=True):
                    values[k][c] = self._values(whole, rows, folds[k], [result])[0]
        return values

    @staticmethod
    def _values(whole: KernelOperator, rows: RowIndices, fold: Fold, results: list[DualResult]) -> Array:
        """Decision values (n_C, n_test) of one machine, on `rows`, in one fold; NaN for Cs without a result."""
        test, samples = fold.test, whole.samples
        values = _unknown(fold)
        if not results:
            return values
        known = values[: len(results)]
        place = np.minimum(np.searchsorted(rows, test), len(rows) - 1)
        is_own = rows[place] == test
        known[:, is_own] = [result.scale * result.decision[place[is_own]] for result in results]
        if not is_own.all():
            coef = np.array([result.scale * result.beta for result in results])
            support = np.flatnonzero(coef.any(axis=0))
            points, others = samples.take(rows[support]), samples.take(test[~is_own])
            products = np.zeros((len(results), len(others)))
            add_kernel_product(whole.kernel, points, coef[:, support], others, products, whole.team)
            known[:, ~is_own] = products
        known += np.array([result.intercept for result in results])[:, None]
        check_finite(known)
        return values


def _with_equal_costs(paths: Sequence[Path], most: int) -> list[list[int]]:
    """The numbers of the paths, those of equal Cs together, so many at most."""
    numbers = sorted(range(len(paths)), key=lambda k: list(paths[k][1]))
    groups = [list(group) for _, group in groupby(numbers, key=lambda k: list(paths[k][1]))]
    return [group[first : first + most] for group in groups for first in range(0, len(group), most)]


def _copied_bytes(samples: Samples) -> int:
    """Bytes of the samples in float64."""
    return 2 * samples.row_bytes * len(samples)


def _bytes_beside(samples: Samples, K: Array | None, n_bytes: int) -> int:
    """Those of so many bytes beside the samples' copies and the kernel matrix of all rows."""
    return n_bytes - samples.nbytes - (0 if K is None else K.nbytes)


def _unknown(fold: Fold, *shape: int) -> Array:
    """Decision values (n_C, n_test, *shape) of a fold that was not solved: NaN."""
    return np.full((len(fold.Cs), len(fold.test), *shape), np.nan)
