"""Prediction with one machine, or with one for every pair of classes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted, validate_data

from .._config import resolve_memory_budget
from ._pairs import votes

Vector = NDArray[np.float64]


class Model(Protocol):
    """Decision functions."""

    def decide(self, X: Any, *, n_jobs: int | None = None, memory_budget: int = 2**30) -> Vector:
        """Decision values of shape (n, n_functions)."""


class KernelPredictor(BaseEstimator):
    """Decision values of an estimator that makes its `_model` from its fitted attributes."""

    _model: Model
    support_vectors_: Any
    kernel: Any
    n_jobs: int | None
    memory_budget: Any

    def _make_model(self) -> Model:
        raise NotImplementedError

    def _decide(self, X: Any) -> Vector:
        check_is_fitted(self)
        dtype = [np.float64, np.float32] if self.kernel == "precomputed" else self.support_vectors_.dtype
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=False if self.kernel == "precomputed" else "csr",
            dtype=dtype,
            order="C",
            accept_large_sparse=True,
        )
        budget = resolve_memory_budget(self.memory_budget)
        return self._model.decide(X, n_jobs=self.n_jobs, memory_budget=budget)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and the fitted attributes, without what predict can make of them."""
        state = dict(super().__getstate__())
        state.pop("_model", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, and rebuild what was left out."""
        super().__setstate__(state)
        if hasattr(self, "dual_coef_"):
            self._model = self._make_model()


class PairwisePredictor(KernelPredictor):
    """`decision_function` and `predict` by votes of a machine for every pair of classes."""

    classes_: NDArray[Any]
    decision_function_shape: str
    break_ties: bool

    def decision_function(self, X: ArrayLike) -> Vector:
        """Signed distances from the decision surfaces, in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs), float64
            With two classes, positive for ``classes_[1]``. With more, one column per class ("ovr": votes, ordered
            within equal votes by the decision values) or per pair of classes ("ovo": positive for the first one).
        """
        values = self._decide(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return np.asarray(_ovr_decision_function(values < 0, -values, len(self.classes_)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            With more than two classes, that with most votes among the pairs; of equal votes the first, unless
            `break_ties`.
        """
        values = self._decide(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(values[:, 0] > 0).astype(np.intp)])
        if self.break_ties:
            if self.decision_function_shape == "ovo":
                raise ValueError("break_ties must be False with decision_function_shape='ovo', got True")
            return np.asarray(self.classes_[_ovr_decision_function(values < 0, -values, len(self.classes_)).argmax(1)])
        return np.asarray(self.classes_[votes(values, len(self.classes_)).argmax(axis=1)])


class OneAgainstRestPredictor(KernelPredictor):
    """`decision_function` and `predict` by one machine for two classes, or one for each of more."""

    classes_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> Vector:
        """Signed distances from the decision surfaces, in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            With two classes, positive for ``classes_[1]``; else a column per class, against the rest.
        """
        values = self._decide(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row: that of the largest decision value.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        numbers = largest(self._decide(X))
        return np.asarray(self.classes_[numbers])


def largest(values: Vector) -> NDArray[np.intp]:
    """The class of each row: that of the largest decision value, or of two classes by the sign of the only one."""
    numbers: NDArray[Any] = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    return numbers.astype(np.intp)
