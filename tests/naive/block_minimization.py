"""Parallel block minimisation, plainly: whole kernel matrix, exact solutions of the blocks and of a joint problem."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def project(b: Vector, lo: Vector, hi: Vector, total: float | None) -> Vector:
    """The nearest point of the box, with this sum unless it is None: clip(b - shift), the shift by bisection."""
    if total is None:
        return np.clip(b, lo, hi)
    low, high = float(np.min(b - hi)), float(np.max(b - lo))
    for _ in range(60):
        shift = 0.5 * (low + high)
        low, high = (shift, high) if np.clip(b - shift, lo, hi).sum() > total else (low, shift)
    return np.clip(b - 0.5 * (low + high), lo, hi)


def solve(K: Vector, t: Vector, lo: Vector, hi: Vector, b: Vector, keep_sum: bool, n_steps: int = 400) -> Vector:
    """min 1/2 b'Kb - t'b over the box, with sum(b) as at the start if it is kept: accelerated projected gradient."""
    total, rate = (float(b.sum()) if keep_sum else None), 1.0 / np.linalg.eigvalsh(K)[-1]
    ahead, momentum = b, 1.0
    for _ in range(n_steps):
        new = project(ahead - rate * (K @ ahead - t), lo, hi, total)
        next_momentum = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead, b, momentum = new + (momentum - 1) / next_momentum * (new - b), new, next_momentum
    return b


def solve_part(
    K: Vector, t: Vector, lo: Vector, hi: Vector, b: Vector, rows: NDArray[np.intp], keep_sum: bool
) -> Vector:
    """The step (n,) to the solution in the variables `rows`, all others fixed."""
    inner = K[np.ix_(rows, rows)]
    target = t[rows] - (K[rows] @ b - inner @ b[rows])
    step = np.zeros_like(b)
    step[rows] = solve(inner, target, lo[rows], hi[rows], b[rows], keep_sum) - b[rows]
    return step


def minimize_blocks(
    K: Vector, t: Vector, lo: Vector, hi: Vector, blocks: list[NDArray[np.intp]], keep_sum: bool, n_rounds: int
) -> list[float]:
    """The objectives of rounds that are by turns one of blocks and one of the variables that are free or violate."""
    b = np.zeros(len(t))
    objectives = [0.0]
    for k in range(n_rounds):
        if k % 2 == 0:
            step = sum((solve_part(K, t, lo, hi, b, rows, keep_sum) for rows in blocks), np.zeros_like(b))
        else:
            grad = K @ b - t
            free = (b > lo) & (b < hi)
            offset = -grad[free].mean() if keep_sum and free.any() else 0.0
            violates = ((b < hi) & (grad + offset < 0)) | ((b > lo) & (grad + offset > 0))
            step = solve_part(K, t, lo, hi, b, np.flatnonzero(free | violates), keep_sum)
        slope, curvature = step @ (K @ b - t), step @ K @ step
        b = b + (min(1.0, -slope / curvature) if curvature > 0 else 0.0) * step
        objectives.append(float(0.5 * b @ K @ b - t @ b))
    return objectives
