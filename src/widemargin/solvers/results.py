"""Results of the solvers, converged or stopped, and their history."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._types import Matrix, RowIndices, Vector
from ..partition.divide import Division


@dataclass
class History:
    """The progress of a fit: columns of equal length, one row for each round."""

    columns: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of_point(cls, elapsed: float, beta: Vector, *, objective: float, gap: float, violation: float) -> History:
        """One row: see `record_point`."""
        history = cls()
        history.record_point(elapsed, beta, objective=objective, gap=gap, violation=violation)
        return history

    def record(self, **values: float) -> None:
        """Append one row."""
        for name, value in values.items():
            self.columns.setdefault(name, []).append(float(value))

    def record_point(self, elapsed: float, beta: Vector, *, objective: float, gap: float, violation: float) -> None:
        """Append the row of a point beta (n,) with its certificate, `elapsed` seconds after the start."""
        self.record(
            time=elapsed,
            objective=objective,
            lower_bound=objective - gap,
            violation=violation,
            n_support=int(np.count_nonzero(beta)),
        )

    def followed_by(self, other: History) -> History:
        """The rows of both."""
        return History({name: column + other.columns.get(name, []) for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def as_arrays(self) -> dict[str, Vector]:
        """The columns as float64 arrays."""
        return {name: np.array(column) for name, column in self.columns.items()}


class StoppedAtStartError(Exception):
    """A solver was stopped before the decision values of its start were known."""


@dataclass
class DualResult:
    """A feasible point of the dual in beta = y * alpha, with its certificate.

    Attributes
    ----------
    beta : ndarray of shape (n,), float64
        Coefficients y * alpha.
    decision : ndarray of shape (n,), float64
        K beta, without the intercept.
    intercept : float
        Zero for machines without one.
    objective : float
        Primal objective of the machine.
    gap : float
        Duality gap: objective - gap is a lower bound of the optimum.
    violation : float
        KKT violation, which `tol` limits.
    converged : bool
    n_iter : int
        Working sets solved.
    history : History
    """

    beta: Vector
    decision: Vector
    intercept: float
    objective: float
    gap: float
    violation: float
    converged: bool
    n_iter: int
    history: History


def join_results(rows: list[RowIndices], parts: list[DualResult], n: int, elapsed: float) -> DualResult:
    """Join the results of independent problems in one of n coordinates: sums of objectives and gaps, largest violation.

    Parameters
    ----------
    rows : list of ndarray of int
        Each part's coordinates.
    parts : list of DualResult
    n : int
    elapsed : float
        Seconds, for the single row of the history.
    """
    beta, decision = np.zeros(n), np.zeros(n)
    for mine, part in zip(rows, parts, strict=True):
        beta[mine], decision[mine] = part.beta, part.decision
    objective, gap = sum(part.objective for part in parts), sum(part.gap for part in parts)
    violation = max((part.violation for part in parts), default=0.0)
    return DualResult(
        beta=beta,
        decision=decision,
        intercept=0.0,
        objective=objective,
        gap=gap,
        violation=violation,
        converged=all(part.converged for part in parts),
        n_iter=sum(part.n_iter for part in parts),
        history=History.of_point(elapsed, beta, objective=objective, gap=gap, violation=violation),
    )


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
    """

    result: DualResult
    division: Division | None
    intercepts: Vector
    levels: list[dict[str, float]]
    rows: RowIndices | None = None


@dataclass
class LinearResult:
    """A linear machine, with its certificate.

    Attributes
    ----------
    w : ndarray of shape (q, n_features), float64
    intercept : ndarray of shape (q,), float64
    objective : float
    gap : float
        objective - gap is a proven lower bound.
    converged : bool
    points : ndarray of shape (n_points, q * n_features), float64
        Points of the cutting planes with positive multipliers: the start of a next problem.
    """

    w: Matrix
    intercept: Vector
    objective: float
    gap: float
    converged: bool
    points: Matrix
