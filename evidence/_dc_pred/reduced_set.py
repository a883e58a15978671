"""A kernel expansion approximated by one of few points: Schoelkopf et al., DAGM 1998; Burges, ICML 1996."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from evidence._dc_pred.rivals import Machine, expansion
from evidence._kernels import kernel_values
from widemargin import DCSVMClassifier

Rows = NDArray[np.float32]
Vector = NDArray[np.float64]


class ReducedSet(Machine):
    """min |sum_i a_i phi(x_i) - sum_j b_j phi(z_j)|^2 over m points z and their coefficients b; a is the exact machine.

    Points are found one by one: each maximises the inner product of phi(z) and what is left of the normal vector, by
    the fixed point z = sum_i c_i k(x_i, z) x_i / sum_i c_i k(x_i, z), from several starts; then all coefficients are
    fitted anew. At last all points and coefficients are optimised together by L-BFGS, the second phase of Burges.

    Parameters
    ----------
    m : int
    gamma, C : float
    starts, rounds : int
        Of the fixed point.
    n_iter : int
        Of L-BFGS at most; 0 leaves it out.
    """

    def __init__(self, m: int, gamma: float, C: float, starts: int = 5, rounds: int = 30, n_iter: int = 200) -> None:
        self.m = m
        self.gamma = gamma
        self.C = C
        self.starts = starts
        self.rounds = rounds
        self.n_iter = n_iter

    def fit(self, X: Rows, y: Any) -> Self:
        """Train the exact machine, then reduce it."""
        return self.reduce(DCSVMClassifier(C=self.C, gamma=self.gamma, fit_intercept=False).fit(X, y))

    def reduce(self, machine: DCSVMClassifier) -> Self:
        """Reduce a trained machine of two classes."""
        points, coef = machine.support_vectors_.astype(np.float64), machine.dual_coef_[0]
        Z = self._greedy_points(points, coef)
        if self.n_iter:
            Z = self._optimised(Z, points, coef)
        self.model_ = expansion(
            Z.astype(np.float32),
            self._coefficients(Z, points, coef),
            self.gamma,
            float(np.ravel(machine.intercept_)[0]),
        )
        self.n_operations = len(Z) * (1 + 1 / Z.shape[1])
        return self

    def _greedy_points(self, points: Vector, coef: Vector) -> Vector:
        rng, Z, beta = np.random.default_rng(0), np.empty((0, points.shape[1])), np.empty(0)
        for _ in range(self.m):
            centres, rest = np.vstack([points, Z]), np.concatenate([coef, -beta])
            found = [self._climb(points[i], centres, rest) for i in rng.choice(len(points), self.starts)]
            Z = np.vstack([Z, max(found, key=lambda z: self._gain(z, centres, rest))])
            beta = self._coefficients(Z, points, coef)
        return Z

    def _coefficients(self, Z: Vector, points: Vector, coef: Vector) -> Vector:
        K = kernel_values(Z, Z, self.gamma)
        K[np.diag_indices(len(K))] += 1e-8
        return np.asarray(cho_solve(cho_factor(K), kernel_values(Z, points, self.gamma) @ coef))

    def _climb(self, z: Vector, centres: Vector, rest: Vector) -> Vector:
        for _ in range(self.rounds):
            weights = rest * kernel_values(z[None], centres, self.gamma)[0]
            total = weights.sum()
            if abs(total) < 1e-10:
                break
            moved = weights @ centres / total
            if not np.all(np.isfinite(moved)) or self._gain(moved, centres, rest) < self._gain(z, centres, rest):
                break
            z = moved
        return z

    def _gain(self, z: Vector, centres: Vector, rest: Vector) -> float:
        return abs(float(kernel_values(z[None], centres, self.gamma)[0] @ rest))

    def _optimised(self, Z: Vector, points: Vector, coef: Vector) -> Vector:
        distance = self.distance_to(points, coef)
        found = minimize(distance, Z.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self.n_iter})
        return np.asarray(found.x).reshape(Z.shape)

    def distance_to(self, points: Vector, coef: Vector) -> Callable[[Vector], tuple[float, Vector]]:
        """From Z (flat) to the squared distance at the best coefficients, less a constant, and its slope in Z.

        At the best coefficients the distance does not change with them, so that the slope is that at fixed ones.
        """

        def distance(flat: Vector) -> tuple[float, Vector]:
            Z = flat.reshape(-1, points.shape[1])
            beta = self._coefficients(Z, points, coef)
            own, others = kernel_values(Z, Z, self.gamma) * beta, kernel_values(Z, points, self.gamma) * coef
            slope = (own @ Z - own.sum(axis=1)[:, None] * Z) - (others @ points - others.sum(axis=1)[:, None] * Z)
            return -float(beta @ others.sum(axis=1)), np.ravel(4 * self.gamma * beta[:, None] * slope)

        return distance

    def _decide(self, X: Rows) -> Vector:
        return np.asarray(self.model_.decision_values(X)[:, 0])
