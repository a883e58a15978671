"""Stochastic gradient descent on a machine of at most B points: the state between steps, and passes over rows.

    min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)),   w a combination of at most B points in feature space

by steps of size 1 / (lam t) on one row each (Wang, Crammer, Vucetic 2012). Two kinds of machine: one whose points are
merged and move (`MergingMachine`, Gaussian kernel), one whose points are rows of the data (`FixedMachine`, any kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._native import budget as compiled
from ..._native import csr
from ...data.csr import CSRArray, make_csr
from ...data.samples import Samples, SparseSamples, make_samples
from ...kernels.functions import RBF, Kernel
from .lookup_table import merge_table

Vector = NDArray[np.float64]
Order = NDArray[np.int64]

STEPS, FRONT, BACK, VIOLATIONS, MERGERS, REMOVALS, DOUBT = range(7)  # of `counts`; fixed points are all at the front
INTERCEPT, INTERCEPT_SUM, CLOCK, WEIGHT, WEIGHTS, HINGE, DEGRADATION = range(7)  # of `sums`
COEF, COEF_SUM, SIZE, SCALE = range(4)  # of the slots of points that are merged

_MERGING_ARRAYS = ("points", "slots", "counts", "sums", "shift")
_FIXED_BLOCK = 128  # rows of a block of kernel values: as many columns are computed beside the points'


@dataclass(frozen=True)
class StepSettings:
    """What a step does.

    Attributes
    ----------
    kernel : Kernel
    lam : float
        Weight of the squared norm, against the *mean* of the losses.
    budget : int
    maintenance : {"merge", "removal", "projection"}
    merge : {"lookup-wd", "lookup-h", "gss", "gss-precise"}
    table_size : int
    fit_intercept : bool
    average : bool
        Whether the machine is the average over its steps. Weights grow like t^3 (polynomial decay, Shamir and Zhang,
        ICML 2013), and by 1 + 1 / budget where points change: steps on points that are gone are forgotten. It restarts
        where it errs more often than the machine of the last step (Page's cumulative sum of mistakes, limit 4, on every
        fourth row): so it follows a stream that changes.
    """

    kernel: Kernel
    lam: float
    budget: int = 100
    maintenance: str = "merge"
    merge: str = "lookup-wd"
    table_size: int = 400
    fit_intercept: bool = False
    average: bool = True


class Tally(NamedTuple):
    """Running sums over all steps so far; the difference of two describes what lies between."""

    steps: int
    violations: int
    mergers: int
    removals: int
    hinge: float
    degradation: float

    def since(self, earlier: Tally) -> Tally:
        """What has happened since."""
        return Tally(*(new - old for new, old in zip(self, earlier, strict=True)))  # type: ignore[arg-type]


class Expansion(NamedTuple):
    """sum_j coef_j k(points_j, x) + intercept; points (n, d) float32, dense or CSR."""

    points: Any
    coef: Vector
    intercept: float


class SGDMachine:
    """The state of one decision function between steps: `lam t w`, in coefficients of at most `budget` points."""

    counts: NDArray[np.int64]
    sums: Vector
    coef: Vector

    def __init__(self, settings: StepSettings) -> None:
        self.settings = settings

    def prepare(self, X: Any) -> Any:
        """Rows (n, d), float32, dense or CSR, in the form that `run` reads; it takes them as they are, too."""
        return X

    def run(self, X: Any, order: Order, signed_weights: Vector) -> None:
        """One step on each of the rows X[order]; signed_weights (n,) holds s_i y_i of every row of X."""
        raise NotImplementedError

    def expansion(self) -> Expansion:
        """The machine as it stands or, where the settings ask for it, its average over steps."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Arrays that `make_machine` can go on from."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def tally(self) -> Tally:
        """Counts and sums since the first step."""
        steps, _, _, violations, mergers, removals, _ = (int(count) for count in self.counts)
        hinge, degradation = (float(value) for value in self.sums[HINGE:])
        return Tally(steps, violations, mergers, removals, hinge, degradation)

    def _in_true_units(self) -> tuple[Vector, float]:
        """Coefficients of all slots and the intercept: of the last step, or the weighted mean over steps."""
        steps, lam = int(self.counts[STEPS]), self.settings.lam
        intercept, intercept_sum, clock, _, weights = (float(value) for value in self.sums[: WEIGHTS + 1])
        if not self.settings.average or not steps:
            scale = lam * max(steps, 1)
            return self.coef[0] / scale, intercept / scale
        scale = lam * weights
        return (clock * self.coef[0] - self.coef[1]) / scale, (clock * intercept - intercept_sum) / scale


class MergingMachine(SGDMachine):
    """Points that are merged, in slots of one feature-major array. Dense rows are stored less the first one."""

    def __init__(self, settings: StepSettings, arrays: Any) -> None:
        super().__init__(settings)
        self.arrays = arrays  # a compiled.MergingState
        self.counts, self.sums, self.coef = arrays.counts, arrays.sums, arrays.slots[: COEF_SUM + 1]

    def prepare(self, X: Any) -> Any:
        """Sparse rows are checked once, not at every `run`."""
        if isinstance(X, csr.CSRMatrix):
            return X
        if sp.issparse(X):
            return make_csr(X)
        return np.ascontiguousarray(X)

    def run(self, X: Any, order: Order, signed_weights: Vector) -> None:
        """Steps that merge where the budget is exceeded: no interpreter work between them."""
        rows, settings = self.prepare(X), self.settings
        if not isinstance(rows, csr.CSRMatrix) and not self.counts[STEPS] and len(order):
            self.arrays.shift[:] = rows[order[0]]  # distances do not notice, and small numbers keep more digits
        tables, gamma = merge_table(settings.table_size).tables, settings.kernel.gamma  # type: ignore[attr-defined]
        rule, inverse_lam, fit_intercept = settings.merge, 1 / settings.lam, settings.fit_intercept
        self.arrays.run(rows, order, signed_weights, tables, rule, gamma, inverse_lam, fit_intercept)

    def expansion(self) -> Expansion:
        """The used slots: those of positive coefficients, then the others."""
        coef, intercept = self._in_true_units()
        n_front, n_back = (int(count) for count in self.counts[FRONT : BACK + 1])
        used = np.r_[:n_front, coef.size - n_back : coef.size]
        scales = self.arrays.slots[SCALE, used].astype(np.float32)
        points = (scales * self.arrays.points[:, used]).T + self.arrays.shift
        return Expansion(np.ascontiguousarray(points), coef[used], intercept)

    def state(self) -> dict[str, Any]:
        """The arrays."""
        return {name: getattr(self.arrays, name) for name in _MERGING_ARRAYS}

    def __len__(self) -> int:
        return int(self.counts[FRONT] + self.counts[BACK])


class FixedMachine(SGDMachine):
    """Points that are rows of the data: kernel values come by blocks, and steps on a block are compiled.

    Points and the rows of a block have columns of their own, in the order of their coming; columns are closed up after
    every `_FIXED_BLOCK` steps, wherever chunks end, so that sums over them do not depend on the chunks.
    """

    def __init__(
        self,
        settings: StepSettings,
        points: Any,
        columns: NDArray[np.intp],
        diagonal: Vector,
        coef: Vector,
        inverse: Vector,
        counts: NDArray[np.int64],
        sums: Vector,
    ) -> None:
        super().__init__(settings)
        self.points, self.columns, self.diagonal, self.inverse = points, columns, diagonal, inverse
        self.counts, self.sums, self.coef = counts, sums, coef

    def run(self, X: Any, order: Order, signed_weights: Vector) -> None:
        """Steps by blocks of rows; entries of a row do not depend on the block it comes in."""
        while len(order):
            n_rows = _FIXED_BLOCK - int(self.counts[STEPS]) % _FIXED_BLOCK
            self._run_block(X[order[:n_rows]], signed_weights[order[:n_rows]])
            order = order[n_rows:]

    def _run_block(self, X: Any, signed_weights: Vector) -> None:
        if sp.issparse(X) != sp.issparse(self.points):
            X = sp.csr_array(X) if sp.issparse(self.points) else X.toarray()
        everything = sp.vstack([self.points, X], "csr") if sp.issparse(X) else np.concatenate([self.points, X])
        first = self.settings.budget + int(self.counts[STEPS]) % _FIXED_BLOCK
        columns = np.concatenate([self.columns, first + np.arange(len(signed_weights))])
        kernel, samples = self.settings.kernel, _positionless(everything, self.settings.kernel)
        tile = np.empty((len(signed_weights), len(columns)), np.float32)
        new = samples.take(slice(len(self.columns), len(columns)))
        kernel.fill(new, samples, tile)
        K = np.zeros((len(signed_weights), self.coef.shape[1]), np.float32)
        K[:, columns] = tile
        self.diagonal[first : first + len(signed_weights)] = kernel.diagonal(new)
        settings = self.settings
        steps = compiled.removal_steps if settings.maintenance == "removal" else compiled.projection_steps
        arrays = self.coef, self.inverse, self.counts, self.sums
        rule = settings.budget, 1 / settings.lam, settings.fit_intercept
        steps(K, first, self.diagonal, signed_weights, *arrays, *rule)
        is_point = (self.inverse.diagonal() if self.inverse.size else self.coef[0])[columns] != 0
        self.points, self.columns = everything[np.flatnonzero(is_point)], columns[is_point]
        if self.counts[STEPS] % _FIXED_BLOCK == 0:
            self._close_up()

    def _close_up(self) -> None:
        """Give the points the first columns."""
        n, old = len(self.columns), self.columns
        coef, self.diagonal[:n] = self.coef[:, old], self.diagonal[old]
        self.coef[:] = 0.0
        self.coef[:, :n] = coef
        if self.inverse.size:
            inverse = self.inverse[np.ix_(old, old)]
            self.inverse[:] = 0.0
            self.inverse[:n, :n] = inverse
        self.columns = np.arange(n)

    def expansion(self) -> Expansion:
        """The points in the order of their coming."""
        coef, intercept = self._in_true_units()
        return Expansion(self.points, coef[self.columns], intercept)

    def state(self) -> dict[str, Any]:
        """The arrays."""
        names = ("points", "columns", "diagonal", "coef", "inverse", "counts", "sums")
        return {name: getattr(self, name) for name in names}

    def __len__(self) -> int:
        return len(self.columns)


def _positionless(X: Any, kernel: Kernel) -> Samples:
    """Samples whose kernel values do not depend on where in a block they stand, as a matrix product's last digit does.

    So a stream gives one model, however it is cut into chunks.
    """
    if kernel.sample_form == "rows":
        return make_samples(X)
    return SparseSamples(CSRArray.of(sp.csr_array(X, dtype=np.float64)), dtype=np.dtype(np.float32))


def make_machine(settings: StepSettings, like: Any, state: Mapping[str, Any] | None = None) -> SGDMachine:
    """An empty machine for rows like those of an array (n, d), or one that goes on from a `state`, copied.

    Parameters
    ----------
    settings : StepSettings
    like : ndarray or CSR array of shape (n, d), float32
    state : mapping, optional
    """
    if settings.maintenance == "merge":
        return _make_merging(settings, like, state)
    if state is not None:
        return FixedMachine(settings, **_copied(state))
    width = settings.budget + _FIXED_BLOCK
    side = width if settings.maintenance == "projection" else 0
    return FixedMachine(
        settings,
        points=like[:0],
        columns=np.zeros(0, np.intp),
        diagonal=np.zeros(width),
        coef=np.zeros((2, width)),
        inverse=np.zeros((side, side)),
        counts=np.zeros(7, np.int64),
        sums=np.eye(7)[WEIGHT],
    )


def projection_bytes(settings: StepSettings, n_machines: int) -> int:
    """Bytes of the inverse kernel matrices (budget + block)^2, one a machine, and of one's copy; 0 without projection.

    Examples
    --------
    >>> from widemargin.kernels.functions import RBF
    >>> projection_bytes(StepSettings(RBF(1.0), lam=1e-3, maintenance="merge"), 2)
    0
    """
    return 8 * (n_machines + 1) * (settings.budget + _FIXED_BLOCK) ** 2 if settings.maintenance == "projection" else 0


def _make_merging(settings: StepSettings, like: Any, state: Mapping[str, Any] | None) -> MergingMachine:
    if not isinstance(settings.kernel, RBF):
        raise ValueError("maintenance='merge' needs the Gaussian kernel")
    arrays = compiled.MergingState(like.shape[1], settings.budget)
    if state is not None:
        for name in _MERGING_ARRAYS:  # older states have scratch, too
            getattr(arrays, name)[:] = state[name]
    return MergingMachine(settings, arrays)


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}
