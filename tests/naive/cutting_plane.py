"""Cutting planes the slow way: sorts, dense matrices, one row at a time."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def hinge_slope(f: Vector, target: Vector, signed: Vector, k: float) -> float:
    """Return the right derivative at k of sum_i s_i max(0, 1 - y_i (f_i + k (target_i - f_i)))."""
    y, s = np.sign(signed), np.abs(signed)
    rate = -y * (target - f)
    hinge = 1 - y * f + k * rate
    return float(np.sum(s * rate * ((hinge > 0) | ((hinge == 0) & (rate > 0)))))


def find_root(keys: Vector, jumps: Vector, curvature: float, slope: float, lo: float) -> float:
    """Return where a line with upward jumps crosses zero, by the paper's sort."""
    if curvature * lo + slope >= 0:
        return lo
    for j in np.argsort(keys, kind="stable"):
        if curvature * keys[j] + slope >= 0:
            break
        slope += jumps[j]
        if curvature * keys[j] + slope >= 0:
            return float(keys[j])
    return -slope / curvature


def solve_simplex(H: Matrix, b: Vector, total: float) -> Vector:
    """Return the minimiser of 1/2 x'Hx - b'x over x >= 0, sum(x) = total, by a general solver."""
    n = len(b)
    result = minimize(
        lambda x: 0.5 * x @ H @ x - b @ x,
        np.full(n, total / n),
        jac=lambda x: H @ x - b,
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(result.x)


def optimal_intercept_risk(f: Vector, signed: Vector) -> float:
    """Return min_b sum_i s_i max(0, 1 - y_i (f_i + b)), by trying every breakpoint."""
    return min(intercept_risk(f, signed, b) for b in np.sign(signed) - f)


def intercept_risk(f: Vector, signed: Vector, b: float) -> float:
    """Return sum_i s_i max(0, 1 - y_i (f_i + b))."""
    return float(np.sum(np.abs(signed) * np.maximum(0, 1 - np.sign(signed) * (f + b))))


def smoothed_hinges(f: Vector, signed: Vector, width: float, slopes: int = 200_001) -> tuple[float, Vector]:
    """Return sum_i s_i max_a (a z_i + width a (1 - a)), z = 1 - y f, and each best a, by trying many."""
    a = np.linspace(0, 1, slopes)
    z = 1 - np.sign(signed) * f
    values = [a * one + width * a * (1 - a) for one in z]
    return float(np.abs(signed) @ [v.max() for v in values]), np.array([a[v.argmax()] for v in values])


def ascend(
    X: Matrix,
    signed: Vector,
    C: float,
    sigma: float,
    alpha: Vector,
    w: Vector,
    rows: list[int],
    *,
    is_squared: bool = False,
) -> None:
    """Steps of dual coordinate ascent on the given rows, without setting any aside; of hinges, or of squared ones."""
    y, upper, damping = np.sign(signed), C * np.abs(signed), np.zeros(len(signed))
    if is_squared:
        upper, damping = np.full(len(signed), np.inf), 0.5 / upper
    for i in rows:
        grad = y[i] * (X[i] @ w[:-1] + w[-1]) - 1 + damping[i] * alpha[i]
        new = np.clip(alpha[i] - grad / (X[i] @ X[i] + sigma + damping[i]), 0, upper[i])
        w[:-1] += (new - alpha[i]) * y[i] * X[i]
        w[-1] += (new - alpha[i]) * y[i] * sigma
        alpha[i] = new


def face_maximum(X: Matrix, y: Vector, gradient: Vector, sigma: float) -> Vector:
    """Return the change of the free dual variables to the maximum of the dual, their bounds ignored."""
    Q = (y[:, None] * X) @ (y[:, None] * X).T + sigma * np.outer(y, y)
    change: Vector = np.linalg.lstsq(Q, -gradient, rcond=None)[0]
    return change


def multiclass_risk(f: Matrix, y: NDArray[np.int64], s: Vector) -> float:
    """Return Crammer and Singer's risk of decision values f (n_classes, n)."""
    margins = 1.0 + f - f[y, np.arange(len(y))]
    margins[y, np.arange(len(y))] = 0.0
    return float(s @ margins.max(axis=0))


def multiclass_ascend(X: Matrix, y: NDArray[np.int64], upper: Vector, beta: Matrix, W: Matrix, rows: list[int]) -> None:
    """Steps of dual coordinate ascent for Crammer and Singer's hinge: W (d, k) = X'beta, upper (n,) = C s.

    A row's variables are min(u_c, (t - b_c) / A), with the t of sum 0 by bisection.
    """
    for i in rows:
        others = np.arange(W.shape[1]) != y[i]
        A, u = X[i] @ X[i], np.where(others, 0.0, upper[i])
        b = X[i] @ W + others - A * beta[i]
        lo, hi = float(np.min(b)) - A * upper[i] - 1.0, float(np.max(b + A * u)) + 1.0
        for _ in range(200):
            t = 0.5 * (lo + hi)
            lo, hi = (t, hi) if np.minimum(u, (t - b) / A).sum() < 0.0 else (lo, t)
        new = np.minimum(u, (hi - b) / A)
        W += np.outer(X[i], new - beta[i])
        beta[i] = new


class Round(NamedTuple):
    """What a round of Algorithm 1 found."""

    w_t: Vector  # line 3, the solution of the reduced problem
    bound: float  # its value F_t(w_t)
    w_b: Vector  # line 4, the best point
    w_c: Vector  # line 5, where the new plane touches the risk
    normal: Vector
    offset: float


def ocas(X: Matrix, y: Vector, C: float, mu: float, n_rounds: int, *, line_search: bool = True) -> list[Round]:
    """Run Algorithm 1 of Franc and Sonnenburg (2008) as printed, C before the sum of the hinges; or CPA (section 2)."""
    normals, offsets = [np.zeros(X.shape[1])], [0.0]  # line 1: the zero plane alone
    w_b, rounds = np.zeros(X.shape[1]), []
    for _ in range(n_rounds):  # line 2
        w_t, bound = solve_reduced(np.array(normals), np.array(offsets), C)  # line 3
        if line_search:  # line 4, equation (7)
            w_b = w_b + best_step(X, y, C, w_b, w_t) * (w_t - w_b)
            w_c = (1 - mu) * w_b + mu * w_t  # equation (8)
        else:
            w_c = w_t
        violates = 1 - y * (X @ w_c) > 0
        normal = -(y * violates) @ X  # line 5, equation (4): a subgradient of the risk at w_c
        offset = float(np.sum(np.maximum(0, 1 - y * (X @ w_c))) - normal @ w_c)
        normals.append(normal)
        offsets.append(offset)
        rounds.append(Round(w_t, bound, w_b, w_c, normal, offset))
    return rounds


def best_step(X: Matrix, y: Vector, C: float, w: Vector, target: Vector) -> float:
    """Return argmin_(k >= 0) F(w + k (target - w)) by appendix A: sort the zeros k_i of the hinges along the line."""
    toward = target - w
    curvature, rates, starts = toward @ toward, -y * (X @ toward), 1 - y * (X @ w)  # A_0, B_i, C_i
    if curvature == 0:
        return 0.0
    zeros = np.sort([-c / b for b, c in zip(rates, starts, strict=True) if b != 0 and -c / b > 0])
    slope = w @ toward + C * hinge_slope(X @ w, X @ target, y, 0.0)
    if slope >= 0:
        return 0.0
    for lo, hi in zip(np.append(0.0, zeros), np.append(zeros, np.inf), strict=True):
        middle = lo + 1.0 if hi == np.inf else 0.5 * (lo + hi)
        inside = w @ toward + C * hinge_slope(X @ w, X @ target, y, middle)
        if curvature * hi + inside >= 0:  # the derivative crosses zero in this piece, or has jumped over it at lo
            return max(lo, -inside / curvature)
    raise AssertionError("the derivative of a strictly convex function grows without bound")


def solve_reduced(normals: Matrix, offsets: Vector, C: float) -> tuple[Vector, float]:
    """Return the minimiser of 1/2 |w|^2 + C max_j (<a_j, w> + b_j), and the minimum, by trying every set of planes."""
    H, t, best = normals @ normals.T, len(offsets), (-np.inf, np.zeros(normals.shape[1]))
    for size in range(1, min(t, normals.shape[1] + 1) + 1):
        for chosen in map(list, combinations(range(t), size)):  # sum(beta) = C, equal values on the chosen planes
            kkt = np.block([[H[np.ix_(chosen, chosen)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            beta, *_ = np.linalg.lstsq(kkt, np.append(offsets[chosen], C), rcond=None)
            if beta[:size].min() >= -1e-12 * C and np.isclose(beta[:size].sum(), C):
                w = -beta[:size] @ normals[chosen]
                best = max(best, (float(offsets[chosen] @ beta[:size] - 0.5 * w @ w), w), key=lambda found: found[0])
    return best[1], best[0]
