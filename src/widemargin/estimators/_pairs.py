"""The fitted attributes of exact machines: scikit-learn's layout of dual coefficients, and the certificate."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..algorithms.dc_svm import TrainedMachine
from ._clusters import cluster_attributes
from ._estimator import relative_gap

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

_DENSE_BYTES = 2**24  # of coefficients of pairs of classes, nearly all zero where there are many classes


def machine_attributes(
    classes: NDArray[Any], y: Rows, kept: Rows, X: Any, machines: list[TrainedMachine], combine: str
) -> dict[str, Any]:
    """The fitted attributes from which a model is made, support vectors grouped by class.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    y : ndarray of shape (n,), int
        Class numbers.
    kept : ndarray of shape (n,), int
        The rows' numbers in the data that the user gave.
    X : ndarray or CSR array of shape (n, d), or None
        None for a precomputed kernel.
    machines : list of TrainedMachine
        One, or one for every pair of classes.
    combine : {"soft", "early", "naive", "bcm"}
    """
    common = _common_attributes(machines, y, kept, X)
    support = common.pop("support")
    return {
        **common,
        "classes_": classes,
        "n_support_": np.bincount(y[support], minlength=len(classes)),
        "dual_coef_": _class_coefficients(machines, y, support),
        "_clusters": cluster_attributes(machines, y, X, kept, support, combine),
    }


def target_attributes(kept: Rows, X: Any, machines: list[TrainedMachine], combine: str) -> dict[str, Any]:
    """As `machine_attributes`, of machines that are no classifiers: one for each target."""
    common = _common_attributes(machines, np.zeros(len(kept), np.intp), kept, X)
    support = common.pop("support")
    return {
        **common,
        "n_support_": np.array([len(support)]),
        "dual_coef_": np.array([machine.result.beta[support] for machine in machines]),
        "_clusters": cluster_attributes(machines, None, X, kept, support, combine),
    }


def _common_attributes(machines: list[TrainedMachine], group: Rows, kept: Rows, X: Any) -> dict[str, Any]:
    """What classifiers and regressors have; `support`: the rows (n_SV,) of the support vectors, sorted by `group`."""
    is_support = np.zeros(len(group), np.bool_)
    for machine in machines:
        is_support[_rows_of(machine)[machine.result.beta != 0]] = True
    support = np.flatnonzero(is_support)
    support = support[np.argsort(group[support], kind="stable")]
    return {
        "support": support,
        "support_": kept[support],
        "support_vectors_": np.empty((0, 0)) if X is None else X[support],
        "intercept_": np.array([machine.intercepts.mean() for machine in machines]),
        "early_level_": int(machines[0].levels[-1]["level"]) if machines[0].division is not None else 0,
    }


def _rows_of(machine: TrainedMachine) -> Rows:
    return np.arange(len(machine.result.beta)) if machine.rows is None else machine.rows


def certificate_attributes(machines: list[TrainedMachine], *, is_semidefinite: bool) -> dict[str, Any]:
    """The fitted attributes of the certificate; no bound (NaN) without a positive semidefinite kernel."""
    results = [machine.result for machine in machines]
    columns = [{**r.history.as_arrays(), "problem": np.full(len(r.history), k)} for k, r in enumerate(results)]
    order = np.argsort(np.concatenate([c["time"] for c in columns]), kind="stable")  # pairs are trained in parallel
    objective, gap = sum(result.objective for result in results), sum(result.gap for result in results)
    if not is_semidefinite:
        gap = np.nan
        columns = [{**c, "lower_bound": np.full_like(c["lower_bound"], np.nan)} for c in columns]
    no_bound: dict[str, float] = {} if is_semidefinite else {"lower_bound": np.nan}
    return {
        "objective_": float(objective),
        "dual_gap_": float(gap),
        "relative_gap_": relative_gap(float(objective), float(gap)),
        "converged_": all(result.converged for result in results),
        "n_iter_": max(1, sum(result.n_iter for result in results)),
        "history_": {name: np.concatenate([c[name] for c in columns])[order] for name in columns[0]},
        "levels_": [{"problem": k, **level, **no_bound} for k, m in enumerate(machines) for level in m.levels],
    }


def _class_coefficients(machines: list[TrainedMachine], y: Rows, support: Rows) -> Vector:
    """scikit-learn's `dual_coef_` (n_classes - 1, n_SV): row j of class i is its pair with the j-th other class."""
    if len(machines) == 1:
        return machines[0].result.beta[None, support]
    n_classes = int(y.max()) + 1
    coef, place = np.zeros((n_classes - 1, len(support))), np.zeros(len(y), np.intp)
    place[support] = np.arange(len(support))
    for machine, (i, j) in zip(machines, combinations(range(n_classes), 2), strict=True):
        mine = np.flatnonzero(machine.result.beta)
        rows, beta = _rows_of(machine)[mine], machine.result.beta[mine]
        is_first = y[rows] == i
        coef[j - 1, place[rows[is_first]]] = beta[is_first]
        coef[i, place[rows[~is_first]]] = beta[~is_first]
    return coef


def pair_coefficients(coef: Vector, n_support: NDArray[np.intp]) -> Vector:
    """Coefficients (n_pairs, n_SV) of each pair of classes, from scikit-learn's layout."""
    beta = sparse_pair_coefficients(coef, n_support)
    return np.asarray(beta.toarray() if sp.issparse(beta) else beta)


def sparse_pair_coefficients(coef: Vector, n_support: NDArray[np.intp]) -> Any:
    """`pair_coefficients`, as a CSC array if the dense one had more than 16 MB: n_classes - 1 entries a column."""
    if len(coef) == 1:
        return coef
    k, n = len(n_support), coef.shape[1]
    first, second = np.triu_indices(k, 1)
    pair = np.zeros((k, k), np.intp)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    pairs = pair[~np.eye(k, dtype=np.bool_)].reshape(k, k - 1).repeat(n_support, axis=0)  # of each support vector
    if len(first) * n * coef.itemsize > _DENSE_BYTES:
        ends = np.arange(n + 1) * (k - 1)
        return sp.csc_array((coef.T.ravel(), pairs.ravel(), ends), shape=(len(first), n))
    beta = np.zeros((len(first), n))
    beta[pairs.T, np.arange(n)] = coef
    return beta
