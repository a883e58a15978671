"""What a fit with `warm_start` goes on from: the points of the duals, with their certificates.

Every fit that was stopped and every fit with `warm_start` keeps them beside the model. They are valid for the same
rows, targets, weights, kernel and C; a fingerprint of these is compared. For any other problem a fit starts from the
model's coefficients, and computes their objective first.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._types import Matrix, RowIndices, Rows, Vector
from ..algorithms.dc_svm_levels import Problems
from ..algorithms.trained_machines import TrainedMachine, TrainedMachines
from ..data.remote.remote_rows import RemoteRows
from ..kernels.functions import Kernel
from ..partition.divide import Division
from ..solvers.dual.certificate import Limits
from ..solvers.dual.in_memory import uncertified_result
from ..solvers.dual.problem import PairProblems
from ..solvers.results import Certificate, DualResult, DualResults, History
from ._fitted_state import FittedState

_COLUMNS = "intercept", "objective", "gap", "violation"  # of `DualResults`, in the order of `Certificate`


def fingerprint(kernel: Kernel, X: Rows, problems: Problems) -> int:
    """A number that differs for other problems: of all rows (on workers a sample), targets, weights and parameters."""
    if isinstance(problems, PairProblems):
        return checksum((kernel, problems.has_intercept), X, [problems.classes, problems.upper])
    made = [problems[p]()[1] for p in range(len(problems))]
    arrays = [array for problem in made for array in (*problem[:3], problem.curvature) if array is not None]
    return checksum((kernel, [problem[3:6] for problem in made]), X, arrays)


def checksum(facts: Any, X: Rows, arrays: Sequence[Any]) -> int:
    """Of the repr of the facts, and all entries of X (on workers of a sample) and the arrays."""
    rows = X.sample[1] if isinstance(X, RemoteRows) else X
    parts = [rows.data, rows.indices, rows.indptr] if sp.issparse(rows) else [rows]
    value = zlib.crc32(repr((facts, X.shape)).encode())
    for array in (*parts, *arrays):
        value = zlib.crc32(np.ascontiguousarray(array).data.cast("B"), value) if array.size else value
    return value


def state_of(machines: TrainedMachines, mark: int) -> dict[str, Any] | None:
    """The points of machines with their certificates, as arrays; None where a certificate is not known."""
    results = machines.results
    if not np.isfinite(results.gap).all():
        return None
    unfinished = [
        {"problem": p, "beta": last.beta, "decision": last.decision if last.has_certificate else np.empty(0)}
        for p, last in machines.unfinished.items()
    ]
    return {
        "fingerprint": mark,
        "beta": results.beta,
        "decision": results.decision,
        **{name: getattr(results, name) for name in _COLUMNS},
        "intercepts": machines.intercepts,
        "labels": None if machines.division is None else machines.division.labels,
        "unfinished": unfinished,
    }


def machines_of_state(
    state: dict[str, Any], problems: Problems, limits: Limits, division: Division | None, levels: list[dict[str, Any]]
) -> TrainedMachines:
    """The machines of a `state_of` the same problems; of early ones `division` has the rows' labels."""
    parts = [problems[p]() for p in range(len(problems))]
    rows, starts = [rows for rows, _ in parts], np.cumsum([0, *(len(rows) for rows, _ in parts)])
    certificate = Certificate(*(state[name] for name in _COLUMNS))
    columns = {**{name: state[name] for name in _COLUMNS}, "converged": limits.are_met(certificate)}
    history = {
        "time": np.zeros(len(parts)),
        "objective": state["objective"],
        "lower_bound": certificate.lower_bound,
        "violation": state["violation"],
        "n_support": np.add.reduceat(state["beta"] != 0.0, starts[:-1]).astype(np.float64),
        "problem": np.arange(len(parts)),
    }
    n_iter = np.zeros(len(parts), np.int64)
    results = DualResults(starts, state["beta"], state["decision"], **columns, n_iter=n_iter, history=history)
    unfinished = {last["problem"]: _unfinished(last["beta"], last["decision"]) for last in state["unfinished"]}
    return TrainedMachines(np.concatenate(rows), results, state["intercepts"], division, levels, unfinished)


def _unfinished(beta: Vector, decision: Vector) -> DualResult:
    """A point to go on from. The solver computes its certificate, from the decision values if these are known."""
    gap = 0.0 if len(decision) else np.inf
    return DualResult(beta, decision, 0.0, np.inf, gap, np.inf, converged=False, n_iter=0, history=History())


def machines_of_coefficients(
    coef: Any,
    places: RowIndices,
    problems: Problems,
    division: Division | None,
    intercepts: Matrix,
    levels: list[dict[str, Any]],
) -> TrainedMachines:
    """Machines of a model of other problems, without certificates, and the nearest feasible points of these ones.

    `coef` is (n_machines, n_SV); `places` (n_SV,) has the row of each support vector, -1 for those that are no row;
    `intercepts` is (n_machines, n_clusters) or (n_machines, 1).
    """
    is_there = places >= 0
    coef, places = sp.csr_array(coef[:, is_there]), places[is_there]
    machines = []
    for p in range(len(problems)):
        rows, problem = problems[p]()
        own, place = slice(*coef.indptr[p : p + 2]), np.zeros(int(max(rows.max(), places.max(initial=0))) + 1)
        place[places[coef.indices[own]]] = coef.data[own]
        beta = np.clip(place[rows], problem.lo, problem.hi)
        start = uncertified_result(problem.nearby_point(beta) if problem.has_intercept else beta, 0.0)
        own_levels = [level for level in levels if level["problem"] == p]
        result = replace(uncertified_result(place[rows], 0.0), intercept=float(intercepts[p].mean()))
        machines.append(TrainedMachine(result, division, intercepts[p], own_levels, rows, unfinished=start))
    return TrainedMachines.join(machines)


def find_rows(support: RowIndices, vectors: Rows, kept: RowIndices, X: Rows) -> RowIndices:
    """The place of each support vector among the rows `kept` of X; -1 where the row of this number is another one.

    `vectors` None: rows of a kernel matrix, or on workers, which are not compared.
    """
    places = np.minimum(np.searchsorted(kept, support), len(kept) - 1)
    is_there = kept[places] == support
    if vectors is not None and vectors.shape[1] != X.shape[1]:
        is_there &= False
    elif vectors is not None and is_there.any():
        new, old = X[places[is_there]], vectors[is_there]
        if sp.issparse(new) or sp.issparse(old):
            is_equal = np.diff((sp.csr_array(new) != sp.csr_array(old)).tocsr().indptr) == 0
        else:
            is_equal = (new == old).all(axis=1)
        is_there[is_there] = is_equal
    return np.where(is_there, places, -1)


def check_state(fitted: FittedState, n_machines: int) -> None:
    """Check the values of `state_of`; the ValueError names the first invalid one."""
    fitted.integer("fingerprint", 0)
    n = len(fitted.array("beta", np.float64, None))
    fitted.array("decision", np.float64, n)
    for name in _COLUMNS:
        fitted.array(name, np.float64, n_machines)
    k = fitted.array("intercepts", np.float64, n_machines, ...).shape[1]
    if fitted.value("labels") is not None:
        fitted.array("labels", np.integer, None, least=0, below=k)
    for last in fitted.nested_list("unfinished", None):
        last.integer("problem", 0)
        m = len(last.array("beta", np.float64, None))
        if len(last.array("decision", np.float64, None)):
            last.array("decision", np.float64, m)
