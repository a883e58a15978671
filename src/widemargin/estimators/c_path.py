"""The choice of C: a whole path of machines, and their scores in cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, indexable

from .._native.sparse import check_sparse
from .ocas import OCASClassifier


@dataclass
class CPath:
    """Machines for a path of C.

    Attributes
    ----------
    Cs : ndarray of shape (n_C,)
    models : list of OCASClassifier
        Fitted on all data, one for each C.
    scores : ndarray of shape (n_folds, n_C)
        On the rows that a fold left out.
    """

    Cs: NDArray[np.float64]
    models: list[OCASClassifier]
    scores: NDArray[np.float64]

    @property
    def best(self) -> OCASClassifier:
        """The machine whose C has the best mean score; of equal ones that with the smallest C."""
        means = self.scores.mean(axis=0)
        return self.models[min(np.flatnonzero(means == means.max()), key=lambda k: self.Cs[k])]


def C_path(
    estimator: OCASClassifier,
    X: ArrayLike,
    y: ArrayLike,
    Cs: Sequence[float],
    *,
    cv: Any = None,
    scoring: Any = None,
) -> CPath:
    """Train for every C, on all data and in cross-validation, each path in one go.

    Parameters
    ----------
    estimator : OCASClassifier
        Its other parameters; it is not changed.
    X, y : as its `fit`
    Cs : sequence of float
        Best in ascending order.
    cv : int, splitter or None, default=None
        As in scikit-learn: None means five stratified folds.
    scoring : str, callable or None, default=None
        As in scikit-learn: None means accuracy.

    Returns
    -------
    CPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import C_path, OCASClassifier
    >>> path = C_path(OCASClassifier(tol=1e-5), *load_iris(return_X_y=True), Cs=[0.01, 0.1, 1, 10])
    >>> path.scores.shape
    (5, 4)
    >>> path.best.C
    1
    """
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv  # it loads rich

    if sp.issparse(X):
        check_sparse(X)  # before any of its rows are taken
    X, y = indexable(X, y)
    score = check_scoring(estimator, scoring=scoring)
    folds = []
    for train, test in check_cv(cv, y, classifier=True).split(X, y):
        models = estimator.fit_path(_safe_indexing(X, train), _safe_indexing(y, train), Cs)
        left_out = _safe_indexing(X, test), _safe_indexing(y, test)
        folds.append([score(model, *left_out) for model in models])
    return CPath(np.array(Cs, dtype=np.float64), estimator.fit_path(X, y, Cs), np.array(folds))
