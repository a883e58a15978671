"""Cutting planes the slow way: sorts, dense matrices, one row at a time."""

from __future__ import annotations

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
    """Return sum_i s_i max_a (a m_i + width a (1 - a)), m = 1 - y f, and each best a, by trying many."""
    a = np.linspace(0, 1, slopes)
    m = 1 - np.sign(signed) * f
    values = [a * one + width * a * (1 - a) for one in m]
    return float(np.abs(signed) @ [v.max() for v in values]), np.array([a[v.argmax()] for v in values])


def ascend(X: Matrix, signed: Vector, C: float, sigma: float, alpha: Vector, w: Vector, rows: list[int]) -> None:
    """One coordinate step after another on the dual of the hinges, without setting any aside."""
    y, upper = np.sign(signed), C * np.abs(signed)
    for i in rows:
        grad = y[i] * (X[i] @ w[:-1] + w[-1]) - 1
        new = np.clip(alpha[i] - grad / (X[i] @ X[i] + sigma), 0, upper[i])
        w[:-1] += (new - alpha[i]) * y[i] * X[i]
        w[-1] += (new - alpha[i]) * y[i] * sigma
        alpha[i] = new


def multiclass_risk(f: Matrix, y: NDArray[np.int64], s: Vector) -> float:
    """Return Crammer and Singer's risk of outputs f (n_classes, n)."""
    margins = 1.0 + f - f[y, np.arange(len(y))]
    margins[y, np.arange(len(y))] = 0.0
    return float(s @ margins.max(axis=0))
