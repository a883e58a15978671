"""Cascade SVM: Graf, Cosatto, Bottou, Durdanovic, Vapnik, Parallel Support Vector Machines, NIPS 2004."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin import DCSVMClassifier

Rows = NDArray[np.intp]


class CascadeSVC(ClassifierMixin, BaseEstimator):
    """Random parts, each solved on its own; their support vectors are merged two by two and solved again.

    One round, as in the DC-SVM paper. Underneath is our own solver on a single level, so that the difference to DC-SVM
    is the method's and not the solver's.

    Parameters
    ----------
    C, gamma, tol : float
    kernel : str
    n_parts : int
        Parts of the lowest layer, a power of two.
    random_state : int

    Attributes
    ----------
    layers_ : list of (int, ndarray)
        For each layer, from the lowest: its number of parts, and the training rows that are support vectors in theirs.
    seconds_ : list of float
        Since the start, at the end of each layer.
    support_, support_vectors_, dual_coef_ : ndarray
        Of the last layer, in scikit-learn's layout.
    """

    def __init__(
        self,
        C: float = 1.0,
        gamma: float = 1.0,
        kernel: str = "rbf",
        tol: float = 1e-3,
        n_parts: int = 16,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.tol = tol
        self.n_parts = n_parts
        self.random_state = random_state

    def fit(self, X: NDArray[np.float32], y: NDArray[Any]) -> Self:
        """Train layer by layer, down to one part."""
        self.classes_ = np.unique(y)
        parts = np.array_split(np.random.default_rng(self.random_state).permutation(len(y)), self.n_parts)
        start = time.perf_counter()
        self.layers_, self.seconds_ = [], []
        while len(parts) > 1:
            parts = [self._support_of(X, y, np.sort(rows)) for rows in parts]
            self.layers_.append((len(parts), np.concatenate(parts)))
            self.seconds_.append(time.perf_counter() - start)
            parts = [np.concatenate(pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        rows = np.sort(parts[0])
        self.machine_ = self._solver().fit(X[rows], y[rows])
        self.support_ = rows[self.machine_.support_]
        self.support_vectors_ = self.machine_.support_vectors_
        self.dual_coef_ = self.machine_.dual_coef_
        self.layers_.append((1, self.support_))
        self.seconds_.append(time.perf_counter() - start)
        return self

    def predict(self, X: NDArray[np.float32]) -> NDArray[Any]:
        """Predict by the last layer's machine."""
        return np.asarray(self.machine_.predict(X))

    def _solver(self) -> DCSVMClassifier:
        return DCSVMClassifier(self.C, self.kernel, gamma=self.gamma, tol=self.tol, fit_intercept=False, n_levels=0)

    def _support_of(self, X: NDArray[np.float32], y: NDArray[Any], rows: Rows) -> Rows:
        if len(np.unique(y[rows])) < 2:  # nothing to learn from, nothing to lose
            return rows
        return np.asarray(rows[self._solver().fit(X[rows], y[rows]).support_])
