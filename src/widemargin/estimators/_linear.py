"""Prediction of estimators with `coef_` and `intercept_`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ..models.linear import LinearModel

Vector = NDArray[np.float64]


class LinearPredictor(BaseEstimator):
    """`decision_function` and `predict`: one function for two classes, one for each class otherwise."""

    classes_: NDArray[Any]
    coef_: Vector
    intercept_: Vector
    n_jobs: int | None

    def decision_function(self, X: ArrayLike) -> Vector:
        """Signed distances from the decision surfaces, in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            With two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        values = LinearModel(self.coef_, self.intercept_).decide(X, n_jobs=self.n_jobs)
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row: that of the largest decision value.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        choice = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[choice])
