"""The clusters of an early machine: fitted attributes that can be saved, and the model made from them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ..algorithms.dc_svm import TrainedMachine
from ..data.samples import GramSamples, make_samples
from ..kernels.functions import Kernel
from ..kernels.precision import ensure_precision
from ..models.clustered import COMBINATIONS, ClusteredExpansion
from ..partition.routing import InputRouter, KernelRouter, RandomRouter, Router
from ._fitted_state import FittedState

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


def cluster_attributes(
    machines: list[TrainedMachine], y: Rows | None, X: Any, kept: Rows, support: Rows, combine: str
) -> Any:
    """What prediction needs of the clusters, as a dict of arrays; None for exact machines.

    Parameters
    ----------
    machines : list of TrainedMachine
        With one division of the n rows for all.
    y : ndarray of shape (n,), int, or None
        Class numbers; None for machines that are not classifiers.
    X : ndarray or CSR array of shape (n, d), or None
        The training rows; None for a precomputed kernel.
    kept : ndarray of shape (n,), int
        Their row numbers in the X of `fit`.
    support : ndarray of shape (n_SV,), int
        The support vectors among these n rows.
    combine : {"soft", "early", "naive", "bcm"}
        How decision values will be combined; only for "bcm" are the clusters' probabilities fitted.
    """
    division = machines[0].division
    if division is None:
        return None
    router = division.router
    sigmoids, log_prior = np.zeros((len(machines), router.n_clusters, 2)), np.zeros(len(machines))
    if y is not None:
        everyone, pairs = np.arange(len(y)), combinations(range(int(y.max()) + 1), 2)
        for k, (machine, (first, _)) in enumerate(zip(machines, pairs, strict=True)):
            rows = everyone if machine.rows is None else machine.rows
            # of a pair the first class is positive, of two classes alone the second
            is_positive = y[rows] == first if machine.rows is not None else y[rows] > 0
            sigmoids[k] = _sigmoids(machine, is_positive, division.labels[rows], router, combine == "bcm")
            log_prior[k] = _log_odds(is_positive)
    return {
        "combine": combine,
        "method": router.name,
        "points": kept[division.sample_indices] if X is None else X[division.sample_indices],
        "labels": router.labels,
        "spread": router.spread if isinstance(router, KernelRouter) else np.zeros(router.n_clusters),
        "support": division.labels[support],
        "intercepts": np.array([machine.intercepts for machine in machines]),
        "sigmoids": sigmoids,
        "log_prior": log_prior,
    }


def _sigmoids(
    machine: TrainedMachine, is_positive: NDArray[np.bool_], labels: Rows, router: Router, wanted: bool
) -> Vector:
    """a and b (k, 2) of each cluster's probability 1 / (1 + exp(a f + b)), fitted to its training rows.

    Far from a cluster's rows, the decision value of its RBF machine is its intercept. There it has no information:
    f = intercept gets the prior probability, which leaves the committee's odds unchanged, and only a slope is fitted.
    """
    log_prior = _log_odds(is_positive)
    out = np.tile([0.0, -log_prior], (router.n_clusters, 1))
    for c in range(router.n_clusters if wanted else 0):
        mine = labels == c
        if mine.any():
            base = machine.intercepts[c]
            slope = fit_slope(machine.result.decision[mine] - base, is_positive[mine], log_prior)
            out[c] = -slope, slope * base - log_prior
    return out


def fit_slope(f: Vector, is_positive: NDArray[np.bool_], log_prior: float) -> float:
    """The slope s in [0, 100] of maximum likelihood of 1 / (1 + exp(-s f - log_prior)), for f (n,).

    With Platt's targets instead of 0 and 1, since decision values of training rows are biased.
    """
    n = np.array([np.count_nonzero(~is_positive), np.count_nonzero(is_positive)])
    targets = np.where(is_positive, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))

    def loss(slope: float) -> float:
        odds = slope * f + log_prior
        return float(np.sum(np.logaddexp(0.0, odds) - targets * odds))

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded").x)


def _log_odds(is_positive: NDArray[np.bool_]) -> float:
    """Log odds of the positive class among the rows."""
    positive = np.mean(is_positive)
    return float(np.log(positive / (1 - positive)))


def check_clusters(
    clusters: FittedState, dtype: str, *, n_machines: int, n_support: int, d: int, is_gram: bool
) -> None:
    """Check the values of `cluster_attributes`; the ValueError names the first invalid one."""
    clusters.choice("combine", COMBINATIONS)
    clusters.choice("method", ("kernel", "input", "random"))
    k = clusters.array("intercepts", np.float64, n_machines, ...).shape[1]
    if is_gram:
        m = len(clusters.array("points", np.integer, ..., least=0, below=d))
    else:
        m = clusters.rows("points", dtype, ..., d).shape[0]
    labels = clusters.array("labels", np.integer, m, least=0, below=k)
    if labels.max() != k - 1:
        raise ValueError(f"{clusters.name('labels')} must have the largest entry {k - 1}, got {labels.max()}")
    clusters.array("spread", np.float64, k)
    clusters.array("support", np.integer, n_support, least=0, below=k)
    clusters.array("sigmoids", np.float64, n_machines, k, 2)
    clusters.array("log_prior", np.float64, n_machines)


def clustered_model(kernel: Kernel, points: Any, coef: Vector, clusters: dict[str, Any]) -> ClusteredExpansion:
    """The model of an early machine, its support vectors grouped by cluster.

    Parameters
    ----------
    kernel : Kernel
    points : ndarray or CSR array of shape (n_SV, d), or row numbers of a precomputed kernel
    coef : ndarray of shape (n_machines, n_SV)
    clusters : dict
        From `cluster_attributes`.
    """
    order = np.argsort(clusters["support"], kind="stable")
    k = clusters["intercepts"].shape[1]
    return ClusteredExpansion(
        kernel=kernel,
        points=points[order],
        starts=np.searchsorted(clusters["support"][order], np.arange(k + 1)),
        coef=coef[:, order],
        intercept=clusters["intercepts"],
        router=_router(kernel, clusters),
        combine=clusters["combine"],
        sigmoids=clusters["sigmoids"],
        log_prior=clusters["log_prior"],
    )


def _router(kernel: Kernel, clusters: dict[str, Any]) -> Router:
    points, labels = clusters["points"], clusters["labels"]
    if kernel.sample_form == "entries":
        return KernelRouter(kernel, GramSamples(np.empty((0, 0)), points), labels, clusters["spread"])
    samples = ensure_precision(kernel, make_samples(points, kernel.sample_form))
    if clusters["method"] == "kernel":
        return KernelRouter(kernel, samples, labels, clusters["spread"])
    return InputRouter(samples, labels) if clusters["method"] == "input" else RandomRouter(samples, labels)
