"""Training problems of a leaf's linear machines on its coordinates: hinge loss, ridge regression, distillation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, lstsq
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpocon

from .._memory import MemoryPlan
from .._progress import AnyProgress, SilentProgress
from .._threads import ThreadTeam, row_blocks, run_interruptibly
from .._types import Array, Mask, Matrix, RowIndices, Vector
from ..solvers.dual.certificate import START_TOL, Limits
from ..solvers.dual.in_memory import solve_in_memory
from ..solvers.dual.problem import DualProblem, svm_problem
from ..solvers.results import DualResult, LinearResult

_MAX_DUAL_ROWS = 2000  # solve leaves of at most so many rows on their approximate kernel matrix; else planes are faster


class LinearFit(NamedTuple):
    """q linear machines on the coordinates of a leaf's rows, and the sums of their certificates.

    Attributes
    ----------
    weights : ndarray of shape (q, n_coordinates)
    intercept : ndarray of shape (q,)
    objective, gap : float
        Primal objectives and duality gaps, summed over the machines.
    converged : bool
        Whether all of them did.
    """

    weights: Matrix
    intercept: Vector
    objective: float
    gap: float
    converged: bool

    @classmethod
    def from_results(cls, weights: Matrix, intercept: Vector, results: Sequence[DualResult | LinearResult]) -> Self:
        """Machines of weights (q, n_coordinates) and intercepts (q,), and the sums of these results' certificates."""
        return cls(
            weights,
            intercept,
            sum(result.objective for result in results),
            sum(result.gap for result in results),
            all(result.converged for result in results),
        )

    @classmethod
    def constant(cls, intercept: Vector, objective: float) -> Self:
        """Weights of zero, (q, 1), and these intercepts; the gap is the objective, as the optimum is at least 0."""
        return cls(np.zeros((len(intercept), 1)), intercept, objective, objective, objective == 0.0)


class ExactSolution(NamedTuple):
    """The solution on the exact kernel of a leaf with n rows: what landmarks are chosen by.

    Attributes
    ----------
    landmark_weights : ndarray of shape (n,)
        Squared dual variables, summed over the outputs: weights of the columns' errors in theorems 1 and 2.
    values : ndarray of shape (q, n)
        Decision values.
    """

    landmark_weights: Vector
    values: Matrix


class LeafProblem(Protocol):
    """The training problem of q machines, restricted to the samples `rows` of a leaf."""

    n_outputs: int
    needs_kernel_matrix: bool  # of a leaf's rows, for its exact machine and for W; without, W is the identity

    def exact_solution(self, K: Array | None, rows: RowIndices, progress: AnyProgress) -> ExactSolution:
        """Train the exact machine, on the kernel matrix K (n, n) of these rows."""

    def fit(self, coordinates: Array, rows: RowIndices, progress: AnyProgress, memory: MemoryPlan) -> LinearFit:
        """Train linear machines on coordinates (n, n_coordinates); raises `Stopped` if least squares are stopped."""

    def objective(self, values: Matrix, weights: Matrix, rows: RowIndices) -> float:
        """Primal objective of decision values (q, n) and weights (q, n_coordinates)."""

    def constant(self, rows: RowIndices) -> LinearFit:
        """The best intercepts for weights of zero, (q, 1), with a gap as large as the objective: O(q n)."""


# `ocas.train_hinges`, of coordinates (n, n_coordinates), signed weights (q, n), tolerance, progress and memory
LinearTrainer = Callable[[Array, Matrix, float, AnyProgress, MemoryPlan], list[LinearResult]]


class HingeProblem:
    """One support vector machine for each of q outputs, without intercept.

    Parameters
    ----------
    signs : ndarray of shape (q, n)
        Labels +-1.
    upper : ndarray of shape (n,)
        C times weight.
    tol : float
    train_linear : LinearTrainer
        For leaves of many rows.
    """

    needs_kernel_matrix = True

    def __init__(self, signs: Matrix, upper: Vector, tol: float, train_linear: LinearTrainer) -> None:
        self.signs = signs
        self.upper = upper
        self.tol = tol
        self.train_linear = train_linear
        self.n_outputs = len(signs)

    def exact_solution(self, K: Array | None, rows: RowIndices, progress: AnyProgress) -> ExactSolution:
        """Solve the duals of the outputs with both labels; the decision values of the others are 0."""
        assert K is not None
        landmark_weights, values = np.zeros(len(rows)), np.zeros((self.n_outputs, len(rows)))
        limits = Limits(max(self.tol, START_TOL), max_relative_gap=np.inf)
        for output, problem in zip(np.flatnonzero(self._is_mixed(rows)), self._problems(rows), strict=True):
            result = _solve(K, problem, limits, progress)
            landmark_weights += np.square(result.beta)
            values[output] = result.decision
        return ExactSolution(landmark_weights, values)

    def fit(self, coordinates: Array, rows: RowIndices, progress: AnyProgress, memory: MemoryPlan) -> LinearFit:
        """Minimise ½‖w‖² + Σ u_i max(0, 1 - y_i <w, z_i>) per output; with one label, that label as the intercept."""
        signs, single, is_mixed = self.signs[:, rows], coordinates.astype(np.float32), self._is_mixed(rows)
        weights, intercept = np.zeros((self.n_outputs, coordinates.shape[1])), np.where(is_mixed, 0.0, signs[:, 0])
        if not is_mixed.any():
            return LinearFit(weights, intercept, 0.0, 0.0, True)
        if len(rows) > _MAX_DUAL_ROWS:
            signed_weights = signs[is_mixed] * self.upper[rows]
            results: Sequence[Any] = self.train_linear(single, signed_weights, self.tol, progress, memory)
            weights[is_mixed] = np.concatenate([result.w for result in results])
        else:
            K, limits = single @ single.T, Limits(self.tol)
            results = [_solve(K, problem, limits, progress) for problem in self._problems(rows)]
            weights[is_mixed] = [result.beta @ coordinates for result in results]
        return LinearFit.from_results(weights, intercept, results)

    def objective(self, values: Matrix, weights: Matrix, rows: RowIndices) -> float:
        """½ Σ ‖w‖² plus the weighted hinge losses."""
        losses = np.maximum(1.0 - self.signs[:, rows] * values, 0.0) @ self.upper[rows]
        return float(0.5 * np.vdot(weights, weights) + losses.sum())

    def constant(self, rows: RowIndices) -> LinearFit:
        """The label of larger weight, for each output."""
        label = np.where(self.signs[:, rows] @ self.upper[rows] >= 0, 1.0, -1.0)
        none = np.zeros((self.n_outputs, 1))
        return LinearFit.constant(label, self.objective(label[:, None], none, rows))

    def _problems(self, rows: RowIndices) -> list[DualProblem]:
        """The duals of the outputs with both labels."""
        return [svm_problem(sign, self.upper[rows]) for sign in self.signs[self._is_mixed(rows)][:, rows]]

    def _is_mixed(self, rows: RowIndices) -> Mask:
        """Whether an output's labels differ among these rows."""
        signs = self.signs[:, rows]
        return np.asarray(np.any(signs != signs[:, :1], axis=1))


def _solve(K: Array, problem: DualProblem, limits: Limits, progress: AnyProgress) -> DualResult:
    """Solve a dual on K (n, n) in float32, which is enough for an approximate kernel."""
    return solve_in_memory(K.astype(np.float32, copy=False), problem, np.zeros(len(K)), limits, ThreadTeam(1), progress)


class _LeastSquares:
    """Base of the least-squares problems: `_fit` cannot be interrupted; a fit that is stopped does not wait for it."""

    _fit: Callable[[Array, RowIndices], LinearFit]

    def fit(self, coordinates: Array, rows: RowIndices, progress: AnyProgress, memory: MemoryPlan) -> LinearFit:
        """Train linear machines on coordinates (n, n_coordinates); raises `Stopped` once the fit should end."""
        return run_interruptibly(
            partial(self._fit, coordinates, rows),
            SilentProgress(progress).go_on,
            least_squares_work(*coordinates.shape),
        )


class RidgeProblem(_LeastSquares):
    """Kernel ridge regression: minimise sum_i s_i (y_i - f(x_i) - b)^2 + penalty |f|^2, with b = 0 or over b, too.

    Parameters
    ----------
    targets : ndarray of shape (q, n)
    penalty : float
        The paper's lambda, >= 0; 0 is least squares, of the weights of least norm.
    sample_weights : ndarray of shape (n,)
    has_intercept : bool, default False
        Whether there is an intercept b.
    """

    needs_kernel_matrix = True

    def __init__(self, targets: Matrix, penalty: float, sample_weights: Vector, *, has_intercept: bool = False) -> None:
        self.targets = targets
        self.penalty = penalty
        self.sample_weights = sample_weights
        self.has_intercept = has_intercept
        self.n_outputs = len(targets)

    def exact_solution(self, K: Array | None, rows: RowIndices, progress: AnyProgress) -> ExactSolution:
        """Solve (K + penalty S^-1) alpha = y - b by Cholesky factors; an intercept b is the one with sum(alpha) = 0.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the matrix is singular to the precision of float64.
        """
        assert K is not None
        A, penalties, targets = K.astype(np.float64), self.penalty / self.sample_weights[rows], self.targets[:, rows]
        A[np.diag_indices(len(A))] += penalties
        solve = partial(_solve_regular, A, np.vstack([targets, *np.ones((int(self.has_intercept), len(A)))]).T)
        alpha = run_interruptibly(solve, SilentProgress(progress).go_on, least_squares_work(*A.shape)).T
        if self.has_intercept:
            alpha, of_ones = alpha[:-1], alpha[-1]
            alpha = alpha - np.outer(alpha.sum(axis=1) / of_ones.sum(), of_ones)
        return ExactSolution(np.square(alpha).sum(axis=0), targets - penalties * alpha)

    def _fit(self, coordinates: Array, rows: RowIndices) -> LinearFit:
        """By normal equations; without a penalty, or if these are singular to float64, by singular values.

        With an intercept that of the centred coordinates and targets.
        """
        targets, s = self.targets[:, rows], self.sample_weights[rows]
        centre, mean = np.zeros(coordinates.shape[1]), np.zeros(self.n_outputs)
        if self.has_intercept:
            centre, mean = s @ coordinates / s.sum(), targets @ s / s.sum()
            coordinates, targets = coordinates - centre, targets - mean[:, None]
        weights = None
        if self.penalty > 0.0:
            with suppress(np.linalg.LinAlgError):
                weights = self._solve_normal_equations(coordinates, targets, s)
        if weights is None:
            weights = self._solve_least_squares(coordinates, targets, s)
        objective = self.objective(weights @ coordinates.T + mean[:, None], weights, rows)
        return LinearFit(weights, mean - weights @ centre, objective, 0.0, True)

    def _solve_normal_equations(self, coordinates: Array, targets: Matrix, s: Vector) -> Matrix:
        """Weights (q, n_coordinates), by the equations or their dual: O(n n_coordinates min(n, n_coordinates))."""
        n, n_coordinates = coordinates.shape
        if n < n_coordinates:
            A = coordinates @ coordinates.T
            A[np.diag_indices(n)] += self.penalty / s
            return np.asarray(_solve_regular(A, targets.T).T @ coordinates)
        weighted = coordinates * s[:, None]
        A = weighted.T @ coordinates
        A[np.diag_indices(n_coordinates)] += self.penalty
        return _solve_regular(A, weighted.T @ targets.T).T

    def _solve_least_squares(self, coordinates: Array, targets: Matrix, s: Vector) -> Matrix:
        """Weights (q, n_coordinates) of least norm: the limit of small penalties.

        With a penalty, which is here below the squares of such singular values, those that float64 cannot tell from
        zeros in the normal equations are zeros.
        """
        roots = np.sqrt(s)[:, None]
        least = np.sqrt(np.finfo(np.float64).eps) if self.penalty else None
        return np.asarray(lstsq(coordinates * roots, targets.T * roots, cond=least)[0].T)

    def objective(self, values: Matrix, weights: Matrix, rows: RowIndices) -> float:
        """Weighted squared errors plus penalty |w|^2."""
        errors = np.square(self.targets[:, rows] - values) @ self.sample_weights[rows]
        return float(errors.sum() + self.penalty * np.vdot(weights, weights))

    def constant(self, rows: RowIndices) -> LinearFit:
        """The weighted means of the targets, or zero without an intercept."""
        zero, s = np.zeros((self.n_outputs, 1)), self.sample_weights[rows]
        mean = self.targets[:, rows] @ s / s.sum() if self.has_intercept else zero[:, 0]
        return LinearFit.constant(mean, self.objective(mean[:, None], zero, rows))


def least_squares_work(n: int, n_coordinates: int) -> float:
    """Multiply-adds of least squares on coordinates, about: normal equations or their dual, eigenvectors."""
    rank = min(n, n_coordinates)
    return float(n) * n_coordinates * rank + 10.0 * rank**3


def _solve_regular(A: Matrix, B: Matrix) -> Matrix:
    """Solve A X = B for a positive definite A (n, n); LinAlgError for a reciprocal condition number below 2^-52."""
    factor, lower = cho_factor(A)
    if len(A) and dpocon(factor, np.abs(A).sum(axis=0).max())[0] < np.finfo(np.float64).eps:
        raise np.linalg.LinAlgError("the matrix is singular to the precision of float64")
    return np.asarray(cho_solve((factor, lower), B))


class DistillationProblem(_LeastSquares):
    """Least squares on the decision values of another machine.

    Parameters
    ----------
    values : ndarray of shape (q, n)
        The other machine's decision values.
    landmark_weights : ndarray of shape (n,)
        Squared coefficients of its own points among the rows, summed over the q functions; 0 for other rows.
    """

    needs_kernel_matrix = False

    def __init__(self, values: Matrix, landmark_weights: Vector) -> None:
        self.values = values
        self.landmark_weights = landmark_weights
        self.n_outputs = len(values)

    def exact_solution(self, K: Array | None, rows: RowIndices, progress: AnyProgress) -> ExactSolution:
        """The other machine's squared coefficients and decision values."""
        return ExactSolution(self.landmark_weights[rows], self.values[:, rows])

    def _fit(self, coordinates: Array, rows: RowIndices) -> LinearFit:
        """Ridge regression with an intercept; the penalty is that of least generalised cross-validation error."""
        values, n = self.values[:, rows], len(rows)
        centre, means = coordinates.mean(axis=0, dtype=np.float64), values.mean(axis=1)
        targets = values - means[:, None]
        squares, V, projected = _principal_axes(coordinates, centre, targets)
        total = float(np.square(targets).sum())
        penalty = min(_penalties(squares), key=lambda penalty: _gcv(total, projected, _shrinkage(squares, penalty), n))
        shrinkage = _shrinkage(squares, penalty)
        weights = (V @ (projected * (shrinkage / np.sqrt(squares))[:, None])).T
        residual = _squared_residuals(total, projected, shrinkage)
        return LinearFit(weights, means - weights @ centre, max(residual, 0.0), 0.0, True)

    def objective(self, values: Matrix, weights: Matrix, rows: RowIndices) -> float:
        """Sum of squared differences."""
        return float(np.square(self.values[:, rows] - values).sum())

    def constant(self, rows: RowIndices) -> LinearFit:
        """The means of the decision values."""
        means = self.values[:, rows].mean(axis=1)
        return LinearFit.constant(means, self.objective(means[:, None], means, rows))


def _principal_axes(C: Array, centre: Vector, targets: Matrix) -> tuple[Vector, Matrix, Matrix]:
    """Squared singular values of C - centre, its right singular vectors, and the targets along its left ones."""
    if len(C) <= C.shape[1]:
        rows = C - centre
        squares, U = eigh(rows @ rows.T, overwrite_a=True)
        first = _first_above_rounding(squares, len(C))
        squares, U = squares[first:], U[:, first:]
        return squares, rows.T @ (U / np.sqrt(squares)), U.T @ targets.T
    A, B = _normal_equations(C, centre, targets)
    squares, V = eigh(A, lower=False, overwrite_a=True)
    first = _first_above_rounding(squares, len(C))
    squares, V = squares[first:], V[:, first:]
    return squares, V, (V.T @ B) / np.sqrt(squares)[:, None]


def _first_above_rounding(squares: Vector, n: int) -> int:
    """Index of the first of ascending eigenvalues that exceeds the rounding errors of n rows."""
    return int(np.searchsorted(squares, np.finfo(np.float64).eps * n * max(float(squares[-1]), 0.0), side="right"))


def _normal_equations(C: Array, centre: Vector, targets: Matrix) -> tuple[Matrix, Matrix]:
    """(C - centre)'(C - centre), the upper triangle, and (C - centre)' targets', in float64 over blocks of rows."""
    n_features = C.shape[1]
    A, B = np.zeros((n_features, n_features), order="F"), np.zeros((n_features, len(targets)))
    for block in row_blocks(len(C)):
        rows = C[block] - centre
        A = dsyrk(1.0, rows.T, beta=1.0, c=A, overwrite_c=True)
        B += rows.T @ targets[:, block].T
    return A, B


def _penalties(squares: Vector) -> Vector:
    """Ridge penalties to choose from: 0, and 1e-12 to 0.1 times the largest squared singular value."""
    largest = float(squares.max(initial=0.0))
    return np.array([0.0, *(largest * 10.0 ** np.arange(-12, 0))]) if largest > 0 else np.zeros(1)


def _shrinkage(squares: Vector, penalty: float) -> Vector:
    """Shrinkage factors s^2 / (s^2 + penalty) of ridge regression along the singular vectors."""
    return squares / (squares + penalty)


def _squared_residuals(total: float, projected: Matrix, shrinkage: Vector) -> float:
    """Sum of squared residuals of ridge regression, from the targets' squared norm and `projected` coordinates."""
    return total - float((np.square(projected) * (1 - (1 - shrinkage) ** 2)[:, None]).sum())


def _gcv(total: float, projected: Matrix, shrinkage: Vector, n: int) -> float:
    """Generalised cross-validation error (Golub, Heath, Wahba 1979): squared residuals / squared degrees of freedom."""
    freedom = n - 1 - shrinkage.sum()
    return float(_squared_residuals(total, projected, shrinkage) / freedom**2) if freedom > 0.5 else np.inf
