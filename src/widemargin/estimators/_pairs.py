"""Classes by pairs: votes, scikit-learn's layout of dual coefficients, and the attributes of a fitted machine."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.result import DualResult

Vector = NDArray[np.float64]


def votes(values: Vector, n_classes: int) -> NDArray[np.intp]:
    """Votes of the pairs of classes, of shape (n, n_classes); a machine that was never trained has none."""
    votes = np.zeros((len(values), n_classes), np.intp)
    for column, (first, second) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        votes[:, first] += column > 0
        votes[:, second] += column < 0
    return votes


def machine_attributes(
    classes: NDArray[Any], y: NDArray[np.intp], kept: NDArray[np.intp], X: Any, results: list[DualResult], is_gram: bool
) -> dict[str, Any]:
    """The fitted attributes that prediction needs, support vectors grouped by class."""
    beta = np.array([result.beta for result in results])
    support = np.flatnonzero(beta.any(axis=0))
    support = support[np.argsort(y[support], kind="stable")]
    n_support = np.bincount(y[support], minlength=len(classes))
    return {
        "classes_": classes,
        "support_": kept[support],
        "support_vectors_": X[:0, :0] if is_gram else X[support],
        "n_support_": n_support,
        "dual_coef_": _class_coefficients(beta[:, support], n_support),
        "intercept_": np.array([result.intercept for result in results]),
    }


def certificate_attributes(results: list[DualResult]) -> dict[str, Any]:
    """The fitted attributes that say how good the machine is."""
    columns = [{**r.history.as_arrays(), "problem": np.full(len(r.history), k)} for k, r in enumerate(results)]
    order = np.argsort(np.concatenate([c["time"] for c in columns]), kind="stable")  # pairs run side by side
    return {
        "objective_": float(sum(result.objective for result in results)),
        "dual_gap_": float(sum(result.gap for result in results)),
        "converged_": all(result.converged for result in results),
        "n_iter_": max(1, sum(result.n_iter for result in results)),
        "history_": {name: np.concatenate([c[name] for c in columns])[order] for name in columns[0]},
    }


def _class_coefficients(beta: Vector, n_support: NDArray[np.intp]) -> Vector:
    """From one row per pair of classes to scikit-learn's layout: row j of class i is its pair with the j-th other."""
    if len(beta) == 1:
        return beta
    ends = np.cumsum(n_support)
    coef = np.zeros((len(n_support) - 1, beta.shape[1]))
    for row, (i, j) in zip(beta, combinations(range(len(n_support)), 2), strict=True):
        first, second = (slice(ends[c] - n_support[c], ends[c]) for c in (i, j))
        coef[j - 1, first], coef[i, second] = row[first], row[second]
    return coef


def pair_coefficients(coef: Vector, n_support: NDArray[np.intp]) -> Vector:
    """The inverse of `_class_coefficients`."""
    if len(coef) == 1:
        return coef
    ends = np.cumsum(n_support)
    pairs = list(combinations(range(len(n_support)), 2))
    beta = np.zeros((len(pairs), coef.shape[1]))
    for row, (i, j) in zip(beta, pairs, strict=True):
        first, second = (slice(ends[c] - n_support[c], ends[c]) for c in (i, j))
        row[first], row[second] = coef[j - 1, first], coef[i, second]
    return beta
