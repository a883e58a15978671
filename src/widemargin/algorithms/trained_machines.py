"""What the training of DC-SVM returns: a machine, or the machines of many pairs of classes or targets as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._types import Matrix, RowIndices, Vector
from ..partition.divide import Division
from ..solvers.dual.in_memory import uncertified_result
from ..solvers.results import DualResult, DualResults, coordinates_of


@dataclass
class TrainedMachine:
    """A trained machine.

    Attributes
    ----------
    result : DualResult
        For an early machine, of the problem with the kernel k(x, z) [same cluster] (Lemma 1).
    division : Division or None
        The clusters of an early machine; None for the exact one.
    intercepts : ndarray of shape (n_clusters,) or (1,)
    levels : list of dict
        For each level: its number, number of clusters and support vectors, seconds for clustering and in all, and the
        primal objective and its lower bound, sums over the clusters.
    rows : ndarray of int or None
        Of a pair of classes: the rows that are the result's coordinates. None: all.
    unfinished : DualResult or None
        The last point of the whole problem, where a fit was stopped before this became better than the machine: another
        fit goes on from it. Its decision values may be unknown (`has_certificate`). Of a model of another problem,
        whose result has no certificate: the nearest feasible point of this one.
    """

    result: DualResult
    division: Division | None
    intercepts: Vector
    levels: list[dict[str, float]]
    rows: RowIndices | None = None
    unfinished: DualResult | None = None

    @classmethod
    def exact(
        cls, result: DualResult, levels: Sequence[dict[str, float]] = (), rows: RowIndices | None = None
    ) -> TrainedMachine:
        """The machine of a solution of the whole problem, after these levels."""
        return cls(result, None, np.array([result.intercept]), list(levels), rows)

    @property
    def start(self) -> Vector:
        """The feasible point (n,) that another fit begins its levels or its solve in memory from."""
        if self.unfinished is None or self.result.has_certificate:
            return self.result.beta
        return self.unfinished.beta

    def following(self, before: TrainedMachine | None) -> TrainedMachine:
        """The better one of this machine and of `before`, from which its training started (`DualResult.following`)."""
        if before is None:
            return self
        best = self if self.result.improves(before.result) else before
        result, unfinished = self.result.following(before.result), self.unfinished
        if best is before and unfinished is None:
            unfinished = before.unfinished
            if self.division is not None and before.division is None:  # levels have been solved in part
                unfinished = uncertified_result(self.result.beta, 0.0)
        return replace(best, result=result, levels=self.levels or before.levels, unfinished=unfinished)


@dataclass
class TrainedMachines:
    """Trained machines on rows of the same samples, as arrays; by number or one after the other, a `TrainedMachine`.

    Attributes
    ----------
    rows : ndarray of shape (N,), int
        The rows that are the coordinates of `results`.
    results : DualResults
        Of P problems.
    intercepts : ndarray of shape (P, n_clusters) or (P, 1)
    division : Division or None
        That of all early machines.
    levels : list of dict
        Of all machines; "problem" is the machine's number.
    unfinished : dict of DualResult
        Those of the machines that have one, by number.
    """

    rows: RowIndices
    results: DualResults
    intercepts: Matrix
    division: Division | None
    levels: list[dict[str, Any]]
    unfinished: dict[int, DualResult] = field(default_factory=dict)

    @classmethod
    def join(cls, machines: Sequence[TrainedMachine]) -> TrainedMachines:
        """The arrays of several machines."""
        rows = [np.arange(len(m.result.beta)) if m.rows is None else m.rows for m in machines]
        results = DualResults.join([machine.result for machine in machines])
        levels = [{"problem": p, **level} for p, machine in enumerate(machines) for level in machine.levels]
        intercepts = np.array([machine.intercepts for machine in machines])
        unfinished = {p: machine.unfinished for p, machine in enumerate(machines) if machine.unfinished is not None}
        return cls(np.concatenate(rows), results, intercepts, machines[0].division, levels, unfinished)

    @classmethod
    def of_results(cls, rows: RowIndices, results: DualResults) -> TrainedMachines:
        """Exact machines without levels."""
        return cls(rows, results, results.intercept[:, None], None, [])

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, p: int) -> TrainedMachine:
        result, rows = self.results[p], self.rows[slice(*self.results.starts[p : p + 2])]
        levels = [level for level in self.levels if level["problem"] == p]
        return TrainedMachine(result, self.division, self.intercepts[p], levels, rows, self.unfinished.get(p))

    def __iter__(self) -> Iterator[TrainedMachine]:
        return (self[p] for p in range(len(self)))

    @property
    def level(self) -> int:
        """The level of early machines; 0 for exact ones."""
        return int(self.levels[-1]["level"]) if self.division is not None else 0

    @property
    def starting_points(self) -> Vector:
        """`TrainedMachine.start` (N,) of all machines."""
        return np.concatenate([machine.start for machine in self]) if self.unfinished else self.results.beta

    @property
    def objective(self) -> float:
        """The sum of the objectives."""
        return float(sum(self.results.objective.tolist()))

    def take(self, problems: RowIndices) -> TrainedMachines:
        """Some of the machines."""
        return TrainedMachines.join([self[int(p)] for p in problems])


def in_order(numbers: Sequence[RowIndices], parts: Sequence[TrainedMachines]) -> TrainedMachines:
    """All machines in the order of their problems, whose `numbers` in each of the parts are given."""
    if len(parts) == 1:
        return parts[0]
    place = np.concatenate(numbers)
    order = np.argsort(place)
    joined = DualResults.concatenate([part.results for part in parts])
    rows, first = np.concatenate([part.rows for part in parts]), np.cumsum([0, *map(len, parts)])
    levels = [
        {**level, "problem": int(place[k + level["problem"]])}
        for k, part in zip(first, parts, strict=False)
        for level in part.levels
    ]
    rows = rows[coordinates_of(joined.starts, order)]
    intercepts = np.concatenate([part.intercepts for part in parts])[order]
    unfinished = {
        int(place[k + p]): point for k, part in zip(first, parts, strict=False) for p, point in part.unfinished.items()
    }
    return TrainedMachines(rows, joined.take(order), intercepts, parts[0].division, levels, unfinished)


def describe_level(
    level: int, n_clusters: int, joined: DualResult, *, clustering_seconds: float, seconds: float
) -> dict[str, float]:
    """The entry of `TrainedMachine.levels` of a level's concatenated solution."""
    return {
        "level": level,
        "n_clusters": n_clusters,
        "n_support": int(np.count_nonzero(joined.beta)),
        "clustering_seconds": clustering_seconds,
        "seconds": seconds,
        "objective": joined.objective,
        "lower_bound": joined.lower_bound,
    }
