"""The SVM dual, slowly: solvers of a few lines each, and the quantities that certify any solution.

Notation: Q_ij = y_i y_j k(x_i, x_j), p = -1, bounds 0 <= alpha_i <= upper_i, gradient Q alpha + p; with an intercept
also y'alpha = 0. Everything is float64 and O(n^2) a pass.
"""

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


def solve_box_qp(
    Q: Matrix, p: Vector, upper: Vector, *, tol: float = 1e-12, max_sweeps: int = 200_000, alpha: Vector | None = None
) -> Vector:
    """Minimise 1/2 a'Qa + p'a over 0 <= a <= upper by sweeps of exact one-dimensional steps.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Symmetric, positive semi-definite.
    p, upper : ndarray of shape (n,)
    tol : float
        Stops when no projected gradient exceeds it.
    max_sweeps : int
    alpha : ndarray of shape (n,), optional
        Feasible start; zero by default. Not changed.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    RuntimeError
        After `max_sweeps` without reaching `tol`.
    """
    a = np.zeros(len(p)) if alpha is None else np.array(alpha, np.float64)
    for _ in range(max_sweeps):
        for i in range(len(a)):
            g = Q[i] @ a + p[i]
            if Q[i, i] > 0:
                a[i] = min(max(a[i] - g / Q[i, i], 0.0), upper[i])
            else:
                a[i] = upper[i] if g < 0 else 0.0
        if violation(Q, p, upper, a) <= tol:
            return a
    raise RuntimeError(f"no convergence in {max_sweeps} sweeps: violation {violation(Q, p, upper, a)} > {tol}")


def solve_equality_qp(
    Q: Matrix, p: Vector, y: Vector, upper: Vector, *, tol: float = 1e-10, max_steps: int = 2_000_000
) -> Vector:
    """Minimise 1/2 a'Qa + p'a over 0 <= a <= upper, y'a = 0 by steps along the maximal violating pair.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Symmetric, positive semi-definite.
    p, upper : ndarray of shape (n,)
    y : ndarray of shape (n,)
        Signs, +1 or -1.
    tol : float
        Stops when m(a) - M(a) does not exceed it.
    max_steps : int

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    RuntimeError
        After `max_steps` without reaching `tol`.
    """
    a = np.zeros(len(p))
    g = np.array(p, np.float64)
    for _ in range(max_steps):
        score = -y * g
        rises, falls = _movable(y, upper, a)
        i = int(np.argmax(np.where(rises, score, -np.inf)))
        j = int(np.argmin(np.where(falls, score, np.inf)))
        if not rises.any() or not falls.any() or score[i] - score[j] <= tol:
            return a
        # along a_i += y_i t, a_j -= y_j t the constraint holds and the slope at t = 0 is -(score_i - score_j)
        curvature = Q[i, i] + Q[j, j] - 2.0 * y[i] * y[j] * Q[i, j]
        room_i = upper[i] - a[i] if y[i] > 0 else a[i]
        room_j = a[j] if y[j] > 0 else upper[j] - a[j]
        t = min((score[i] - score[j]) / max(curvature, 1e-12), room_i, room_j)
        before = a[[i, j]].copy()
        # hit the bound exactly, so that rounding never leaves a sliver of room
        a[i] = (upper[i] if y[i] > 0 else 0.0) if t == room_i else a[i] + y[i] * t
        a[j] = (0.0 if y[j] > 0 else upper[j]) if t == room_j else a[j] - y[j] * t
        g += Q[:, i] * (a[i] - before[0]) + Q[:, j] * (a[j] - before[1])
    raise RuntimeError(f"no convergence in {max_steps} steps: {equality_violation(Q, p, y, upper, a)} > {tol}")


def reference_box_qp(Q: Matrix, p: Vector, upper: Vector) -> Vector:
    """Minimise as `solve_box_qp` does, by SciPy's active-set method for bounded least squares (positive definite Q).

    With Q = R'R the problem is min ||R a + R^{-T} p||, so an outside, finite method answers it; variables with
    upper = 0 are left out.
    """
    free = np.flatnonzero(upper > 0)
    R = np.linalg.cholesky(Q[np.ix_(free, free)]).T
    result = scipy.optimize.lsq_linear(
        R, -np.linalg.solve(R.T, p[free]), bounds=(0.0, upper[free]), method="bvls", tol=1e-15, max_iter=100 * len(p)
    )
    a = np.zeros(len(p))
    a[free] = result.x
    return a


def reference_equality_qp(Q: Matrix, p: Vector, y: Vector, upper: Vector) -> Vector:
    """Minimise as `solve_equality_qp` does, by SciPy's sequential quadratic programming; good to about 1e-6."""
    result = scipy.optimize.minimize(
        lambda a: objective(Q, p, a),
        np.zeros(len(p)),
        jac=lambda a: Q @ a + p,
        bounds=[(0.0, float(u)) for u in upper],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return np.asarray(result.x)


def violation(Q: Matrix, p: Vector, upper: Vector, alpha: Vector) -> float:
    """Return the largest projected gradient: entries that push a variable against the bound it sits on don't count."""
    g = Q @ alpha + p
    worst = 0.0
    for a_i, g_i, u_i in zip(alpha, g, upper, strict=True):
        if (g_i < 0 and a_i < u_i) or (g_i > 0 and a_i > 0):
            worst = max(worst, abs(float(g_i)))
    return worst


def equality_violation(Q: Matrix, p: Vector, y: Vector, upper: Vector, alpha: Vector) -> float:
    """Return m(alpha) - M(alpha): the largest slope along any feasible pair direction, 0 or less at the optimum."""
    score = -y * (Q @ alpha + p)
    rises, falls = _movable(y, upper, alpha)
    if not rises.any() or not falls.any():
        return 0.0
    return float(score[rises].max() - score[falls].min())


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
