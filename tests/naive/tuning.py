"""The choice of C and gamma by plain loops: a machine for every fold and cell, trained on the fold's own rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .dual import best_intercept, signed, solve_qp

Vector = NDArray[np.float64]


def held_out_values(
    K: Vector, y: Vector, upper: Vector, test: NDArray[np.intp], Cs: Sequence[float], *, has_intercept: bool
) -> Vector:
    """Decision values (n_C, n_test) of machines trained on K[train, train], evaluated by K[test, train].

    `y` (n,) has the signs, 0 for rows that are not this machine's; `upper` (n,) the upper bounds for C = 1.
    """
    train = np.setdiff1d(np.flatnonzero(y), test)
    values = []
    for C in Cs:
        Q, signs, bounds = signed(K[np.ix_(train, train)], y[train]), y[train], C * upper[train]
        alpha = solve_qp(Q, -np.ones(len(train)), bounds, signs if has_intercept else None, tol=1e-8)
        b = best_intercept(K[np.ix_(train, train)], signs, bounds, alpha) if has_intercept else 0.0
        values.append(K[np.ix_(test, train)] @ (signs * alpha) + b)
    return np.array(values)


def grid_scores(
    estimator: Any,
    X: Any,
    y: Any,
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    cells: Sequence[dict[str, Any]],
    score: Callable[[Any, Any, Any], float],
) -> Vector:
    """Scores (n_folds, n_cells) of clones of the estimator with each cell's parameters."""
    scores = np.empty((len(folds), len(cells)))
    for k, (train, test) in enumerate(folds):
        for j, cell in enumerate(cells):
            model = clone(estimator).set_params(**cell).fit(X[train], y[train])
            scores[k, j] = score(model, X[test], y[test])
    return scores
