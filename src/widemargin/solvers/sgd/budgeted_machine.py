"""Stochastic gradient descent on a machine of at most B support vectors: the state between steps, and the steps.

    min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)),   w a combination of at most B points in feature space

by steps of size 1 / (lam t) on one row each (Wang, Crammer, Vucetic 2012). In a `MergingMachine` (Gaussian kernel)
support vectors are merged and so move through the input space; those of a `SubsetMachine` (any kernel) are rows of the
data. A machine keeps lam t w instead of w: so a step scales no coefficient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._native import budget as compiled
from ..._native import csr
from ..._types import RowIndices, Rows, Vector
from ...data.csr import CSRArray, make_csr
from ...data.rows import occupied_columns
from ...data.samples import Samples, SparseSamples, make_samples
from ...kernels.functions import RBF, CallableKernel, Kernel
from .lookup_table import merge_table

MAINTENANCE = ("merge", "removal", "projection")  # these names are described in `solvers.sgd`
MERGE_RULES = ("lookup-wd", "gss-precise")
RULES = (*MERGE_RULES, "lookup-h", "gss", "gss-paper")  # the last three for comparisons: `evidence/all.py bsgd/tables`

# Places in the arrays of a machine, which the compiled steps and the files of models number alike.
# counts, int64. Slots are the columns of the arrays of a MergingMachine: the first N_FRONT have the support vectors of
# positive coefficients, the last N_BACK those of negative ones, the others are empty. A SubsetMachine counts all its
# support vectors as N_FRONT. VIOLATIONS: rows within the margin. EXCESS_MISTAKES: see `StepSettings.average`.
STEPS, N_FRONT, N_BACK, VIOLATIONS, MERGERS, REMOVALS, EXCESS_MISTAKES = range(7)
# sums, float64. STEP_SIZE_SUM = sum_t v_t / t and WEIGHT_SUM = sum_t v_t, where v_t is the weight of step t in the
# average; LAST_WEIGHT is the latest v_t. INTERCEPT_SUM is to INTERCEPT what COEF_SUM is to COEF.
INTERCEPT, INTERCEPT_SUM, STEP_SIZE_SUM, LAST_WEIGHT, WEIGHT_SUM, HINGE_SUM, DEGRADATION_SUM = range(7)
# slots, float64, a row each. COEF_SUM has the terms of COEF, each times STEP_SIZE_SUM when it was added. The point of a
# slot is x = SCALE * column + shift; SCALED_NORM is gamma |x - shift|^2.
COEF, COEF_SUM, SCALED_NORM, SCALE = range(4)

_MERGING_ARRAYS = ("points", "slots", "counts", "sums", "shift")
TILE_STEPS = 128  # steps of a SubsetMachine on one tile of kernel values: its arrays have as many columns more


@dataclass(frozen=True)
class StepSettings:
    """Parameters of the steps; `lam` weighs |w|^2 / 2 against the *mean* of the losses, `merge` is one of `RULES`.

    `average`: whether the machine is the average over its steps, of weights v_t = v_(t-1) (1 + 3 / t + [budget
    maintained] / budget): they grow like t^3 (polynomial decay, Shamir and Zhang, ICML 2013), and faster where budget
    maintenance changes support vectors: steps on support vectors that are gone are forgotten. The average restarts
    where it makes more mistakes than the machine of the last step (Page's cumulative sum of the difference, limit 4,
    over every fourth row): so it follows a stream that changes.
    """

    kernel: Kernel
    lam: float
    budget: int = 100
    maintenance: str = "merge"
    merge: str = "lookup-wd"
    table_size: int = 400
    fit_intercept: bool = False
    average: bool = True


class StepTotals(NamedTuple):
    """Counts and sums over all steps so far."""

    steps: int
    violations: int
    mergers: int
    removals: int
    hinge: float
    degradation: float

    def since(self, earlier: StepTotals) -> StepTotals:
        """The differences to earlier totals: those of the steps between."""
        return StepTotals(*(new - old for new, old in zip(self, earlier, strict=True)))  # type: ignore[arg-type]


class Expansion(NamedTuple):
    """sum_j coef_j k(points_j, x) + intercept; points (n, d) float32, dense or CSR."""

    points: Rows
    coef: Vector
    intercept: float


class BudgetedMachine(ABC):
    """The state of one decision function between steps: `lam t w`, in coefficients of at most `budget` points."""

    settings: StepSettings
    counts: NDArray[np.int64]
    sums: Vector
    coef: Vector  # (2, n_slots or n_columns): rows COEF and COEF_SUM

    @abstractmethod
    def begin(self, X: Rows, order: RowIndices) -> None:
        """Take what the machine needs of the first row X[order[0]], before the first step; X as for `run`."""

    def prepare(self, X: Rows) -> Rows:
        """X (n, d), float32, dense or CSR, checked and converted once for several calls of `run`."""
        return X

    @abstractmethod
    def run(self, X: Rows, order: RowIndices, signed_weights: Vector) -> None:
        """One step on each of the rows X[order]: X (n, d) float32, dense or CSR, or what `prepare` returned for it.

        `signed_weights` (n,) are s_i y_i of every row of X, `order` (r,) is int64.
        """

    @abstractmethod
    def expansion(self) -> Expansion:
        """The decision function of the last step or, with `settings.average`, the average over the steps."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The arrays, not copied, from which `make_machine` makes an equal machine."""

    @abstractmethod
    def __len__(self) -> int: ...

    def totals(self) -> StepTotals:
        """Counts and sums since the first step."""
        steps, _, _, violations, mergers, removals, _ = (int(count) for count in self.counts)
        hinge, degradation = (float(value) for value in self.sums[HINGE_SUM:])
        return StepTotals(steps, violations, mergers, removals, hinge, degradation)

    def _scaled_coef(self) -> tuple[Vector, float]:
        """Coefficients of all slots and the intercept, of w instead of lam t w: of the last step, or the average."""
        steps, lam = int(self.counts[STEPS]), self.settings.lam
        intercept, intercept_sum, step_sizes, _, weights = (float(value) for value in self.sums[: WEIGHT_SUM + 1])
        if not self.settings.average or not steps:
            scale = lam * max(steps, 1)
            return self.coef[0] / scale, intercept / scale
        scale = lam * weights
        return (step_sizes * self.coef[0] - self.coef[1]) / scale, (step_sizes * intercept - intercept_sum) / scale


class MergingMachine(BudgetedMachine):
    """Support vectors that are merged, columns of one feature-major array. Rows are shifted by the first, if dense."""

    def __init__(self, settings: StepSettings, arrays: Any) -> None:
        self.settings = settings
        self.arrays = arrays  # a compiled.MergingState
        self.counts, self.sums, self.coef = arrays.counts, arrays.sums, arrays.slots[: COEF_SUM + 1]

    def begin(self, X: Rows, order: RowIndices) -> None:
        """Shift all rows by the first: distances stay as they are, and lose fewer digits. No CSR row with zeros."""
        if self.counts[STEPS] or not len(order) or isinstance(X, csr.CSRMatrix):
            return
        first = X[order[:1]]
        if not sp.issparse(first):
            self.arrays.shift[:] = first[0]
        elif first.nnz == first.shape[1]:
            self.arrays.shift[:] = first.toarray()[0]

    def prepare(self, X: Rows) -> Rows:
        """C-contiguous array, or checked `csr.CSRMatrix`."""
        if isinstance(X, csr.CSRMatrix):
            return X
        if sp.issparse(X):
            return make_csr(X)
        return np.ascontiguousarray(X)

    def run(self, X: Rows, order: RowIndices, signed_weights: Vector) -> None:
        """Steps with budget maintenance by merging."""
        self.begin(X, order)
        X = self.prepare(X)
        settings = self.settings
        grids = merge_table(settings.table_size).native
        gamma = settings.kernel.gamma  # type: ignore[attr-defined]
        inverse_lam = 1 / settings.lam
        self.arrays.run(X, order, signed_weights, grids, settings.merge, gamma, inverse_lam, settings.fit_intercept)

    def expansion(self) -> Expansion:
        """The used slots: those of positive coefficients, then the others."""
        coef, intercept = self._scaled_coef()
        used = self._used_slots()
        scales = self.arrays.slots[SCALE, used].astype(np.float32)
        points = (scales * self.arrays.points[:, used]).T + self.arrays.shift
        return Expansion(np.ascontiguousarray(points), coef[used], intercept)

    def _used_slots(self) -> NDArray[np.intp]:
        n_slots, n_front, n_back = self.coef.shape[1], int(self.counts[N_FRONT]), int(self.counts[N_BACK])
        return np.concatenate([np.arange(n_front), np.arange(n_slots - n_back, n_slots)])

    def state(self) -> dict[str, Any]:
        """The compiled machine's arrays by name."""
        return {name: getattr(self.arrays, name) for name in _MERGING_ARRAYS}

    def __len__(self) -> int:
        return int(self.counts[N_FRONT] + self.counts[N_BACK])


@dataclass(eq=False)
class SubsetMachine(BudgetedMachine):
    """Support vectors that are rows of the data (removal, projection): compiled steps on blocks of kernel values.

    Each support vector and each row of a block has a column of the arrays, in the order in which they were read. After
    every `TILE_STEPS` steps since the start the support vectors are moved to the first columns: so the order of sums
    over columns, and with it their last digit, does not depend on the chunks.
    """

    settings: StepSettings
    points: Rows
    columns: NDArray[np.intp]
    diagonal: Vector
    coef: Vector
    inverse: Vector
    counts: NDArray[np.int64]
    sums: Vector

    def begin(self, X: Rows, order: RowIndices) -> None:
        """Nothing is needed."""

    def run(self, X: Rows, order: RowIndices, signed_weights: Vector) -> None:
        """One step a row, by blocks whose kernel values are one tile; those of a row do not depend on its block."""
        while len(order):
            n_rows = TILE_STEPS - int(self.counts[STEPS]) % TILE_STEPS
            self._run_block(X[order[:n_rows]], signed_weights[order[:n_rows]])
            order = order[n_rows:]

    def _run_block(self, X: Rows, signed_weights: Vector) -> None:
        """One step on each row of X (r, d): fills their columns of all arrays, and drops those without a point."""
        if sp.issparse(X) != sp.issparse(self.points):
            X = sp.csr_array(X) if sp.issparse(self.points) else X.toarray()
        stacked = sp.vstack([self.points, X], "csr") if sp.issparse(X) else np.concatenate([self.points, X])
        first = self.settings.budget + int(self.counts[STEPS]) % TILE_STEPS
        columns = np.concatenate([self.columns, first + np.arange(len(signed_weights))])
        kernel, samples = self.settings.kernel, _as_order_free_samples(stacked, self.settings.kernel)
        tile = np.empty((len(signed_weights), len(columns)), np.float32)
        new = samples.take(slice(len(self.columns), len(columns)))
        kernel.fill(new, samples, tile)
        K = np.zeros((len(signed_weights), self.coef.shape[1]), np.float32)
        K[:, columns] = tile
        # A callable row by row: the last digit, which decides between equal coefficients, must not depend on the block.
        parts = [new.take(slice(i, i + 1)) for i in range(len(new))] if isinstance(kernel, CallableKernel) else [new]
        self.diagonal[first : first + len(signed_weights)] = np.concatenate([kernel.diagonal(part) for part in parts])
        settings = self.settings
        steps = compiled.removal_steps if settings.maintenance == "removal" else compiled.projection_steps
        machine = self.coef, self.inverse, self.counts, self.sums  # updated
        step_rule = settings.budget, 1 / settings.lam, settings.fit_intercept
        steps(K, first, self.diagonal, signed_weights, *machine, *step_rule)
        # a projection may leave a point with coefficient 0, but not with 0 on the diagonal of the inverse
        is_point = (self.inverse.diagonal() if self.inverse.size else self.coef[0])[columns] != 0
        self.points, self.columns = stacked[np.flatnonzero(is_point)], columns[is_point]
        if self.counts[STEPS] % TILE_STEPS == 0:
            self._move_to_first_columns()

    def _move_to_first_columns(self) -> None:
        """Move the points to columns 0, ..., n - 1 of all arrays."""
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
        """The points in the order in which they were read."""
        coef, intercept = self._scaled_coef()
        return Expansion(self.points, coef[self.columns], intercept)

    def state(self) -> dict[str, Any]:
        """All arrays by name."""
        return {name: value for name, value in vars(self).items() if name != "settings"}

    def __len__(self) -> int:
        return len(self.columns)


def _as_order_free_samples(X: Rows, kernel: Kernel) -> Samples:
    """Samples whose kernel values, from float64 inner products, are bit-identical in every block.

    So a stream gives one model, however it is cut into chunks.
    """
    if kernel.sample_form == "rows":
        return make_samples(X)
    rows = sp.csr_array(X, dtype=np.float64)
    return SparseSamples(CSRArray.of(occupied_columns(rows)[0]), dtype=np.dtype(np.float32))


def make_machine(settings: StepSettings, like: Any, state: Mapping[str, Any] | None = None) -> BudgetedMachine:
    """A machine without support vectors, or one with the arrays of a state, copied, of equal maintenance and budget.

    `like` (n, d), float32, dense or CSR, are rows of the kind that the steps will read.
    """
    if settings.maintenance == "merge":
        return _make_merging(settings, like, state)
    if state is not None:
        return SubsetMachine(settings, **_copied(state))
    width = settings.budget + TILE_STEPS
    side = width if settings.maintenance == "projection" else 0
    return SubsetMachine(
        settings,
        points=like[:0],
        columns=np.zeros(0, np.intp),
        diagonal=np.zeros(width),
        coef=np.zeros((2, width)),
        inverse=np.zeros((side, side)),
        counts=np.zeros(7, np.int64),
        sums=np.eye(7)[LAST_WEIGHT],  # zeros but for LAST_WEIGHT, which is 1
    )


def _make_merging(settings: StepSettings, like: Any, state: Mapping[str, Any] | None) -> MergingMachine:
    if not isinstance(settings.kernel, RBF):
        raise ValueError("maintenance='merge' needs the Gaussian kernel")
    arrays = compiled.MergingState(like.shape[1], settings.budget)
    if state is not None:
        for name in _MERGING_ARRAYS:
            getattr(arrays, name)[:] = state[name]
    return MergingMachine(settings, arrays)


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}


def projection_bytes(n_machines: int, budget: int, maintenance: str) -> int:
    """Bytes of the inverse kernel matrices of projection, one a machine, and of a copy of one; 0 without projection."""
    return 8 * (n_machines + 1) * (budget + TILE_STEPS) ** 2 if maintenance == "projection" else 0
