"""Early machines as attributes that can be saved, and the clustered model that these make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms.dc_svm import Machine
from ..kernels.functions import Kernel
from ..kernels.precision import refine
from ..kernels.samples import GramSamples, Samples, make_samples
from ..models.clustered import ClusteredExpansion
from ..partition.regions import InputRegions, KernelRegions, RandomRegions, Regions

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


def cluster_attributes(machines: list[Machine], signs: Vector, X: Any, kept: Rows, support: Rows, combine: str) -> Any:
    """What prediction needs of the clusters, as a dict of arrays; None for exact machines.

    Parameters
    ----------
    machines : list of Machine
        With one division of the n rows for all.
    signs : ndarray of shape (n_machines, n)
        Each machine's labels +-1, 0 for rows that are none of its.
    X : ndarray or CSR array of shape (n, d), or None
        The training rows; None for a precomputed kernel.
    kept : ndarray of shape (n,), int
        Their numbers in the data that the user gave.
    support : ndarray of shape (n_SV,), int
        The support vectors among them.
    combine : {"early", "naive", "bcm"}
        How they will be asked; only "bcm" needs the clusters' probabilities.
    """
    division = machines[0].division
    if division is None:
        return None
    regions = division.regions
    decisions = [machine.result.decision for machine in machines]
    sigmoids = [
        _sigmoids(f, sign, division.labels, regions, combine == "bcm") for f, sign in zip(decisions, signs, strict=True)
    ]
    positive = np.array([np.mean(sign[sign != 0] > 0) for sign in signs])
    return {
        "combine": combine,
        "method": regions.name,
        "points": kept[division.chosen] if X is None else X[division.chosen],
        "labels": regions.labels,
        "spread": regions.spread if isinstance(regions, KernelRegions) else np.zeros(regions.n_clusters),
        "support": division.labels[support],
        "intercepts": np.array([machine.intercepts for machine in machines]),
        "sigmoids": np.array(sigmoids),
        "log_prior": np.log(positive / (1 - positive)),
    }


def _sigmoids(decision: Vector, sign: Vector, labels: Rows, regions: Regions, wanted: bool) -> Vector:
    """Platt's a and b of every cluster, from its own training rows: shape (k, 2)."""
    odds = np.mean(sign[sign != 0] > 0)
    out = np.tile([0.0, -np.log(odds / (1 - odds))], (regions.n_clusters, 1))  # the prior, where nothing is known
    if not wanted:
        return out
    from sklearn.calibration import _SigmoidCalibration

    for c in range(regions.n_clusters):
        mine = (labels == c) & (sign != 0)
        if mine.any():
            fitted = _SigmoidCalibration().fit(decision[mine], sign[mine] > 0)
            out[c] = fitted.a_, fitted.b_
    return out


def clustered_model(kernel: Kernel, points: Any, coef: Vector, clusters: dict[str, Any]) -> ClusteredExpansion:
    """Group the support vectors by cluster.

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
        regions=_regions(kernel, clusters),
        combine=clusters["combine"],
        sigmoids=clusters["sigmoids"],
        log_prior=clusters["log_prior"],
    )


def _regions(kernel: Kernel, clusters: dict[str, Any]) -> Regions:
    points, labels = clusters["points"], clusters["labels"]
    if kernel.wants == "entries":
        return KernelRegions(kernel, GramSamples(np.empty((0, 0)), points), labels, clusters["spread"])
    samples: Samples = make_samples(points, kernel.wants)
    if clusters["method"] == "kernel":
        return KernelRegions(kernel, refine(kernel, samples), labels, clusters["spread"])
    return InputRegions(samples, labels) if clusters["method"] == "input" else RandomRegions(samples, labels)
