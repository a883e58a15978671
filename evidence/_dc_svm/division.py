"""Divisions of the data: Figure 1, the bound of Theorem 1, and Figure 2, support vectors found early."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence import _published as as_published
from evidence._dc_svm.machines import SETTINGS, Machine, make, settings_of
from measuring import recompute
from measuring.competitors import Settings
from measuring.experiment import Axes, Experiment, Row, Run, panels_of
from measuring.problems import Problem, load_problem
from widemargin._memory import memory_plan
from widemargin._progress import Progress
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, solve_clusters, train_machine
from widemargin.algorithms.trained_machines import TrainedMachine
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import make_kernel
from widemargin.solvers.dual.problem import svm_problem

_EXACT = 1e-6  # a difference below it, relative to the dual, is the solver's own
_LABELS = {"kernel": "DC-SVM, kernel k-means", "input": "DC-SVM, k-means", "cascade": "Cascade SVM"}
_KERNELS: dict[str, dict[str, float]] = {"rbf": {}, "poly": {"C": 2.0, "gamma": 1.0}}  # and the paper's C and gamma
_METHODS = {"kernel": "kernel k-means", "input": "k-means", "random": "random"}


def _figure1(name: str, options: Run) -> Iterator[Row]:
    problem = load_problem(name, n_rows=options.rows or 10_000)
    problem = problem._replace(C=options.C or problem.C, gamma=options.gamma or problem.gamma)
    if not options.wants(set=name, C=problem.C, gamma=problem.gamma):
        return
    data = _data(problem)
    best = _dual(problem, _train(data, DCSVMSettings(tol=options.tol)).result.beta)
    for method in _METHODS:
        for k in options.clusters:
            labels, beta = _divide(data, method, k, options.tol)
            bound = 0.5 * problem.C**2 * _between_clusters(data, labels)
            difference = best - _dual(problem, beta)
            yield {
                "set": name,
                "n": len(problem.X),
                "C": problem.C,
                "gamma": problem.gamma,
                "partition": _METHODS[method],
                "clusters": k,
                "bound": bound,
                "difference": difference,
                "dual": best,
                "relative": difference / best,
                **({"slack": bound / difference} if difference > _EXACT * best else {}),
            }


def _data(problem: Problem) -> KernelProblem:
    kernel = make_kernel("rbf", gamma=problem.gamma, degree=3, coef0=0.0)
    y = problem.y.astype(np.float64)
    return KernelProblem(
        kernel, make_samples(problem.X, kernel.sample_form), svm_problem(y, np.full(len(y), problem.C))
    )


def _divide(data: KernelProblem, method: str, k: int, tol: float) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
    """A division of the n rows into k clusters: its labels (n,), and the solutions of the clusters' duals (n,)."""
    if method != "random":
        local = _train(data, DCSVMSettings(tol=tol, n_levels=1, branching=k, stop_level=1, partition=method))
        assert local.division is not None
        return local.division.labels, local.result.beta
    labels, beta = np.random.default_rng(0).permutation(len(data.samples)) % k, np.empty(len(data.samples))
    clusters = [np.flatnonzero(labels == c) for c in range(k)]
    with as_published.dc_svm(), Progress() as progress:
        results = solve_clusters(data, clusters, DCSVMSettings(tol=tol, memory=memory_plan(None)), progress)
    for rows, result in zip(clusters, results, strict=True):
        beta[rows] = result.beta
    return labels, beta


def _train(data: KernelProblem, settings: DCSVMSettings) -> TrainedMachine:
    settings = replace(settings, memory=memory_plan(None))
    with as_published.dc_svm(), Progress() as progress:
        return train_machine(data, settings, progress, np.random.default_rng(0))


def _dual(problem: Problem, beta: NDArray[np.float64]) -> float:
    """Dual value for the whole kernel: -f of the paper."""
    support = np.flatnonzero(beta)
    f = recompute.decision_values(problem.X[support], problem.X[support], beta[support], problem.gamma)
    return float(np.abs(beta).sum() - 0.5 * beta[support] @ f)


def _between_clusters(data: KernelProblem, labels: NDArray[np.integer]) -> float:
    """D(pi) of Theorem 1: the sum of |k(x_i, x_j)| over the ordered pairs of rows in different clusters."""
    samples = data.samples.take(np.arange(len(data.samples)))
    K = np.empty((len(samples), len(samples)), samples.dtype)
    data.kernel.fill(samples, samples, K)
    K[labels[:, None] == labels] = 0
    return float(np.abs(K).sum(dtype=np.float64))


FIGURE1 = Experiment(  # Figure 1: the bound of Theorem 1 against the actual difference in the objective
    "dc_svm/figure1",
    ("covtype", "ijcnn1", "codrna", "kddcup99_10"),
    ("set", "n", "C", "gamma", "partition", "clusters"),
    _figure1,
    settings={**SETTINGS, "clusters": (8, 16, 32, 64, 128), "C": 0.0, "gamma": 0.0},
    parts=True,
    seconds=20.0,
    panels=lambda rows: panels_of(
        rows,
        ("set", "C", "gamma"),
        ("partition",),
        Axes("clusters", "clusters", "bound", "bound of Theorem 1", "xy"),
        Axes("clusters", "clusters", "difference", "difference in the dual", "xy"),
    ),
)

# --------------------------------------------------------------------------------------------------------- Figure 2


_TOO_LONG = "covtype", "poly"  # eight minutes


def _figure2(name: str, options: Run) -> Iterator[Row]:
    problem = load_problem(name, n_rows=options.rows)
    for kernel, changes in _KERNELS.items():
        methods = [m for m in options.methods if options.wants(set=name, kernel=kernel, method=_LABELS[m])]
        if methods and kernel in options.kernels and (name, kernel) != _TOO_LONG:
            yield from _levels_of(problem, settings_of(problem, tol=options.tol, kernel=kernel, **changes), methods)


def _levels_of(problem: Problem, settings: Settings, methods: Sequence[str]) -> Iterator[Row]:
    """What each method finds of the exact machine's support vectors."""
    truth = np.zeros(len(problem.X), bool)
    truth[make(Machine("", "direct"), settings).fit(problem.X, problem.y).support_] = True
    common = {"set": problem.name, "n": len(problem.X), "kernel": settings.kernel, "support_vectors": int(truth.sum())}
    for label, level, parts, found, seconds in _identified(problem, settings, methods):
        hits = int(truth[found].sum())
        yield {
            **common,
            "method": label,
            "level": level,
            "clusters": parts,
            "found": len(found),
            "precision": hits / len(found),
            "recall": hits / truth.sum(),
            "seconds": seconds,
        }


def _identified(problem: Problem, settings: Settings, methods: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Support vectors of every level, from level 4 up, adaptive clustering included, and of Cascade's layers.

    The seconds are those since the start of the training.
    """
    for method in methods:
        if method == "cascade":
            cascade = make(Machine("", "cascade", {"n_parts": 256}), settings).fit(problem.X, problem.y)
            for (parts, found), seconds in zip(cascade.layers_, cascade.seconds_, strict=True):
                if parts in (1, 4, 16, 64, 256):
                    yield _LABELS[method], round(np.log(parts) / np.log(4)), parts, found, seconds
            continue
        for level in (4, 3, 2, 1):
            how = {"n_levels": 4, "stop_level": level, "partition": method, "published": method == "kernel"}
            machine = Machine("", "exact", how)
            start = time.perf_counter()
            model = make(machine, settings).fit(problem.X, problem.y)
            seconds = time.perf_counter() - start
            yield _LABELS[method], level, model.levels_[-1]["n_clusters"], model.support_, seconds


FIGURE2 = Experiment(  # Figure 2: precision and recall of the support vectors that each level finds
    "dc_svm/figure2",
    ("ijcnn1", "covtype_20k", "covtype"),
    ("set", "n", "kernel", "method", "level"),
    _figure2,
    settings={**SETTINGS, "methods": ("kernel", "cascade"), "kernels": tuple(_KERNELS)},
    parts=True,
    seconds={"covtype": 270.0, "": 30.0},
    panels=lambda rows: panels_of(
        rows,
        ("set", "kernel"),
        ("method",),
        *(Axes(x, x, y, y, "x") for y in ("precision", "recall") for x in ("clusters", "seconds")),
    ),
)
