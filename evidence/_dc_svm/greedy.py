"""The DC-SVM paper's own solver: greedy coordinate descent, on the whole problem or level by level."""

from __future__ import annotations

import time
from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin import TwoStepKernelKMeans
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

Vector = NDArray[np.float64]
Rows = NDArray[np.float32]
Indices = NDArray[np.intp]

_CACHE_BYTES = 2 * 10**9  # of kernel rows
_SAMPLE = 1000  # of the two-step kernel k-means, as in the paper
_MOST_STEPS = 10**8


class GreedySVC(ClassifierMixin, BaseEstimator):
    """min 1/2 a'Qa - 1'a, 0 <= a <= C: the coordinate of the largest projected gradient, one after the other.

    With levels: clusters by two-step kernel k-means, each solved from those of level l + 1, the sample of
    level l drawn from the support vectors of level l + 1 (adaptive clustering); then the support vectors of level 1
    alone (refine), then all rows.

    Parameters
    ----------
    C, gamma, tol : float
    n_levels : int
        Level l has 4^l clusters; 0 solves the whole problem from zero.
    random_state : int

    Attributes
    ----------
    support_, support_vectors_, dual_coef_ : ndarray
        In scikit-learn's layout.
    n_steps_ : int
        Coordinate steps of the solve on all rows.
    levels_ : list of dict
        `level`, `n_clusters`, `seconds` and `clustering_seconds`, from the bottom level on.
    """

    def __init__(
        self, C: float = 1.0, gamma: float = 1.0, tol: float = 1e-3, n_levels: int = 4, random_state: int = 0
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.n_levels = n_levels
        self.random_state = random_state

    def fit(self, X: Rows, y: NDArray[Any]) -> Self:
        """Train level by level."""
        self.classes_ = np.unique(y)
        X, signs = np.ascontiguousarray(X, np.float32), np.where(y == self.classes_[1], 1.0, -1.0)
        alpha, rng = np.zeros(len(X)), np.random.default_rng(self.random_state)
        self.levels_: list[dict[str, float]] = []
        for level in range(self.n_levels, 0, -1):
            start = time.perf_counter()
            labels = self._divide(X, alpha, level, rng)
            clustered = time.perf_counter()
            for cluster in np.unique(labels):
                self._solve(X, signs, alpha, np.flatnonzero(labels == cluster))
            seconds = {"seconds": time.perf_counter() - start, "clustering_seconds": clustered - start}
            self.levels_.append({"level": level, "n_clusters": 4**level, **seconds})
        if self.n_levels:
            self._solve(X, signs, alpha, np.flatnonzero(alpha))
        self.n_steps_ = self._solve(X, signs, alpha, np.arange(len(X)))
        self.support_ = np.flatnonzero(alpha)
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = (signs * alpha)[None, self.support_]
        kernel = make_kernel("rbf", gamma=self.gamma, degree=3, coef0=0.0)
        self._model = KernelExpansion(kernel, self.support_vectors_, self.dual_coef_, np.zeros(1))
        return self

    def decision_function(self, X: Rows) -> Vector:
        """Decision values of shape (n,)."""
        return np.asarray(self._model.decision_values(X)[:, 0])

    def predict(self, X: Rows) -> NDArray[Any]:
        """Labels of shape (n,)."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def _divide(self, X: Rows, alpha: Vector, level: int, rng: np.random.Generator) -> Indices:
        known = np.flatnonzero(alpha)
        pool = known if len(known) >= 4**level else np.arange(len(X))
        sample = rng.choice(pool, min(_SAMPLE, len(pool)), replace=False)
        kmeans = TwoStepKernelKMeans(min(4**level, len(sample)), gamma=self.gamma, random_state=self.random_state)
        return np.asarray(kmeans.fit(X[sample]).predict(X))

    def _solve(self, X: Rows, signs: Vector, alpha: Vector, rows: Indices) -> int:
        """Solve the problem of some rows from their alpha, in place; returns the number of steps."""
        if not len(rows):
            return 0
        part, mine = np.ascontiguousarray(X[rows]), alpha[rows]
        norms = np.einsum("ij,ij->i", part, part)
        n_kept = max(2, min(len(rows), _CACHE_BYTES // (4 * len(rows))))
        cache = np.empty((n_kept, len(rows)), np.float32)
        steps = _descend(part, norms, signs[rows], mine, self.C, self.gamma, self.tol, cache, _MOST_STEPS)
        alpha[rows] = mine
        return int(steps)


@numba.njit(cache=True)
def _descend(X: Any, norms: Any, y: Any, alpha: Any, C: float, gamma: float, tol: float, cache: Any, most: int) -> int:
    """Coordinate descent until the largest projected gradient is below tol; returns the number of steps.

    Kernel rows are computed once and kept in `cache` (m, n), the oldest replaced when it is full.
    """
    n = len(y)
    place, owner = np.full(n, -1), np.full(len(cache), -1)
    gradient, n_kept = -np.ones(n), 0
    for i in range(n):
        if alpha[i] > 0:
            n_kept = _keep_row(X, norms, gamma, i, cache, place, owner, n_kept)
            gradient += alpha[i] * y[i] * y * cache[place[i]]
    for step in range(most):
        best, size = -1, tol
        for j in range(n):
            g = gradient[j]
            is_free = (g < 0 and alpha[j] < C) or (g > 0 and alpha[j] > 0)
            if is_free and abs(g) > size:
                best, size = j, abs(g)
        if best < 0:
            return step
        n_kept = _keep_row(X, norms, gamma, best, cache, place, owner, n_kept)
        moved = min(max(alpha[best] - gradient[best], 0.0), C) - alpha[best]  # k(x, x) = 1
        alpha[best] += moved
        change, row = moved * y[best], cache[place[best]]
        for j in range(n):
            gradient[j] += change * y[j] * row[j]
    return most


@numba.njit(cache=True, fastmath=True)
def _keep_row(X: Any, norms: Any, gamma: float, i: int, cache: Any, place: Any, owner: Any, n_kept: int) -> int:
    """Compute kernel row i unless it is kept; returns the number of rows computed so far."""
    if place[i] >= 0:
        return n_kept
    at = n_kept % len(cache)
    if owner[at] >= 0:
        place[owner[at]] = -1
    place[i], owner[at] = at, i
    products = X @ X[i]
    for j in range(len(X)):
        cache[at, j] = np.exp(-gamma * max(norms[j] + norms[i] - 2 * products[j], np.float32(0)))
    return n_kept + 1
