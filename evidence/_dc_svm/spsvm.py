"""SpSVM: Keerthi, Chapelle, DeCoste, Building SVMs with Reduced Classifier Complexity, JMLR 7, 2006."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin

from evidence._kernels import kernel_values
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

Rows = NDArray[np.float32]
Vector = NDArray[np.float64]

_CANDIDATES = 59  # the best of so many is among the best 5 % with probability 0.95
_GROWTH = 1.2  # of the basis between optimisations of all coefficients
_ROUNDS = 50  # of Newton's method at most
_RIDGE = 1e-10  # on the Hessian's diagonal, relative to its trace


class SpSVM(ClassifierMixin, BaseEstimator):
    """min 1/2 w'w + C/2 sum_i max(0, 1 - y_i f(x_i))^2 with w = sum_j beta_j phi(z_j) over a basis of few rows.

    The basis grows by one of 59 random rows at a time: the one whose own coefficient lowers the objective most, by one
    Newton step with all others fixed. Whenever it has grown by a fifth, all are optimised by Newton's method.

    Parameters
    ----------
    C, gamma : float
    kernel : {"rbf", "poly"}
    n_basis : int
    random_state : int

    Attributes
    ----------
    support_ : ndarray of shape (n_basis,)
        Rows of the basis.
    objective_ : float
    """

    def __init__(
        self, C: float = 1.0, gamma: float = 1.0, kernel: str = "rbf", n_basis: int = 200, random_state: int = 0
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.n_basis = n_basis
        self.random_state = random_state

    def fit(self, X: Rows, y: NDArray[Any]) -> Self:
        """Choose the basis, and optimise."""
        self.classes_ = np.unique(y)
        X, signs = np.asarray(X, np.float32), np.where(y == self.classes_[1], 1.0, -1.0)
        rng, most = np.random.default_rng(self.random_state), min(self.n_basis, len(X))
        K, f = np.empty((most, len(X)), np.float32), np.zeros(len(X))  # kernel rows of the basis; decision values
        basis, beta, due = np.empty(0, np.intp), np.empty(0), 1
        while len(basis) < most:
            j, step = self._best_candidate(X, signs, f, basis, beta, rng)
            K[len(basis)] = self._values(X[j : j + 1], X)[0]
            f += step * K[len(basis)]
            basis, beta = np.append(basis, j), np.append(beta, step)
            if len(basis) >= due or len(basis) == most:
                beta, f = self._optimise(K[: len(basis)], K[: len(basis), basis], signs, beta, f)
                due = int(np.ceil(_GROWTH * len(basis)))
        self.objective_ = self._objective(K[:, basis], signs, beta, f)
        self.support_ = basis
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=3, coef0=0.0)
        self._model = KernelExpansion(kernel, X[basis], beta[None], np.zeros(1))
        return self

    def decision_function(self, X: Rows) -> Vector:
        """Decision values of shape (n,)."""
        return np.asarray(self._model.decision_values(X)[:, 0])

    def predict(self, X: Rows) -> NDArray[Any]:
        """Labels of shape (n,)."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def _values(self, X: Rows, Z: Rows) -> NDArray[Any]:
        return kernel_values(X, Z, self.gamma, self.kernel)

    def _best_candidate(
        self, X: Rows, signs: Vector, f: Vector, basis: Any, beta: Vector, rng: np.random.Generator
    ) -> tuple[int, float]:
        """The row of the largest decrease g^2 / (2 h), and its Newton step -g / h from 0."""
        outside = np.setdiff1d(rng.choice(len(X), min(len(X), _CANDIDATES + len(basis)), replace=False), basis)
        chosen = rng.permutation(outside)[:_CANDIDATES]
        active = np.flatnonzero(signs * f < 1)
        T = self._values(X[chosen], X[active])
        norms = np.array([self._values(x[None], x[None])[0, 0] for x in X[chosen]], np.float64)
        g = self._values(X[chosen], X[basis]) @ beta - self.C * (T @ (signs - f)[active].astype(T.dtype))
        h = norms + self.C * np.einsum("ij,ij->i", T, T, dtype=np.float64)
        best = int(np.argmax(g**2 / h))
        return int(chosen[best]), float(-g[best] / h[best])

    def _optimise(
        self, K: NDArray[Any], own: NDArray[Any], signs: Vector, beta: Vector, f: Vector
    ) -> tuple[Vector, Vector]:
        """Newton's method in all coefficients; K (m, n) are the basis' kernel rows, `own` (m, m) their part on it."""
        value = self._objective(own, signs, beta, f)
        for _ in range(_ROUNDS):
            active = np.flatnonzero(signs * f < 1)
            part = K[:, active].astype(np.float64)  # sums of float32 would make H indefinite
            H = own.astype(np.float64) + self.C * (part @ part.T)
            H[np.diag_indices(len(H))] += _RIDGE * np.trace(H)
            direction = cho_solve(cho_factor(H), self.C * (part @ signs[active])) - beta
            slope, length = (direction.astype(K.dtype) @ K).astype(np.float64), 1.0
            while (new := self._objective(own, signs, beta + length * direction, f + length * slope)) > value:
                length /= 2
                if length < 1e-6:
                    return beta, f
            beta, f, last, value = beta + length * direction, f + length * slope, value, new
            if last - value <= 1e-6 * value or np.array_equal(active, np.flatnonzero(signs * f < 1)):
                break
        return beta, f

    def _objective(self, own: NDArray[Any], signs: Vector, beta: Vector, f: Vector) -> float:
        return float(0.5 * beta @ own @ beta + 0.5 * self.C * np.square(np.maximum(0, 1 - signs * f)).sum())
