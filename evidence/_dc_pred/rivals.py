"""Other machines with fast predictions. Whitening is part of the weights, so that it costs nothing in a prediction.

All of them have `fit`, `decision_function` and `n_operations`: what a row costs, in inner products.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator
from sklearn.svm import LinearSVC
from sklearn.utils import check_array

from evidence._fastfood import FastfoodFeatures
from evidence._kernels import kernel_values
from widemargin import DCSVMClassifier
from widemargin._threads import ThreadTeam, blas_limit, row_blocks
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion
from widemargin.nystroem.landmarks import select_landmarks

Vector = NDArray[np.float64]
Rows = NDArray[np.float32]

_LEAST_EIGENVALUE = 1e-7  # of the landmarks' kernel matrix, relative: smaller ones are noise in float32
_BLOCK = 1024


class Machine(BaseEstimator):
    """Checks the rows, as all estimators do, then decides."""

    n_operations: float

    def decision_function(self, X: Any) -> Vector:
        """Decision values of shape (n,)."""
        return self._decide(check_array(X, dtype=np.float32))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels -1 and 1."""
        return np.where(self.decision_function(X) > 0, 1, -1)

    def _decide(self, X: Rows) -> Vector:
        raise NotImplementedError


class Landmarks(Machine):
    """Nystroem: k-means centres or random rows as landmarks, then LIBLINEAR, or ridge regression.

    With k-means centres it is LLSVM (Zhang, Tsang, Kwok 2008), without whitening LTPU (Moody, Darken 1989).

    Parameters
    ----------
    m : int
    gamma : float
    C : float
        Of LIBLINEAR; of ridge regression 1/C is the penalty.
    method : {"kmeans", "uniform"}
    is_ridge : bool
    whiten : bool
        Whether inner products of the features are those of the approximated kernel.
    random_state : int
    """

    def __init__(
        self,
        m: int,
        gamma: float,
        C: float = 1.0,
        method: str = "kmeans",
        is_ridge: bool = False,
        whiten: bool = True,
        random_state: int = 0,
    ) -> None:
        self.m = m
        self.gamma = gamma
        self.C = C
        self.method = method
        self.is_ridge = is_ridge
        self.whiten = whiten
        self.random_state = random_state

    def fit(self, X: Rows, y: Any) -> Self:
        """Whiten the landmarks' kernel values, train on them, fold the whitening into the weights."""
        rng = np.random.default_rng(self.random_state)
        points = select_landmarks(X, self.m, rng, method=self.method)
        root = self._inverse_root(points) if self.whiten else np.eye(len(points))
        weights, intercept = fit_linear(kernel_values(X, points, self.gamma) @ root, y, self.C, self.is_ridge)
        self.model_ = expansion(points, root @ weights, self.gamma, intercept)
        self.n_operations = len(points) * (1 + 1 / X.shape[1])
        return self

    def _inverse_root(self, points: Rows) -> Vector:
        values, vectors = np.linalg.eigh(kernel_values(points.astype(np.float64), points, self.gamma))
        kept = values > _LEAST_EIGENVALUE * values[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))

    def _decide(self, X: Rows) -> Vector:
        return np.asarray(self.model_.decision_values(X)[:, 0])


class Fourier(Machine):
    """Random Fourier features (Rahimi and Recht 2007), then LIBLINEAR, or ridge regression."""

    def __init__(self, m: int, gamma: float, C: float = 1.0, is_ridge: bool = False, random_state: int = 0) -> None:
        self.m = m
        self.gamma = gamma
        self.C = C
        self.is_ridge = is_ridge
        self.random_state = random_state

    def fit(self, X: Rows, y: Any) -> Self:
        """Draw the features, train on them."""
        rng = np.random.default_rng(self.random_state)
        self.directions_ = (rng.normal(size=(X.shape[1], self.m)) * np.sqrt(2 * self.gamma)).astype(np.float32)
        self.phases_ = rng.uniform(0, 2 * np.pi, self.m).astype(np.float32)
        features = np.vstack([self._features(X[rows]) for rows in row_blocks(len(X), _BLOCK)])
        weights, self.intercept_ = fit_linear(features * np.sqrt(2 / self.m), y, self.C, self.is_ridge)
        self.weights_ = (weights * np.sqrt(2 / self.m)).astype(np.float32)
        self.n_operations = self.m * (1 + 1 / X.shape[1])
        return self

    def _features(self, X: Rows) -> Rows:
        Z = X @ self.directions_
        Z += self.phases_
        return np.asarray(np.cos(Z, out=Z))

    def _decide(self, X: Rows) -> Vector:
        out = np.empty(len(X))

        def decide(rows: slice) -> None:
            out[rows] = self._features(X[rows]) @ self.weights_

        with blas_limit(1), ThreadTeam(None) as team:
            team.map(decide, row_blocks(len(X), _BLOCK))
        out += self.intercept_
        return out


class Fastfood(Machine):
    """Random features by Hadamard transforms (Le, Sarlos, Smola 2013), then LIBLINEAR, or ridge regression."""

    def __init__(self, m: int, gamma: float, C: float = 1.0, is_ridge: bool = False, random_state: int = 0) -> None:
        self.m = m
        self.gamma = gamma
        self.C = C
        self.is_ridge = is_ridge
        self.random_state = random_state

    def fit(self, X: Rows, y: Any) -> Self:
        """Draw the features, train on them."""
        self.features_ = FastfoodFeatures(self.m, self.gamma, self.random_state).fit(X)
        weights, self.intercept_ = fit_linear(self.features_.transform(X), y, self.C, self.is_ridge)
        self.weights_ = weights.astype(np.float32)
        n_blocks, d = self.features_.signs_.shape
        per_block = d * (2 * np.log2(d) + 3)  # two transforms, three diagonal matrices
        self.n_operations = float(n_blocks * per_block + 2 * self.m) / X.shape[1]
        return self

    def _decide(self, X: Rows) -> Vector:
        return np.asarray(self.features_.transform(X) @ self.weights_ + self.intercept_, np.float64)


class Exact(Machine):
    """The exact machine, or DC-SVM's early one."""

    def __init__(self, gamma: float, C: float, stop_level: int = 0, n_levels: int | str = "auto") -> None:
        self.gamma = gamma
        self.C = C
        self.stop_level = stop_level
        self.n_levels = n_levels

    def fit(self, X: Rows, y: Any) -> Self:
        """Train it."""
        early = {"stop_level": self.stop_level, "partition": "input"}
        self.model_ = DCSVMClassifier(C=self.C, gamma=self.gamma, fit_intercept=False, **early).fit(X, y)
        n_clusters = 4**self.stop_level  # of which a row is told the nearest
        asked = len(self.model_.support_) / n_clusters
        self.n_operations = asked * (1 + 1 / X.shape[1]) + (n_clusters if self.stop_level else 0)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values of shape (n,)."""
        return self.model_.decision_function(X)


def fit_linear(Z: NDArray[Any], y: Any, C: float, is_ridge: bool) -> tuple[Vector, float]:
    """Weights and intercept of a linear machine."""
    if not is_ridge:
        model = LinearSVC(C=C, dual=False, tol=1e-3, random_state=0).fit(Z, y)
        return model.coef_[0], float(model.intercept_[0])
    centre, mean = Z.mean(axis=0), y.mean()
    A = (Z - centre).T @ (Z - centre)
    A[np.diag_indices(len(A))] += 1 / C
    weights = cho_solve(cho_factor(A.astype(np.float64)), (Z - centre).T @ (y - mean))
    return weights, float(mean - centre @ weights)


def expansion(points: Rows, coef: Vector, gamma: float, intercept: float) -> KernelExpansion:
    """The decision function sum_j coef_j exp(-gamma |x - z_j|^2) + intercept."""
    kernel = make_kernel("rbf", gamma=gamma, degree=3, coef0=0.0)
    return KernelExpansion(kernel, points, coef[None].astype(np.float64), np.array([intercept]))
