"""Results of the solvers, converged or stopped, and their history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix, Vector

if TYPE_CHECKING:
    from .dual.certificate import Certificate


@dataclass
class History:
    """The progress of a fit: columns of equal length, one row for each round."""

    columns: dict[str, list[float]] = field(default_factory=dict)

    def record(self, **values: float) -> None:
        """Append one row."""
        if not self.columns:
            self.columns = {name: [float(value)] for name, value in values.items()}
            return
        for name, value in values.items():
            self.columns.setdefault(name, []).append(float(value))

    def record_point(self, elapsed: float, beta: Vector, certificate: Certificate) -> None:
        """Append the row of a point beta (n,), `elapsed` seconds after the start."""
        _, objective, gap, violation = certificate
        n_support = int(np.count_nonzero(beta))
        self.record(
            time=elapsed, objective=objective, lower_bound=objective - gap, violation=violation, n_support=n_support
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
        Duality gap.
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

    @property
    def lower_bound(self) -> float:
        """What the optimum is at least."""
        return self.objective - self.gap

    def improves(self, before: DualResult | None) -> bool:
        """Whether this point, found from that of `before`, is the better one: converged, or with a smaller gap."""
        return before is None or self.converged or self.gap <= before.gap

    def following(self, before: DualResult | None) -> DualResult:
        """The better one of this result and of `before`, from which it started; with the counts and rows of both."""
        if before is None:
            return self
        history = before.history.followed_by(self.history)
        best = self if self.improves(before) else before
        return replace(best, n_iter=before.n_iter + self.n_iter, history=history)


@dataclass
class LinearResult:
    """A linear machine, with its certificate.

    Attributes
    ----------
    w : ndarray of shape (q, n_features), float64
    intercept : ndarray of shape (q,), float64
    objective : float
    gap : float
    converged : bool
    points : ndarray of shape (n_points, q * n_features), float64
        Points of the cutting planes with positive multipliers: the start of a next problem.
    stopped_by : str or None
        What ended the rounds before the machine converged.
    """

    w: Matrix
    intercept: Vector
    objective: float
    gap: float
    converged: bool
    points: Matrix
    stopped_by: str | None = None

    @property
    def lower_bound(self) -> float:
        """What the optimum is at least."""
        return self.objective - self.gap
