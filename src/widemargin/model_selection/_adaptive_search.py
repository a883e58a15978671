"""A search over kernels, gamma, C and epsilon whose cells are early machines: one for each cluster of all rows.

    divide the rows into clusters of about 2,000 rows, once
    coarse: score all kernels, each at gammas from the mean distance of rows to that of near rows, for some Cs;
        from the middle outwards, until scores fall steeply. If none beats a constant prediction: end
    climb: from the best cell to better neighbours, beyond the range as well
    relevance: scale the columns by the gradients of the best cell's machine; until it loses
    climb there, with other epsilons
    score the best cells on more clusters and folds; the best of these is chosen

Rows keep their density in a cluster: gamma and C are those of all rows, not of a sample. Scores on some of the clusters
are scores of the same early machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import t

from .._memory import MemoryPlan
from .._native import return_freed_memory
from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from .._types import ROUNDING, KernelParameter, Matrix, RowIndices, Rows, Vector
from ..algorithms.held_out import Fold
from ..algorithms.held_out_clusters import ClusteredHeldOut
from ..algorithms.relevance import scale_columns
from ..data.origin import FAR, origin_distance
from ..data.rows import SAMPLED_ROWS, spread_rows
from ..data.samples import Samples, make_samples
from ..estimators._kernel_machine import TrainingRows
from ..estimators._near_gamma import manhattan_distances, weighted_quantile
from ..estimators.relevance_scaler import POWERS, ROUGH_TOL
from ..kernels.functions import DISTANCE_KERNELS, Kernel
from ..kernels.kernel_operator import KernelOperator
from ..partition.divide import CLUSTER_ROWS, ClusteringSettings, divide
from ..solvers.dual.certificate import Limits
from ..solvers.dual.in_memory import SINGLE_SET_TOL, WORKING_SET_ROWS
from ..solvers.dual.problem import DualProblem
from ..solvers.results import History
from ._best_estimator import score_or_nan
from ._cv_problem import Classification
from ._grid_race import CONFIDENCE, Predictions, SearchData, samples_of

_LEAST_GAIN = 1e-3  # of a step of a climb / the best score less the worst
_HELD_OUT_ROWS = 3000, 20_000  # held-out rows that a score is of: of all cells (drawn rows: all), of the best ones
_FACTOR, _FINE_FACTOR, _EPSILON_FACTOR = 4.0, 2.0, 3.0  # between first gammas and Cs; later gammas; epsilons
_CLIMB_STEPS = 12  # gammas of a climb, at most
_TURNS = 4  # of relevance, at most
_LINEAR_C = 16.0  # first Cs of kernels of distances / those of a linear one, on rows of unit length
_STEEP = 0.25  # fall from one gamma to the next / the best score less the worst: beyond it none is looked at


class Loss(NamedTuple):
    """What a dual is made of beside C: the epsilon of a regression; weights of the classes, None: the problem's own."""

    epsilon: float = 0.0
    class_weight: str | None = None


class Axes(NamedTuple):
    """What may be tried: kernels, values of gamma, C and epsilon (None: any); the Cs and losses of first cells."""

    kernels: Sequence[Any]
    gammas: Vector | None
    Cs: Vector | None
    epsilons: Vector | None
    first_costs: Vector
    first_losses: Sequence[Loss]


class Cell(NamedTuple):
    """A scaling of the columns, a kernel, and parameters."""

    scaling: int
    kernel: KernelParameter
    gamma: float
    loss: Loss
    C: float

    def parameters(self, names: Sequence[str]) -> dict[str, Any]:
        """The kernel, and the parameters of these names."""
        values = {"C": self.C, "gamma": self.gamma, **self.loss._asdict()}
        return {"kernel": self.kernel, **{name: values[name] for name in names}}

    def same_kind(self, other: Cell) -> bool:
        """Whether the cells differ in gamma, epsilon and C alone."""
        own, others = (c._replace(gamma=0.0, C=0.0, loss=c.loss._replace(epsilon=0.0)) for c in (self, other))
        return own == others


class Level(NamedTuple):
    """What scores are computed on: folds and clusters."""

    folds: tuple[int, ...]
    n_clusters: int
    n_rows: float  # held-out rows


@dataclass
class Scaling:
    """Factors of the columns in each fold: the factors of `parent`, times those learned from the machine of `cell`."""

    parent: int
    cell: Cell | None
    factors: dict[int, Vector]  # (d,) of each fold


Costs = Mapping[Loss, Sequence[float]]  # of each loss: ascending Cs


class Part(NamedTuple):
    """Rows that cells are scored on."""

    data: SearchData
    rows: TrainingRows


# of a part, the columns' factors (d,) so far, training rows and a cell: factors (d,) beside these
Learn = Callable[[Part, Vector, RowIndices, Cell], Vector]


class AdaptiveSearch:
    """Scores of cells, as far as they were looked at.

    Parameters
    ----------
    parts : sequence of Part
        All rows; or a sample of them, for all cells, and more or all of them, for the best cells.
    axes : Axes
    make_kernel : callable
        The kernel of a name and a gamma.
    learn : callable or None
        The relevance of the columns; None: they stay as they are.
    limits : Limits
        Of the duals.
    memory : MemoryPlan
    progress : Progress
    team : ThreadTeam
    rng : numpy.random.Generator

    Attributes
    ----------
    scores : dict
        Of each cell, by level: the scores (n_folds of the level,).
    predictions : dict
        Of the held-out rows of a fold, by cell and fold: of the best cells of each scaling and level.
    scalings : list of Scaling
    unseen : dict
        Of each kernel, the first gammas that a stopped search has not looked at.
    history : History
    """

    def __init__(
        self,
        parts: Sequence[Part],
        axes: Axes,
        make_kernel: Callable[[Any, float], Kernel],
        learn: Learn | None,
        limits: Limits,
        memory: MemoryPlan,
        progress: Progress,
        team: ThreadTeam,
        rng: np.random.Generator,
    ) -> None:
        self.parts = parts
        self.axes = axes
        self.make_kernel, self.learn = make_kernel, learn
        self.progress, self.team, self.rng = progress, team, rng
        self.scores: dict[Cell, dict[Level, Vector]] = {}
        self.predictions: dict[tuple[Any, int], Predictions] = {}
        self.scalings = [Scaling(0, None, {})]
        self.unseen: dict[Any, list[float]] = {}
        self.history = History()
        self._limits, self._memory = limits, memory
        self._take(parts[0])

    def _take(self, part: Part) -> None:
        """Score cells on these rows from now on: in clusters, but for rows that were drawn."""
        self.part, self.data, self.X = part, part.data, part.rows.X
        data, n = part.data, len(part.data.rows)
        self.clusters = self._divide() if part is self.parts[0] else [np.arange(n)]
        tol = SINGLE_SET_TOL if n <= WORKING_SET_ROWS else max(self._limits.tol, ROUGH_TOL)
        limits = Limits(tol, np.inf, self._limits.max_iter)
        copy_bytes = n * data.samples.row_bytes
        n_copies = min(len(data.splits) + 2, max(2, self._memory["scaled rows"] // copy_bytes))
        self._most_copies = n_copies - 1  # the last one in two precisions
        memory = self._memory.less(data.samples.nbytes + n_copies * copy_bytes)
        self.held_out = ClusteredHeldOut(
            self.clusters, data.problem.machines, n, limits, memory, self.progress, self.team
        )
        self._samples: dict[tuple[int, int], Samples] = {}
        self._fold_scores: dict[tuple[Cell, int], dict[int, float]] = {}  # of a cell on so many clusters, by fold
        self._duals: dict[tuple[int, Loss], list[DualProblem]] = {}  # of a fold and a loss, of few rows

    # --- the search ---

    def recall(self, history: Mapping[str, Vector]) -> None:
        """Take the scores in the history of an earlier search that was stopped, but for those of scaled columns.

        The search goes the same way once more, at no cost: `_score` finds them.
        """
        sizes = np.cumsum([len(cluster) for cluster in self.clusters]).tolist()
        for row in (dict(zip(history, values, strict=True)) for values in zip(*history.values(), strict=True)):
            if not row["scaling"] and row["n_rows"] in sizes:
                kernel = self.axes.kernels[int(row["kernel"])]
                loss = Loss(float(row["epsilon"]), "balanced" if row["balanced"] else None)
                cell = Cell(0, kernel, float(row["gamma"]), loss, float(row["C"]))
                n_clusters = sizes.index(int(row["n_rows"])) + 1
                self._fold_scores.setdefault((cell, n_clusters), {})[int(row["fold"])] = float(row["score"])
                self.history.record(**row)

    def run(self) -> None:
        """Score cells until none is better, or the search is stopped."""
        with blas_limit(1):
            screen = self._level(_HELD_OUT_ROWS[0] if len(self.parts) == 1 else math.inf)
            self._score_coarsely(screen)
            best = self._climb(screen)
            while best is not None and self._is_worth_a_turn(best):
                better = self._turn(best, screen)
                if better is None or self._is_above(self._mean(best, screen), self._mean(better, screen)):
                    break
                best = better
            if best is not None:
                best = self._climb(screen, best.scaling, with_epsilons=True) or best
                if len(self.parts) > 1:
                    self._take(self.parts[1])
                self._score_finalists(best, screen, self._level(_HELD_OUT_ROWS[1]))

    def _beats_a_constant(self, best: Cell, level: Level) -> bool:
        """Whether a cell's score exceeds a constant prediction's by over a standard error, over the folds.

        Where it does not, scores are noise, and a climb would follow it: to any C, where rows come in an order.
        """
        gains = list[float]()
        rows = np.concatenate(self.clusters[: level.n_clusters])
        for k, score in zip(level.folds, self.scores[best][level].tolist(), strict=True):
            test = self.data.splits[k].test
            test = test[np.isin(test, rows)]
            values = self.data.problem.constant_values(len(test), self.data.weights)
            constant = self.data.problem.held_out_estimator(values)
            gains.append(score - score_or_nan(self.data.score(self.data.rows[test]), constant))
        return not np.mean(gains) <= _standard_error(np.array(gains))  # NaN: a scorer that does not take constants

    def best(self) -> tuple[Cell, float] | None:
        """The best cell on the most rows, and its mean score; None before any.

        Columns are scaled where that gains more than the standard error of the gain over the folds.
        """
        levels = sorted({level for known in self.scores.values() for level in known}, key=lambda level: level.n_rows)
        if not levels:
            return None
        level, chosen = levels[-1], None
        for scaling in range(len(self.scalings)):
            cell = self._best(level, scaling)
            if cell is not None and chosen is not None:
                gains = self.scores[cell][level] - self.scores[chosen][level]
                cell = cell if gains.mean() > _standard_error(gains) else chosen
            chosen = cell or chosen
        assert chosen is not None
        return chosen, self._mean(chosen, level)

    def factors(self, scaling: int) -> Vector | None:
        """The factors of the columns (d,) of a scaling: the geometric mean over the folds that were looked at."""
        if not scaling:
            return None
        logarithms = [np.log(f) for f in self.scalings[scaling].factors.values()]
        return np.asarray(np.exp(np.mean(logarithms, axis=0)))

    def _score_coarsely(self, level: Level) -> None:
        gammas = {kernel: self._coarse_gammas(kernel) for kernel in self.axes.kernels}
        self.unseen = {kernel: list(values) for kernel, values in gammas.items()}
        jobs = [
            (abs(2 * g + 1 - len(values)) / len(values), kernel, g)
            for kernel, values in gammas.items()
            for g in range(len(values))
        ]
        self.progress.stage(f"{len(jobs)} kernels and gammas, {len(self.data.rows):,} rows", len(jobs))
        for _, kernel, g in sorted(jobs, key=lambda job: job[0]):  # the middle first
            if not self.progress.go_on(round=float(len(self.history))):
                return
            values, outwards = gammas[kernel], slice(g, None) if 2 * g + 1 > len(gammas[kernel]) else slice(g + 1)
            if values[g] in self.unseen[kernel]:
                done = values[outwards]
                if self.axes.gammas is not None or not self._falls_steeply(kernel, values, g, level):
                    self._score(0, kernel, values[g], self._first_costs(kernel), level)
                    done = [values[g]]
                if not self.progress.stopped_by:
                    self.unseen[kernel] = [gamma for gamma in self.unseen[kernel] if gamma not in done]
            self.progress.advance()

    def _first_costs(self, kernel: KernelParameter) -> Costs:
        """The Cs of first cells: of a linear kernel, as if its rows had a mean square distance of 1 to their mean."""
        Cs = self.axes.first_costs
        if self.axes.Cs is None and kernel == "linear":
            rows = spread_rows(len(self.data.rows), SAMPLED_ROWS)
            Cs = Cs / (_LINEAR_C * _variance(self.X[rows]) or 1.0)
        return dict.fromkeys(self.axes.first_losses, Cs.tolist())

    def _falls_steeply(self, kernel: KernelParameter, gammas: Sequence[float], g: int, level: Level) -> bool:
        """Whether the best score fell steeply at the last step from the middle gammas towards the g-th."""
        step = 1 if 2 * g + 1 < len(gammas) else -1  # to the middle
        last, before = (
            [self._mean(cell, level) for cell in self.scores if (cell.kernel, cell.gamma) == (kernel, gamma)]
            for gamma in (gammas[k] if 0 <= k < len(gammas) else np.nan for k in (g + step, g + 2 * step))
        )
        known = [self._mean(cell, level) for cell in self.scores]
        return bool(last and before and max(before) - max(last) > _STEEP * (max(known) - min(known)))

    def _climb(self, level: Level, scaling: int = 0, *, with_epsilons: bool = False) -> Cell | None:
        """Go from the best cell of a scaling to its best neighbour until none is better; not where scores are noise."""
        self.progress.stage("climb")
        best, seen = self._best(level, scaling), 0
        if best is None or not self._beats_a_constant(best, level):
            return best
        while seen < _CLIMB_STEPS and self.progress.go_on(round=float(len(self.history))):
            for gamma, costs in self._neighbours(best, with_epsilons=with_epsilons).items():
                seen += self._score(scaling, best.kernel, gamma, costs, level)
            better = self._best(level, scaling)
            if better is None or not self._is_worth_a_step(better, best, level):
                return better
            best = better
        return best

    def _is_worth_a_step(self, better: Cell, best: Cell, level: Level) -> bool:
        worst = min(self._mean(cell, level) for cell, known in self.scores.items() if level in known)
        mean = self._mean(best, level)
        return self._is_above(self._mean(better, level) - _LEAST_GAIN * (mean - worst), mean)

    def _is_worth_a_turn(self, best: Cell) -> bool:
        has_relevance = self.learn is not None and best.kernel in DISTANCE_KERNELS and bool(self.X.shape[1] > 1)
        return has_relevance and len(self.scalings) <= _TURNS and self.progress.go_on()

    def _turn(self, best: Cell, level: Level) -> Cell | None:
        """Scale the columns by the gradients of the best cell's machine; the best cell there, None if stopped.

        The first scaling changes most: there is a climb in it.
        """
        self.progress.stage("relevance of the columns")
        self.scalings.append(Scaling(best.scaling, best, {}))
        scaling = len(self.scalings) - 1
        self._samples.clear()
        self._score(scaling, best.kernel, best.gamma, {best.loss: [best.C]}, level)
        return self._climb(level, scaling) if scaling == 1 else self._best(level, scaling)

    def _score_finalists(self, best: Cell, screen: Level, final: Level) -> None:
        """Score on more rows the best cells of a scaling, and the best one without any."""
        self.progress.stage("the best on more rows")
        if final.n_rows <= screen.n_rows:
            return
        finalists = self._finalists(best, screen)
        plain = self._best(screen, 0)
        if best.scaling and plain is not None:
            finalists.append(plain)
        for key in dict.fromkeys(cell[:3] for cell in finalists):
            if not self.progress.go_on(round=float(len(self.history))):
                return
            costs: dict[Loss, list[float]] = {}
            for cell in sorted((cell for cell in finalists if cell[:3] == key), key=lambda cell: cell.C):
                costs.setdefault(cell.loss, []).append(cell.C)
            self._score(*key, costs, final)

    def _finalists(self, best: Cell, level: Level) -> list[Cell]:
        """The cells to score on more rows: the three best ones of a scaling.

        On drawn rows four, each kernel's best one first, as more rows may change the order of the kernels; but none
        that is below the best one with the confidence of a race.
        """
        cells = [cell for cell in self.scores if cell.scaling == best.scaling and level in self.scores[cell]]
        cells.sort(key=lambda cell: -self._mean(cell, level))
        if len(self.parts) == 1:
            return cells[:3]
        cells = [cell for cell in cells if not self._is_below(cell, best, level)]
        heads = sorted(cells, key=lambda cell: any(c.kernel == cell.kernel for c in cells[: cells.index(cell)]))
        return heads[:4]

    def _is_below(self, cell: Cell, best: Cell, level: Level) -> bool:
        """Whether a cell's score is below that of the best one, with the confidence of a race."""
        gains = self.scores[cell][level] - self.scores[best][level]
        return len(gains) > 1 and bool(gains.mean() + t.ppf(CONFIDENCE, len(gains) - 1) * _standard_error(gains) < 0)

    # --- neighbours ---

    def _neighbours(self, cell: Cell, *, with_epsilons: bool) -> dict[float, Costs]:
        """The gammas around a cell, its own first, and the epsilons and Cs to try there.

        The best C falls as gamma rises.
        """
        gammas = self._next(self.axes.gammas, cell.gamma, _FINE_FACTOR) if cell.kernel != "linear" else []
        Cs = [C for C in self._next(self.axes.Cs, cell.C, _FACTOR) if 1e-6 <= C <= 1e6]
        epsilons = self._next(self.axes.epsilons, cell.loss.epsilon, _EPSILON_FACTOR) if with_epsilons else []
        if self.axes.epsilons is None:
            epsilons = [epsilon for epsilon in epsilons if 0.0 < epsilon < 1.0]
        losses = [cell.loss._replace(epsilon=epsilon) for epsilon in epsilons]
        around: dict[float, Costs] = {
            cell.gamma: {cell.loss: sorted([cell.C, *Cs]), **{loss: [cell.C] for loss in losses}}
        }
        for gamma in gammas:
            beside = [C for C in Cs if (C < cell.C) == (gamma > cell.gamma)]
            around[gamma] = {cell.loss: sorted([cell.C, *beside])}
        return around

    @staticmethod
    def _next(allowed: Vector | None, value: float, factor: float) -> list[float]:
        """The neighbours of a value: among the allowed ones, or a factor away."""
        if allowed is None:
            return [value / factor, value * factor]
        place = int(np.argmin(np.abs(allowed - value)))
        return [float(allowed[k]) for k in (place - 1, place + 1) if 0 <= k < len(allowed)]

    def _coarse_gammas(self, kernel: KernelParameter) -> list[float]:
        """From a quarter of 1 / mean distance to 1 / distance of near rows, each four times the last."""
        if kernel == "linear":
            return [1.0]
        if self.axes.gammas is not None:
            return [float(gamma) for gamma in self.axes.gammas]
        mean, near = self._distances(POWERS.get(kernel, 2))
        low = 0.25 / mean
        n_steps = int(np.ceil(np.log(max(4.0, 1.0 / (near * low))) / np.log(_FACTOR)))
        return [low * _FACTOR**k for k in range(min(n_steps, 6) + 1)]

    def _distances(self, power: int) -> tuple[float, float]:
        """The mean distance of rows, and the median distance of a row to the nearest other row of its cluster.

        Rows count by their weights.
        """
        n = len(self.data.rows)
        rows = np.sort(self.rng.choice(n, min(SAMPLED_ROWS, n), replace=False))
        weights, sample = self.data.weights[rows], self.X[rows]
        mean = float(weights @ _distances(sample, sample, power) @ weights) / float(weights.sum() ** 2)
        cluster_of = np.empty(n, np.intp)
        for c, cluster in enumerate(self.clusters):
            cluster_of[cluster] = c
        near = np.zeros(len(rows))
        for c in np.unique(cluster_of[rows]):
            mine, cluster = np.flatnonzero(cluster_of[rows] == c), self.clusters[c]
            others = cluster[spread_rows(len(cluster), 2 * CLUSTER_ROWS)]  # of rows that are equal there may be many
            distances = _distances(sample[mine], self.X[others], power)
            is_other = distances > ROUNDING * distances.max()
            near[mine] = np.where(is_other, distances, np.inf).min(axis=1)
        known = np.isfinite(near)
        mean = mean if mean > 0 else 1.0
        return mean, weighted_quantile(near[known], weights[known], 0.5) if known.any() else mean

    # --- scores ---

    def _level(self, n_rows: float) -> Level:
        """As many folds, and of these as many clusters, as have at least `n_rows` held-out rows."""
        tests = [len(split.test) for split in self.data.splits]
        folds = 1
        while folds < len(tests) and sum(tests[:folds]) < n_rows:
            folds += 1
        share = min(1.0, n_rows / max(1, sum(tests[:folds])))
        n_clusters = max(1, int(np.ceil(share * len(self.clusters))))
        while n_clusters < len(self.clusters) and not self._have_rows(range(folds), n_clusters):
            n_clusters += 1
        return Level(tuple(range(folds)), n_clusters, sum(tests[:folds]) * n_clusters / len(self.clusters))

    def _have_rows(self, folds: Iterable[int], n_clusters: int) -> bool:
        """Whether each fold has two held-out rows and two classes in the first clusters, if it has so many at all."""
        rows, find_fault = np.concatenate(self.clusters[:n_clusters]), self.data.problem.find_fault
        tests = [_mask(self.data.splits[k].test, len(self.data.rows)) for k in folds]
        parts = [test * _mask(rows, len(test)) for test in tests]
        return all(
            part.sum() >= min(2, test.sum()) and (find_fault(part) is None or find_fault(test) is not None)
            for part, test in zip(parts, tests, strict=True)
        )

    def _mean(self, cell: Cell, level: Level) -> float:
        return float(self.scores[cell][level].mean())

    def _best(self, level: Level, scaling: int) -> Cell | None:
        """The cell of a scaling of the largest mean; of equal ones (to six digits) of least C, then of least gamma."""
        cells = [cell for cell, known in self.scores.items() if level in known and cell.scaling == scaling]
        largest = max((self._mean(cell, level) for cell in cells), default=0.0)
        equal = [cell for cell in cells if not self._is_above(largest, self._mean(cell, level))]
        return min(equal, key=lambda cell: (cell.C, cell.gamma), default=None)

    @staticmethod
    def _is_above(score: float, other: float) -> bool:
        """Whether a score is better by more than one in a million."""
        return score > other and not math.isclose(score, other, rel_tol=1e-6)

    def _score(self, scaling: int, kernel: KernelParameter, gamma: float, costs: Costs, level: Level) -> bool:
        """Score those cells of a scaling, kernel and gamma that are not known; whether there are any.

        Scores in other folds, on as many clusters, are kept.
        """
        unknown = {
            loss: [C for C in Cs if level not in self.scores.get(Cell(scaling, kernel, gamma, loss, C), {})]
            for loss, Cs in costs.items()
        }
        cells = [Cell(scaling, kernel, gamma, loss, C) for loss, Cs in unknown.items() for C in Cs]
        if not cells or not (np.isfinite(gamma) and gamma > 0):
            return False
        known = [self._fold_scores.setdefault((cell, level.n_clusters), {}) for cell in cells]
        folds = [k for k in level.folds if not all(k in scores for scores in known)]
        made, losses = self.make_kernel(kernel, gamma), [loss for loss in unknown if unknown[loss]]
        for group in [[k] for k in folds] if scaling else [folds]:  # a fold has its own factors
            if not group or not self.progress.go_on():
                break
            paths = [(k, loss) for k in group for loss in losses]
            duals = [self._fold(k, loss, unknown[loss]) for k, loss in paths]
            samples = self._scaled_samples(scaling, group[0], made)
            values = self.held_out.held_out_values(made, samples, duals, range(level.n_clusters))
            del samples  # those of the next fold follow them
            for (k, loss), held_out in zip(paths, values, strict=True):
                named = [{"gamma": gamma, "epsilon": loss.epsilon, "C": C} for C in unknown[loss]]
                for c, score, predicted in self.data.score_cells(k, held_out.rows, held_out.values, named):
                    cell = Cell(scaling, kernel, gamma, loss, named[c]["C"])
                    self.predictions[cell, k] = predicted
                    self._record(cell, level.n_clusters, k, score)
        for cell, scores in zip(cells, known, strict=True):
            if all(k in scores for k in level.folds):
                self.scores.setdefault(cell, {})[level] = np.array([scores[k] for k in level.folds])
        self._drop_predictions(scaling, level)
        return True

    def _drop_predictions(self, scaling: int, level: Level) -> None:
        """Drop those of the cells of a scaling that are not its best at this level."""
        own = {cell for cell, _ in self.predictions if cell.scaling == scaling and level in self.scores.get(cell, {})}
        best = max((self._mean(cell, level) for cell in own), default=0.0)
        lost = {cell for cell in own if self._is_above(best, self._mean(cell, level))}
        self.predictions = {key: one for key, one in self.predictions.items() if key[0] not in lost}

    def _record(self, cell: Cell, n_clusters: int, k: int, score: float) -> None:
        self._fold_scores[cell, n_clusters][k] = score
        self.history.record(
            time=self.progress.elapsed,
            n_rows=sum(map(len, self.clusters[:n_clusters])),
            fold=k,
            scaling=cell.scaling,
            kernel=self.axes.kernels.index(cell.kernel),
            gamma=cell.gamma,
            epsilon=cell.loss.epsilon,
            balanced=cell.loss.class_weight == "balanced",
            C=cell.C,
            score=score,
        )

    def _fold(self, k: int, loss: Loss, Cs: Sequence[float]) -> Fold:
        problems = self._duals.get((k, loss))
        if problems is None:
            problem = self.data.problem
            if isinstance(problem, Classification) and loss.class_weight is not None:
                problem = replace(problem, class_weight=loss.class_weight)
            problems = problem.duals(self.data.training_weights(k), loss.epsilon)
        if len(self.clusters) == 1:
            self._duals[k, loss] = problems
        return Fold(self.data.splits[k].test, problems, Cs)

    # --- rows ---

    def _divide(self) -> list[RowIndices]:
        """Clusters of the rows, in a random order."""
        n = len(self.data.rows)
        if n <= 2 * CLUSTER_ROWS:
            return [np.arange(n)]
        k = int(np.ceil(n / CLUSTER_ROWS))
        operator = KernelOperator(self.make_kernel(self.axes.kernels[0], 1.0), self.data.samples, self.team)
        division = divide(operator, ClusteringSettings(k, "input"), self.rng)
        clusters = [np.flatnonzero(division.labels == c) for c in range(division.router.n_clusters)]
        clusters = [cluster for cluster in clusters if len(cluster)]
        return [clusters[c] for c in self.rng.permutation(len(clusters))]

    def _scaled_samples(self, scaling: int, fold: int, kernel: Kernel) -> Samples:
        """float32 samples of the rows, their columns scaled as the fold's training rows say."""
        key = (scaling, fold) if scaling else (0, 0)
        if key not in self._samples:
            if len(self._samples) == self._most_copies:
                self._samples.clear()
            base = self.data.samples
            if scaling:
                form = "distances" if base.shift is None else "rows"  # which are centred as they are stored
                base = make_samples(scale_columns(base.stored(), self._factors(scaling, fold)), form)
            self._samples[key] = samples_of(kernel, base)
        return self._samples[key]

    def _factors(self, scaling: int, fold: int) -> Vector:
        """The factors of the columns; what the fold's training rows say is learned when it is first asked for."""
        if not scaling:
            return np.ones(self.X.shape[1])
        node = self.scalings[scaling]
        if fold not in node.factors:
            assert self.learn is not None
            assert node.cell is not None
            self._samples.clear()
            return_freed_memory()  # most of what a search takes is taken by this machine
            own = self._factors(node.parent, fold)
            rows = np.unique(self.data.splits[fold].train)
            node.factors[fold] = own * self.learn(self.part, own, rows, node.cell)
        return node.factors[fold]


def _standard_error(gains: Vector) -> float:
    """Of the mean of gains (n_folds,); 0 of a single one."""
    return float(gains.std(ddof=1) / len(gains) ** 0.5) if len(gains) > 1 else 0.0


def _mask(rows: RowIndices, n: int) -> Vector:
    """1 at these of n rows, 0 elsewhere."""
    mask = np.zeros(n)
    mask[rows] = 1.0
    return mask


def _distances(A: Rows, B: Rows, power: int) -> Matrix:
    """Sums over the columns of |a_j - b_j| ** power, 1 or 2, for all pairs of rows."""
    from sklearn.metrics.pairwise import euclidean_distances  # slow to load

    if sp.issparse(B) and origin_distance(B) > FAR:  # inner products lose the digits of distances
        A, B = A.toarray(), B.toarray()
    if not sp.issparse(B):
        return np.asarray(cdist(A, B, {1: "cityblock", 2: "sqeuclidean"}[power]))
    return manhattan_distances(A, B) if power == 1 else np.asarray(euclidean_distances(A, B, squared=True))


def _variance(rows: Rows) -> float:
    """The sum of the columns' variances."""
    from sklearn.utils.sparsefuncs import mean_variance_axis

    rows = rows.astype(np.float64)
    variances = mean_variance_axis(rows, axis=0)[1] if sp.issparse(rows) else rows.var(axis=0)
    return float(variances.sum())
