"""Reading a fitted kernel machine back into its two-class duals, from its public attributes alone.

Works for `sklearn.svm.SVC` and for any classifier with the same layout: support vectors grouped by class, and
`dual_coef_` of shape (n_classes - 1, n_support), where the machine of classes i < j takes row j - 1 of class i's
coefficients and row i of class j's.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Kernel = Callable[[Any, Any], NDArray[np.float64]]


class Pair(NamedTuple):
    """One two-class machine: sum_k coef_k k(x, x_chosen[k]) + intercept is positive for class `positive`."""

    positive: int
    negative: int
    chosen: NDArray[np.intp]  # positions among the support vectors
    coef: Vector  # y_i alpha_i
    intercept: float


def pairs(model: Any) -> Iterator[Pair]:
    """Yield the two-class machines in scikit-learn's order (0, 1), (0, 2), ..., (1, 2), ..."""
    coef = _dense(model.dual_coef_)
    ends = np.cumsum(model.n_support_)
    groups = [np.arange(end - size, end) for end, size in zip(ends, model.n_support_, strict=True)]
    if len(groups) == 2:
        yield Pair(1, 0, np.concatenate(groups), coef[0], float(model.intercept_[0]))
        return
    for k, (i, j) in enumerate(combinations(range(len(groups)), 2)):
        both = np.concatenate([coef[j - 1, groups[i]], coef[i, groups[j]]])
        yield Pair(i, j, np.concatenate([groups[i], groups[j]]), both, float(model.intercept_[k]))


def dual_values(model: Any, kernel: Kernel) -> Vector:
    """Return 1/2 alpha'Q alpha - sum(alpha) of every two-class machine, from support vectors and coefficients alone."""
    vectors = _dense(model.support_vectors_)
    values = []
    for pair in pairs(model):
        used = pair.coef != 0
        Z, coef = vectors[pair.chosen[used]], pair.coef[used]
        values.append(0.5 * coef @ kernel(Z, Z) @ coef - np.abs(coef).sum())
    return np.array(values)


class TwoClassDual(NamedTuple):
    """A pair's dual problem on its training rows, and the model's answer to it."""

    rows: NDArray[np.intp]
    y: Vector
    upper: Vector
    alpha: Vector
    intercept: float


def two_class_duals(model: Any, y: NDArray[Any], weights: Vector) -> Iterator[TwoClassDual]:
    """Yield the dual of every pair of classes; needs `support_`.

    Parameters
    ----------
    model : fitted classifier
    y : ndarray of shape (n,)
        The labels it was fitted with.
    weights : ndarray of shape (n,)
        Sample weight times class weight; the bounds are C times that.
    """
    codes = np.searchsorted(model.classes_, y)
    support = np.asarray(model.support_)
    for pair in pairs(model):
        rows = np.flatnonzero((codes == pair.positive) | (codes == pair.negative))
        signs = np.where(codes[rows] == pair.positive, 1.0, -1.0)
        coef = np.zeros(len(codes))
        coef[support[pair.chosen]] = pair.coef
        yield TwoClassDual(rows, signs, model.C * weights[rows], signs * coef[rows], pair.intercept)


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
