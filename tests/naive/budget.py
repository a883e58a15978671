"""Budgeted stochastic gradient descent as the papers write it: one row at a time, in float64.

Coefficients are those of w, scaled at every step. A merging problem is solved on a fine grid over all of [0, 1], or by
the golden section search of Algorithm 1.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
KernelFunction = Callable[[Vector, Vector], float]

_COARSE = np.linspace(0, 1, 501)


def s(h: ArrayLike, m: float, kappa: float) -> Vector:
    """Return the merged coefficient of a_i + a_j = 1."""
    h = np.asarray(h, np.float64)
    return np.asarray(m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2))


def best_h(m: float, kappa: float) -> tuple[float, float]:
    """Return the maximiser of s over [0, 1] and wd there: a grid, then finer ones around its best node."""
    nodes = _COARSE
    for _ in range(5):
        best = float(nodes[np.argmax(s(nodes, m, kappa))])
        width = nodes[1] - nodes[0]
        nodes = np.clip(np.linspace(best - width, best + width, 201), 0, 1)
    return best, degradation(best, m, kappa)


def degradation(h: float, m: float, kappa: float) -> float:
    """Return wd of merging at h."""
    return max(m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - float(s(h, m, kappa)) ** 2, 0.0)


def look_up(grid: NDArray[np.floating], m: ArrayLike, kappa: ArrayLike) -> Vector:
    """Return the bilinear interpolant of a grid over [1/2, 1] x [0, 1]."""
    last = grid.shape[0] - 1
    u, v = (2 * np.asarray(m) - 1) * last, np.asarray(kappa) * last
    i, j = (np.minimum(w.astype(int), last - 1) for w in (u, v))
    u, v = u - i, v - j
    weights = [(i, j, (1 - u) * (1 - v)), (i, j + 1, (1 - u) * v), (i + 1, j, u * (1 - v)), (i + 1, j + 1, u * v)]
    return sum(grid[a, b].astype(np.float64) * weight for a, b, weight in weights)


def find_partner(i: int, coef: Vector, kappa: Vector) -> tuple[int, float, float]:
    """Return partner, h and squared degradation of the best merger of i; coefficients of one sign."""
    best = (-1, 0.0, np.inf)
    for j in range(len(coef)):
        if j != i:
            total = coef[i] + coef[j]
            h, wd = best_h(coef[j] / total, kappa[j])
            if total**2 * wd < best[2]:
                best = (j, h, total**2 * wd)
    return best


class Machine:
    """A list of support vectors and a list of coefficients."""

    def __init__(self, kernel: KernelFunction, lam: float, budget: int) -> None:
        self.kernel, self.lam, self.budget = kernel, lam, budget
        self.points: list[Vector] = []
        self.coef: list[float] = []
        self.n_mergers = self.n_steps = 0
        self.degradation = 0.0
        self.trace: list[tuple[list[Vector], list[float]]] = []

    def decision_values(self, x: Vector) -> float:
        """Return f(x)."""
        return sum(c * self.kernel(p, x) for c, p in zip(self.coef, self.points, strict=True))

    def step(self, x: Vector, signed_weight: float, maintain_budget: Callable[["Machine"], None]) -> None:
        """Make one step on a row; signed_weight is weight times label."""
        self.n_steps += 1
        margin = np.sign(signed_weight) * self.decision_values(x)
        self.coef = [c * (1 - 1 / self.n_steps) for c in self.coef]
        if margin < 1:
            self.points.append(np.asarray(x, np.float64))
            self.coef.append(signed_weight / (self.lam * self.n_steps))
            if len(self.coef) > self.budget:
                maintain_budget(self)

    def average(self, x: Vector) -> float:
        """Return the mean over the traced machines of f(x)."""
        values = [sum(c * self.kernel(p, x) for c, p in zip(a, b, strict=True)) for b, a in self.trace]
        return float(np.mean(values))


def merge(machine: Machine) -> None:
    """Merge the smallest coefficient (of equals the newest) with its best partner of equal sign, or remove it."""
    size = np.abs(machine.coef)
    i = int(np.flatnonzero(size <= size.min() * (1 + 1e-9))[-1])
    candidates = [j for j in range(len(size)) if machine.coef[j] * machine.coef[i] > 0]
    kappa = np.array([machine.kernel(machine.points[i], machine.points[j]) for j in candidates])
    if len(candidates) > 1:
        at, h, lost = find_partner(candidates.index(i), np.array([machine.coef[j] for j in candidates]), kappa)
        j = candidates[at]
        z = h * machine.points[j] + (1 - h) * machine.points[i]
        machine.coef[j] = machine.coef[j] * kappa[at] ** ((1 - h) ** 2) + machine.coef[i] * kappa[at] ** (h**2)
        machine.points[j] = z
        machine.n_mergers += 1
        machine.degradation += lost
    del machine.points[i], machine.coef[i]


def golden_section(f: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return the better inner point of the last bracket, of width at most `precision`, around a maximum of f."""
    golden = (np.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    while high - low > precision:
        if f(left) > f(right):
            high, right = right, left
            left = high - golden * (high - low)
        else:
            low, left = left, right
            right = low + golden * (high - low)
    return left if f(left) > f(right) else right


def algorithm_1(machine: Machine) -> None:
    """Procedure Budget Maintenance of Glasmachers and Qaadan, line by line.

    Of equally small |alpha| the newest is taken; partners are of its sign, and without one it is removed. Lines 8, 13
    and 14 have the two points the other way round in the paper, which contradicts line 7.
    """
    model = list(zip(machine.coef, machine.points, strict=True))  # line 1
    smallest = min(abs(alpha) for alpha, _ in model)  # line 2
    i_min = max(i for i, (alpha, _) in enumerate(model) if abs(alpha) <= smallest * (1 + 1e-9))
    alpha_min, x_min = model.pop(i_min)
    best_wd, best = np.inf, (-1, 0.0, 0.0)  # line 3
    for i, (alpha, x) in enumerate(model):  # line 4
        if alpha * alpha_min < 0:
            continue
        m = alpha / (alpha + alpha_min)  # line 5
        kappa = machine.kernel(x, x_min)  # line 6
        h = golden_section(lambda h, m=m, kappa=kappa: float(s(h, m, kappa)), 0.0, 1.0, 0.01)  # line 7
        alpha_z = alpha * kappa ** ((1 - h) ** 2) + alpha_min * kappa ** (h**2)  # line 8
        wd = alpha_min**2 + alpha**2 - alpha_z**2 + 2 * alpha_min * alpha * kappa  # line 9
        if wd < best_wd:  # line 10
            best_wd, best = wd, (i, h, alpha_z)  # lines 11, 12
    i, h, alpha_z = best
    if i >= 0:
        model[i] = (alpha_z, h * model[i][1] + (1 - h) * x_min)  # lines 13 to 15
        machine.n_mergers += 1
    machine.degradation += best_wd if i >= 0 else alpha_min**2
    machine.coef, machine.points = [alpha for alpha, _ in model], [x for _, x in model]


def remove(machine: Machine) -> None:
    """Remove the support vector of least coef^2 k(x, x), of equals the oldest."""
    weights = [c * c * machine.kernel(p, p) for c, p in zip(machine.coef, machine.points, strict=True)]
    least = min(weights)
    i = next(i for i, weight in enumerate(weights) if weight <= least * (1 + 1e-9))
    machine.degradation += weights[i]
    del machine.points[i], machine.coef[i]


def project(machine: Machine) -> None:
    """Project every support vector onto the others, and keep the projection of least degradation."""
    points, coef = machine.points, np.array(machine.coef)
    K = np.array([[machine.kernel(p, q) for q in points] for p in points])
    best: tuple[float, int, Vector] = (np.inf, -1, coef)
    for i in range(len(points)):
        others = np.delete(np.arange(len(points)), i)
        share = np.linalg.solve(K[np.ix_(others, others)], K[others, i])
        lost = coef[i] ** 2 * (K[i, i] - K[i, others] @ share)
        if lost < best[0]:
            best = (lost, i, coef[others] + coef[i] * share)
    machine.degradation += best[0]
    del points[best[1]]
    machine.coef = best[2].tolist()
