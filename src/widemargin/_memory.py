"""The memory plan: which part of `memory_budget` each use gets, and which uses are there at the same time.

An estimator makes its plan when a fit or a prediction begins. All functions that it calls get this plan and ask it for
a share by name, or get the bytes of a share.

Vectors of a few numbers a row and results have no share, as they cannot be smaller. `MemoryPlan.require` refuses a
budget that they exceed.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

from ._config import ALLOWED_BYTES, resolve_memory_budget
from ._types import Model


class Share(NamedTuple):
    """A part of the budget, at most, and what it is for."""

    part: float
    what: str


SHARES: dict[str, Share] = {
    "freed memory": Share(1 / 8, "what malloc keeps of arrays that were freed, 64 MiB at most"),
    # kernel machines; the rows' copies and the allocator's share are taken off first: solvers/dual/memory.py
    "active matrix": Share(1, "kernel matrix of the active set: what vectors and tiles leave"),
    "clusters": Share(1 / 2, "kernel matrices of clusters, of all threads"),
    "full matrix": Share(1 / 4, "kernel matrix of few rows, in float64"),
    "folds": Share(1, "kernel matrix of all folds of a search, else of an active set, and vectors of folds"),
    "scaled rows": Share(3 / 8, "copies of the rows of a search with scaled columns"),
    "relevance": Share(1 / 4, "machine whose gradients scale the columns"),
    "shared matrix": Share(1 / 2, "kernel matrix of several machines"),
    # linear machines
    "vectors": Share(1 / 2, "vectors of n of all classes in a group"),
    "planes": Share(1 / 4, "cutting planes, in arrays with room for twice as many"),
    "active rows": Share(1 / 4, "copies of active rows"),
    "free rows": Share(1 / 4, "copies of rows whose dual variables are free"),
    "drawn rows": Share(1 / 8, "rows that a fit starts from"),
    "preconditioner": Share(1 / 8, "rows and matrices of Newton steps and interior points, in float64"),
    "Gram matrix": Share(1, "X X' of few samples, a copy for each thread"),
    # machines on landmarks, and landmarks alone
    "clustered rows": Share(1, "a sample for k-means, four copies"),
    "leaves": Share(1, "kernel matrices and features of the leaves that are trained at one time"),
    "factor": Share(1, "kernel matrix and features of the rows that W is estimated on, and its factor"),
    "kernel values": Share(2 / 3, "kernel matrix and features before W is factored"),
    "features": Share(1 / 3, "copies of rows, and their features, of all threads"),
    # compress
    "training rows": Share(2 / 5, "rows and the model's decision values"),
    "copies": Share(2 / 5, "a second copy of these, while rows are joined"),
    "evaluation": Share(1 / 4, "the model's own predictions"),
    "axes": Share(3 / 5, "a sample for principal axes, four copies"),
    "curvatures": Share(2 / 5, "second derivatives of the model"),
    "least squares": Share(2 / 5, "leaves that learn decision values"),
    "hinges": Share(1 / 5, "leaves that learn labels"),
    "solver": Share(2 / 5, "kernel matrices of leaves that learn labels"),
    # predictions
    "copied rows": Share(1 / 2, "copies of a block of rows"),
    "weights": Share(1 / 4, "weights of a linear kernel"),
    "decision values": Share(3 / 8, "those of a block of rows, three copies"),
    "gradients": Share(1 / 2, "those at a block of rows, two copies"),
}

# of each kind of work its phases, which follow one another: the shares that are held at the same time
PHASES: dict[str, dict[str, tuple[str, ...]]] = {
    "allocator": {"after arrays were freed": ("freed memory",)},
    "kernel machine": {
        "few rows": ("full matrix",),
        "clusters": ("clusters",),
        "several machines": ("shared matrix",),
        "whole problem": ("active matrix",),
        "search of few rows": ("folds",),
        "search by clusters": ("scaled rows", "shared matrix"),
        "search that scales columns": ("relevance",),
    },
    "linear machine": {
        "few samples": ("Gram matrix",),
        "start": ("vectors", "planes", "drawn rows"),
        "rounds": ("vectors", "planes", "active rows"),
        "rounds of a smooth loss": ("vectors", "planes", "preconditioner"),
        "rounds on the dual": ("vectors", "free rows"),
        "prediction": ("decision values",),
    },
    "tree of landmarks": {"clusters": ("clustered rows",), "leaves": ("leaves",), "prediction": ("decision values",)},
    "landmarks": {
        "k-means": ("clustered rows",),
        "features": ("kernel values", "features"),
        "factor": ("factor",),
        "transform": ("features",),
    },
    "compression": {
        "rows": ("training rows", "copies"),
        "the model's values": ("training rows", "evaluation"),
        "curvatures": ("training rows", "curvatures"),
        "principal axes": ("training rows", "axes"),
        "decision values": ("training rows", "least squares"),
        "labels": ("training rows", "hinges", "solver"),
    },
    "prediction of a kernel machine": {
        "kernel values": ("copied rows", "decision values"),
        "linear kernel": ("weights", "decision values"),
        "gradients": ("copied rows", "gradients"),
    },
}


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes for each use of memory in a fit or a prediction. `print` shows the shares of each phase.

    Attributes
    ----------
    budget : int
        Bytes beside the caller's data.
    given : str or None
        The budget as the user wrote it, for error messages.
    kinds : tuple of str
        Of `PHASES`, those to print.
    """

    budget: int = 2**30
    given: str | None = None
    kinds: tuple[str, ...] = tuple(PHASES)

    def __getitem__(self, name: str) -> int:
        """Bytes of a share."""
        return int(SHARES[name].part * self.budget)

    def less(self, n_bytes: int) -> MemoryPlan:
        """The plan of what is left beside arrays of so many bytes."""
        return replace(self, budget=max(0, self.budget - n_bytes))

    def among(self, n: int, share: str | None = None, common: int = 0) -> MemoryPlan:
        """The plan of each of n tasks at one time, which have a share, by default all, and `common` bytes in common."""
        part = 1 if share is None else SHARES[share].part
        return replace(self, budget=common + int(part * (self.budget - common)) // n)

    def require(self, needed: float, what: str, allowed: int = ALLOWED_BYTES) -> None:
        """Raise a ValueError that names the least budget, if `needed` bytes exceed this one and `allowed` more.

        `what` says in the message which arrays take them.
        """
        least = math.ceil(needed) - allowed
        if self.budget < least:
            given = self.given or self.budget
            raise ValueError(f"memory_budget must be at least {least} bytes for {what}, got {given!r}")

    def __str__(self) -> str:
        lines = [f"{self.budget:,} bytes"]
        for kind in self.kinds:
            for phase, names in PHASES[kind].items():
                lines.append(f"{kind}, {phase}: {sum(SHARES[name].part for name in names):.0%}")
                lines += [f"  {self[name]:>17,}  {name}: {SHARES[name].what}" for name in names]
        return "\n".join(lines)


DEFAULT_PLAN = MemoryPlan()  # of models and algorithms that are used without an estimator


def memory_plan(estimator: Model) -> MemoryPlan:
    """The memory plan of an estimator: how it shares out its ``memory_budget``, or the configured one.

    Parameters
    ----------
    estimator : object
        An estimator of this package, fitted or not.

    Returns
    -------
    MemoryPlan
        ``print`` shows the bytes of each use, by the phases of a fit and a prediction. Phases follow one another; the
        shares of one add up to the budget at most.

    Raises
    ------
    ValueError
        If ``memory_budget`` is no positive number of bytes.

    Examples
    --------
    >>> from widemargin import DCPredClassifier, memory_plan
    >>> print(memory_plan(DCPredClassifier(memory_budget="200MB")))
    200,000,000 bytes
    tree of landmarks, clusters: 100%
            200,000,000  clustered rows: a sample for k-means, four copies
    tree of landmarks, leaves: 100%
            200,000,000  leaves: kernel matrices and features of the leaves that are trained at one time
    tree of landmarks, prediction: 38%
             75,000,000  decision values: those of a block of rows, three copies
    """
    given = getattr(estimator, "memory_budget", None)
    budget = min(resolve_memory_budget(given), sys.maxsize)
    kinds = getattr(estimator, "_memory_kinds", tuple(PHASES))
    return MemoryPlan(budget, given if isinstance(given, str) else None, kinds)
