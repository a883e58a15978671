"""The SVM dual, slowly: solvers of a few lines each, and the quantities that certify any solution.

Notation: Q_ij = y_i y_j k(x_i, x_j), p = -1, bounds 0 <= alpha_i <= upper_i, gradient Q alpha + p; with an intercept
also y'alpha = 0. Everything is float64 and O(n^2) a pass.
"""

from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def signed(K: Matrix, y: Vector) -> Matrix:
    """Return Q = diag(y) K diag(y) in float64."""
    K, y = np.asarray(K, np.float64), np.asarray(y, np.float64)
    return y[:, None] * K * y[None, :]


def objective(Q: Matrix, p: Vector, alpha: Vector) -> float:
    """Return 1/2 alpha'Q alpha + p'alpha."""
    return float(0.5 * alpha @ Q @ alpha + p @ alpha)


def solve_qp(Q: Matrix, p: Vector, upper: Vector, y: Vector | None = None, **options: Any) -> Vector:
    """Minimise 1/2 a'Qa + p'a over 0 <= a <= upper, and with signs y under y'a = 0."""
    return solve_box_qp(Q, p, upper, **options) if y is None else solve_equality_qp(Q, p, upper, y, **options)


def solve_box_qp(Q: Matrix, p: Vector, upper: Vector, *, alpha: Vector | float = 0.0, tol: float = 1e-10) -> Vector:
    """Minimise 1/2 a'Qa + p'a over 0 <= a <= upper: a variable without a cost makes up for the sum."""
    a, signs = np.broadcast_to(alpha, len(p)), np.append(np.ones(len(p)), -1.0)
    Q, p, upper = np.pad(Q, (0, 1)), np.append(p, 0.0), np.append(upper, 1.0 + np.sum(upper))
    return solve_equality_qp(Q, p, upper, signs, alpha=np.append(a, a.sum()), tol=tol)[:-1]


def solve_equality_qp(
    Q: Matrix, p: Vector, upper: Vector, y: Vector, *, alpha: Vector | float = 0.0, tol: float = 1e-10
) -> Vector:
    """Minimise 1/2 a'Qa + p'a over 0 <= a <= upper, y'a = 0, from a feasible alpha to a violation of tol.

    Each step raises the variable of largest slope, against the one with which a line search gains most.
    """
    a = np.broadcast_to(alpha, len(p)).astype(np.float64)
    g, diagonal = Q @ a + p, Q.diagonal()
    for _ in range(2_000_000):
        score = -y * g
        rises, falls = _movable(y, upper, a)
        i = int(np.argmax(np.where(rises, score, -np.inf)))
        differences = np.where(falls, score[i] - score, 0.0)
        if not rises.any() or differences.max() <= tol:
            return a
        # along a_i += y_i t, a_j -= y_j t the constraint holds and the slope at t = 0 is -(score_i - score_j)
        curvatures = np.maximum(Q[i, i] + diagonal - 2.0 * y[i] * y * Q[i], 1e-12)
        j = int(np.argmax(np.maximum(differences, 0.0) ** 2 / curvatures))
        room_i = upper[i] - a[i] if y[i] > 0 else a[i]
        room_j = a[j] if y[j] > 0 else upper[j] - a[j]
        t = min(differences[j] / curvatures[j], room_i, room_j)
        before = a[[i, j]].copy()
        # hit the bound exactly, so that rounding never leaves a sliver of room
        a[i] = (upper[i] if y[i] > 0 else 0.0) if t == room_i else a[i] + y[i] * t
        a[j] = (0.0 if y[j] > 0 else upper[j]) if t == room_j else a[j] - y[j] * t
        g += Q[:, i] * (a[i] - before[0]) + Q[:, j] * (a[j] - before[1])
    raise RuntimeError(f"no convergence: {equality_violation(Q, p, upper, a, y)} > {tol}")


def reference_qp(Q: Matrix, p: Vector, upper: Vector, y: Vector | None = None) -> Vector:
    """Minimise as `solve_qp` does, by SciPy's sequential quadratic programming."""
    result = scipy.optimize.minimize(
        lambda a: objective(Q, p, a),
        np.zeros(len(p)),
        jac=lambda a: Q @ a + p,
        bounds=[(0.0, float(u)) for u in upper],
        constraints=() if y is None else {"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return np.asarray(result.x)


def violation(Q: Matrix, p: Vector, upper: Vector, alpha: Vector, y: Vector | None = None) -> float:
    """Return the largest slope along a variable that may move; with signs y the `equality_violation`."""
    if y is not None:
        return equality_violation(Q, p, upper, alpha, y)
    g = Q @ alpha + p
    return float(max((-g[alpha < upper]).max(initial=0.0), g[alpha > 0].max(initial=0.0)))


def equality_violation(Q: Matrix, p: Vector, upper: Vector, alpha: Vector, y: Vector) -> float:
    """Return the largest slope along a pair of variables that may move and keeps y'alpha."""
    score = -y * (Q @ alpha + p)
    rises, falls = _movable(y, upper, alpha)
    return float(max(score[rises].max(initial=-np.inf) - score[falls].min(initial=np.inf), 0.0))


def primal(K: Matrix, y: Vector, upper: Vector, alpha: Vector, b: float = 0.0) -> float:
    """Return 1/2 ||w||^2 + sum_i upper_i max(0, 1 - y_i (f(x_i) + b)) of the machine w = sum_i y_i alpha_i phi(x_i)."""
    f = K @ (y * alpha)
    return float(0.5 * (y * alpha) @ f + upper @ np.maximum(0.0, 1.0 - y * (f + b)))


def dual_gap(K: Matrix, y: Vector, upper: Vector, alpha: Vector, b: float = 0.0) -> float:
    """Return primal minus dual value: never negative for a feasible alpha (with b: y'alpha = 0), 0 at the optimum."""
    Q = signed(K, y)
    return primal(K, y, upper, alpha, b) + objective(Q, -np.ones(len(y)), alpha)


def best_intercept(K: Matrix, y: Vector, upper: Vector, alpha: Vector) -> float:
    """Return a b that minimises `primal`: the loss is piecewise linear in b, so one of its kinks is a minimiser."""
    f = K @ (y * alpha)
    kinks = y - f
    losses = [float(upper @ np.maximum(0.0, 1.0 - y * (f + b))) for b in kinks]
    return float(kinks[int(np.argmin(losses))])


def _movable(y: Vector, upper: Vector, alpha: Vector) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows can raise y_i alpha_i, and which can lower it."""
    below, above = alpha < upper, alpha > 0
    return np.where(y > 0, below, above), np.where(y > 0, above, below)
