"""Fitted attributes of the DC-SVM estimators: made of trained machines, checked when loaded, made into a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._config import SMALL_BYTES
from .._types import AnyArray, Labels, Matrix, RowIndices, Rows
from ..algorithms.trained_machines import TrainedMachines
from ..data.labels import class_pairs
from ..data.samples import make_samples
from ..kernels.functions import Kernel, Linear
from ..models.clustered import ClusteredExpansion
from ..models.expansion import make_point_samples
from ..partition.routing import InputRouter, KernelRouter, Router
from ._fitted_state import FittedState
from ._scale import sample_form


def support_rows(machines: TrainedMachines, group: Labels) -> RowIndices:
    """The support vectors (n_SV,) among the n training rows, sorted by `group` (n,)."""
    is_support = np.zeros(len(group), np.bool_)
    is_support[machines.rows[machines.results.beta != 0]] = True
    (support,) = is_support.nonzero()
    return np.asarray(support[group[support].argsort(kind="stable")])


def history_and_levels(
    machines: TrainedMachines, *, has_bound: bool
) -> tuple[dict[str, AnyArray], list[dict[str, Any]]]:
    """`history_`, in the order of time, and `levels_`; without a bound their lower bounds are NaN."""
    history, levels = machines.results.history, machines.levels
    order = np.lexsort((history["problem"], history["time"]))  # pairs are trained in parallel
    history = {name: column[order] for name, column in history.items()}
    if not has_bound:
        history["lower_bound"] = np.full_like(history["lower_bound"], np.nan)
        levels = [{**level, "lower_bound": np.nan} for level in levels]
    return history, levels


def class_coefficients(machines: TrainedMachines, y: Labels, support: RowIndices) -> Matrix:
    """scikit-learn's `dual_coef_` (n_classes - 1, n_SV): row j of a column of class i is for the j-th other class."""
    beta = machines.results.beta
    if len(machines) == 1:
        return beta[None, support]
    n_classes = int(y.max()) + 1
    coef, place = np.zeros((n_classes - 1, len(support))), np.zeros(len(y), np.intp)
    place[support] = np.arange(len(support))
    (nonzero,) = beta.nonzero()
    rows, number = machines.rows[nonzero], machines.results.numbers[nonzero]
    first, second = (classes[number] for classes in class_pairs(n_classes))
    coef[np.where(y[rows] == first, second - 1, first), place[rows]] = beta[nonzero]
    return coef


def pair_coefficients(coef: Matrix, n_support: NDArray[np.intp]) -> Matrix:
    """Coefficients (n_pairs, n_SV) of each pair of classes, dense, from scikit-learn's layout (n_classes - 1, n_SV)."""
    beta = compact_pair_coefficients(coef, n_support)
    return np.asarray(beta.toarray() if sp.issparse(beta) else beta)


def compact_pair_coefficients(coef: Matrix, n_support: NDArray[np.intp]) -> Any:
    """`pair_coefficients`, dense or, above 16 MB, as a CSC array with n_classes - 1 entries a column."""
    if len(coef) == 1:
        return coef
    k, n = len(n_support), coef.shape[1]
    first, second = class_pairs(k)
    pair = np.zeros((k, k), np.intp)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    pairs = pair[~np.eye(k, dtype=np.bool_)].reshape(k, k - 1).repeat(n_support, axis=0)  # (n_SV, k - 1)
    if len(first) * n * coef.itemsize > SMALL_BYTES:
        ends = np.arange(n + 1) * (k - 1)
        return sp.csc_array((coef.T.ravel(), pairs.ravel(), ends), shape=(len(first), n))
    beta = np.zeros((len(first), n))
    beta[pairs.T, np.arange(n)] = coef
    return beta


def cluster_attributes(machines: TrainedMachines, X: Rows, kept: RowIndices, support: RowIndices) -> Any:
    """What prediction needs of the clusters, as a dict of arrays; None for exact machines.

    `X` (n, d) are the training rows, None for a precomputed kernel; `kept` (n,) their row numbers in the X of `fit`,
    and `support` (n_SV,) the support vectors among them. All machines have one division.
    """
    division = machines.division
    if division is None:
        return None
    router = division.router
    norms = router.squared_centre_norms if isinstance(router, KernelRouter) else np.zeros(router.n_clusters)
    points = division.points
    if points is None:
        points = kept[division.sample_indices] if X is None else X[division.sample_indices]
    return {
        "method": router.name,
        "points": points,
        "labels": router.labels,
        "squared_centre_norms": norms,
        "support_labels": division.labels[support],  # (n_SV,)
        "intercepts": machines.intercepts,
    }


def check_clusters(
    clusters: FittedState, dtype: str, *, n_machines: int, n_support: int, d: int, is_gram: bool
) -> None:
    """Check the values of `cluster_attributes`; the ValueError names the first invalid one."""
    clusters.choice("method", ("kernel",) if is_gram else ("kernel", "input"))
    k = clusters.array("intercepts", np.float64, n_machines, ...).shape[1]
    if is_gram:
        m = len(clusters.array("points", np.integer, ..., least=0, below=d))
    else:
        m = clusters.rows("points", dtype, ..., d).shape[0]
    labels = clusters.array("labels", np.integer, m, least=0, below=k)
    if labels.max() != k - 1:
        raise ValueError(f"{clusters.name('labels')} must have the largest entry {k - 1}, got {labels.max()}")
    clusters.array("squared_centre_norms", np.float64, k)
    clusters.array("support_labels", np.integer, n_support, least=0, below=k)


def clustered_model(
    kernel: Kernel, points: Rows, coef: Matrix, clusters: dict[str, Any], *, averages: bool
) -> ClusteredExpansion:
    """The model of an early machine, its support vectors grouped by cluster, from `cluster_attributes`.

    `points` are rows (n_SV, d), or row numbers of a precomputed kernel; `averages` is of the `ClusteredExpansion`.
    """
    support_labels = clusters["support_labels"]
    order = np.argsort(support_labels, kind="stable")
    k = clusters["intercepts"].shape[1]
    return ClusteredExpansion(
        kernel=kernel,
        points=points[order],
        starts=np.searchsorted(support_labels[order], np.arange(k + 1)),
        coef=coef[:, order],
        intercept=clusters["intercepts"],
        router=_router(kernel, clusters),
        averages=averages,
    )


def _router(kernel: Kernel, clusters: dict[str, Any]) -> Router:
    samples, labels = make_point_samples(kernel, clusters["points"]), clusters["labels"]
    if clusters["method"] == "kernel":
        return KernelRouter(kernel, samples, labels, clusters["squared_centre_norms"])
    if isinstance(kernel, Linear):
        samples = make_samples(clusters["points"], sample_form(kernel, clusters["points"]))
    return InputRouter(samples, labels)
