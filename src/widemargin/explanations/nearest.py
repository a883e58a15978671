"""`nearest_support`: the support vectors that contribute most to a prediction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._threads import ONE_THREAD
from .._types import AnyArray, Model, RowIndices, Rows, Vector
from ..compression.sources import point_classes
from ..estimators._predictor import argmax_classes
from ..estimators._validation import check_integer
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion
from .machines import Explained, clusters_and_rows, read_explained


class NearestSupport(NamedTuple):
    """The k support vectors that contribute most to a decision value, the largest in absolute value first.

    Attributes
    ----------
    contributions : ndarray of shape (k,), float64
        a k(x, s) of each support vector s: with those of all, and the intercept, they sum to the decision value.
    shares : ndarray of shape (k,), float64
        |a k(x, s)| as a part of the sum of all of these.
    rows : ndarray of shape (k,), int, or None
        The numbers of the support vectors among the training rows; None where the model does not know them.
    labels : ndarray of shape (k,), or None
        Their classes in training, or of `BSGDClassifier` those that they speak for; None of other models.
    support_vectors : ndarray or CSR array of shape (k, n_features)
        As the machine has them: of a search that scales the columns, or behind other scalers, these are scaled.
    """

    contributions: Vector
    shares: Vector
    rows: RowIndices | None
    labels: AnyArray | None
    support_vectors: Rows


def nearest_support(model: Model, x: ArrayLike, k: int = 5) -> NearestSupport:
    r"""The k support vectors that contribute most to the prediction of a row.

    When to use: a prediction must be explained by known cases.

    Parameters
    ----------
    model : estimator
        Fitted: `DCSVMClassifier`, `DCSVMRegressor` or `DCOneClassSVM` (exact or early), `BSGDClassifier`, what
        `read_machine` returns, `SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM`, with any kernel but "precomputed". Also
        such a model behind scalers in a pipeline, and a fitted search. A regressor has one target.
    x : array-like of shape (n_features,), or (1, n_features)
    k : int, default=5

    Returns
    -------
    NearestSupport
        Fewer than k where the machine has fewer. Contributions are those to ``decision_function`` or, of more than two
        classes, to the function of the predicted class, which is the sum of its pairs' decision values for it. Of an
        early machine they are from the machine of the row's cluster, or the two that are averaged.

    Raises
    ------
    ValueError
        Naming the model, if it has no support vectors, or k.
    NotFittedError

    Notes
    -----
    It costs one prediction. A contribution :math:`a\,k(x, s)` is large for a support vector that is near, by the
    kernel, and has a large coefficient, as rows inside the margin have.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import DCSVMClassifier, nearest_support
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DCSVMClassifier(C=10).fit(X, y)
    >>> found = nearest_support(model, X[70], k=3)
    >>> model.predict(X[[70]]), found.labels, found.contributions > 0, found.shares.round(2)
    (array([2]), array([2, 1, 2]), array([ True, False,  True]), array([0.06, 0.05, 0.05]))
    """
    check_integer("k", k, 1)
    explained = read_explained(model)
    machine = explained.machine
    functions = getattr(machine, "_model", None)  # with the points of a linear kernel too
    if not isinstance(functions, KernelExpansion | ClusteredExpansion) or functions.kernel.sample_form == "entries":
        raise ValueError(
            "model must have support vectors, and a kernel that is not 'precomputed', for nearest_support, got "
            f"{type(machine).__name__}. shapley_values explains linear and compressed models"
        )
    X = explained.rows_of(x if np.ndim(x) == 2 else np.reshape(x, (1, -1)))
    if X.shape[0] != 1:
        raise ValueError(f"x must be one row, got {X.shape[0]}")
    contributions = _contributions(explained._replace(functions=functions), X)
    sizes = np.abs(contributions)
    order, total = np.argsort(-sizes, kind="stable")[:k], float(sizes.sum()) or 1.0
    rows, labels = getattr(machine, "support_", None), _point_labels(machine)
    return NearestSupport(
        contributions[order],
        sizes[order] / total,
        None if rows is None else np.asarray(rows)[order],
        None if labels is None else labels[order],
        machine.support_vectors_[order],
    )


def _contributions(explained: Explained, X: Rows) -> Vector:
    """The contributions (n_SV,) of the machine's support vectors, in their order, to the value of the only row of X."""
    machine, functions, q = explained.machine, explained.functions, explained.n_functions
    signs = np.eye(q) if explained.signs is None else explained.signs
    if q > 1 and not hasattr(machine, "classes_"):
        raise ValueError(f"model must have one target for nearest_support, got {q}")
    of_class = signs[0 if q == 1 else machine._winners(functions.decision_values(X, n_jobs=1))[0]]
    found, parts = np.zeros(functions.points.shape[0]), list[Any]([(slice(None), functions, 1.0)])
    if isinstance(functions, ClusteredExpansion):  # whose points are grouped by cluster
        places = np.argsort(machine._clusters["support_labels"], kind="stable")
        starts = functions.starts
        parts = [
            (places[starts[c] : starts[c + 1]], functions.machines[c], share)
            for c, _, share in clusters_and_rows(functions, X, ONE_THREAD)
        ]
    for own, part, share in parts:
        points, row = part.pair_with(X)
        K = np.empty((len(points), 1), points.dtype)
        part.kernel.fill(points, row, K)
        found[own] = share * (of_class @ part.coef) * K[:, 0]
    return found


def _point_labels(machine: Model) -> AnyArray | None:
    """The classes (n_SV,) of the support vectors; None of a machine without classes."""
    if not hasattr(machine, "classes_"):
        return None
    numbers = point_classes(machine, machine.dual_coef_)
    return np.asarray(machine.classes_[argmax_classes(machine.dual_coef_.T) if numbers is None else numbers])
