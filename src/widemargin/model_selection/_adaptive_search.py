"""A search over kernels, gamma, C and epsilon whose cells are early machines: one for each cluster of all rows.

    divide the rows into clusters of at most 2,000 rows, once
    coarse: score all kernels, each at gammas from the mean distance of rows to that of near rows, for some Cs
    climb: from the best cell to better neighbours, beyond the range as well
    relevance: scale the columns by the gradients of the best cell's machine, and climb there; as long as it gains
    score the best cells on more clusters and folds; the best of these is chosen

Rows keep their density in a cluster: gamma and C are those of all rows, not of a sample. Scores on some of the clusters
are scores of the same early machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from .._types import Matrix, RowIndices, Vector
from ..algorithms.held_out import Fold
from ..algorithms.held_out_clusters import ClusteredHeldOut, ClusterValues
from ..algorithms.relevance import scale_columns
from ..data.samples import Samples, converted, make_samples
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..partition.divide import ClusteringSettings, divide
from ..solvers.dual.certificate import Limits
from ..solvers.dual.in_memory import SINGLE_SET_TOL, WORKING_SET_ROWS
from ..solvers.dual.problem import DualProblem
from ..solvers.results import History
from ._search import SearchData, samples_of

CLUSTER_ROWS = 2000  # of a cluster, in the mean, at most
_CELL_TOL = 1e-2  # of the duals of cells: held-out values need no more
_LEAST_GAIN = 1e-3  # of a step of a climb / the best score less the worst
_SCREEN_ROWS, _FINAL_ROWS = 3000, 20_000  # held-out rows that a score is of: of all cells, of the best ones
_FINALISTS = 3  # of each scaling of the columns
_COARSE_FACTOR, _FINE_FACTOR = 4.0, 2.0  # between neighbouring gammas
_C_FACTOR, _EPSILON_FACTOR = 4.0, 3.0  # between neighbouring Cs, epsilons
_CLIMB_STEPS = 12  # gammas of a climb, at most
_TURNS = 4  # of relevance, at most
_NEAR_ROWS = 512  # whose nearest rows are looked for
_SMALLEST, _LARGEST = 1e-6, 1e6  # of C


class Axes(NamedTuple):
    """What may be tried: kernels, and the values of gamma, C and epsilon; None: any."""

    kernels: Sequence[Any]
    gammas: Vector | None
    Cs: Vector | None
    epsilons: Vector | None


class Cell(NamedTuple):
    """A scaling of the columns, a kernel, and parameters."""

    scaling: int
    kernel: Any
    gamma: float
    epsilon: float
    C: float


class Level(NamedTuple):
    """What scores are computed on: folds and clusters."""

    folds: tuple[int, ...]
    n_clusters: int


@dataclass
class Scaling:
    """Factors of the columns: those of `parent`, times what the machine of `cell` makes of them in each fold."""

    parent: int
    cell: Cell | None
    factors: dict[int, Vector]  # (d,) of each fold


Learn = Callable[[Any, RowIndices, Cell], Vector]  # of columns X, training rows, a cell: factors (d,)


class AdaptiveSearch:
    """Scores of cells, as far as they were looked at.

    Parameters
    ----------
    data : SearchData
    X : ndarray or CSR array of shape (n, d)
        The rows of `data`.
    axes : Axes
    first_costs, first_epsilons : ndarray
        Of the first cells.
    make_kernel : callable
        The kernel of a name and a gamma.
    learn : callable or None
        The relevance of the columns; None: they stay as they are.
    limits : Limits
    memory_budget : int
    progress : Progress
    team : ThreadTeam
    rng : Generator

    Attributes
    ----------
    scores : dict
        Of each cell, by level: the scores (n_folds of the level,).
    scalings : list of Scaling
    history : History
    """

    def __init__(
        self,
        data: SearchData,
        X: Any,
        axes: Axes,
        first_costs: Vector,
        first_epsilons: Vector,
        make_kernel: Callable[[Any, float], Kernel],
        learn: Learn | None,
        limits: Limits,
        memory_budget: int,
        progress: Progress,
        team: ThreadTeam,
        rng: np.random.Generator,
    ) -> None:
        self.data = data
        self.X = X
        self.axes = axes
        self.first_costs = first_costs
        self.first_epsilons = first_epsilons
        self.make_kernel = make_kernel
        self.learn = learn
        tol = SINGLE_SET_TOL if len(data.rows) <= WORKING_SET_ROWS else max(limits.tol, _CELL_TOL)
        self.limits = Limits(tol, np.inf, limits.max_iter)
        self.memory_budget = memory_budget
        self.progress = progress
        self.team = team
        self.rng = rng
        self.scores: dict[Cell, dict[Level, Vector]] = {}
        self.scalings = [Scaling(0, None, {})]
        self.history = History()
        self.clusters = self._divide()
        self.held_out = ClusteredHeldOut(
            self.clusters, data.problem.machines, len(data.rows), self.limits, memory_budget, progress, team
        )
        self._samples: dict[tuple[int, int], Samples] = {}
        self._duals: dict[tuple[int, float], list[DualProblem]] = {}  # of a fold and an epsilon, of few rows

    # --- the search ---

    def run(self) -> None:
        """Score cells until none is better, or the search is stopped."""
        with blas_limit(1):
            screen, final = self._level(_SCREEN_ROWS), self._level(_FINAL_ROWS)
            self._score_coarsely(screen)
            best = self._climb(screen)
            while best is not None and self._is_worth_a_turn(best) and self._turn(best, screen):
                better = self._best(screen, [len(self.scalings) - 1])
                if better is None or not self._is_above(self._mean(better, screen), self._mean(best, screen)):
                    break
                best = better
            self._score_finalists(screen, final)

    def best(self) -> tuple[Cell, float] | None:
        """The best cell on the most rows, and its mean score; None before any.

        Columns are scaled where that gains more than the standard error of the gain over the folds.
        """
        levels = sorted({level for known in self.scores.values() for level in known}, key=self._n_rows)
        if not levels:
            return None
        level, chosen = levels[-1], None
        for scaling in range(len(self.scalings)):
            cell = self._best(level, [scaling])
            if cell is not None and (chosen is None or self._gains(cell, chosen, level)):
                chosen = cell
        assert chosen is not None
        return chosen, self._mean(chosen, level)

    def _gains(self, cell: Cell, other: Cell, level: Level) -> bool:
        gains = self.scores[cell][level] - self.scores[other][level]
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        return bool(gains.mean() > error)

    def factors(self, scaling: int) -> Vector | None:
        """The factors of the columns (d,) of a scaling: the geometric mean over the folds that were looked at."""
        if not scaling:
            return None
        logarithms = [np.log(f) for f in self.scalings[scaling].factors.values()]
        return np.asarray(np.exp(np.mean(logarithms, axis=0)))

    def _score_coarsely(self, level: Level) -> None:
        gammas = {kernel: self._coarse_gammas(kernel) for kernel in self.axes.kernels}
        jobs = [
            (abs(2 * g + 1 - len(values)) / len(values), kernel, gamma)
            for kernel, values in gammas.items()
            for g, gamma in enumerate(values)
        ]
        self.progress.stage(f"{len(jobs)} kernels and gammas, {len(self.data.rows):,} rows", len(jobs))
        for _, kernel, gamma in sorted(jobs, key=lambda job: job[0]):  # the middle first
            if not self.progress.go_on(round=float(len(self.history))):
                return
            self._score(0, kernel, gamma, self.first_epsilons, self.first_costs, level)
            self.progress.advance()

    def _climb(self, level: Level, scaling: int = 0) -> Cell | None:
        """Go from the best cell of a scaling to its best neighbour until none is better."""
        self.progress.stage("climb")
        best, seen = self._best(level, [scaling]), 0
        while best is not None and seen < _CLIMB_STEPS and self.progress.go_on(round=float(len(self.history))):
            for kernel, gamma, epsilon in self._neighbours(best):
                known = [
                    self.scores.get(best._replace(gamma=gamma, epsilon=epsilon, C=C), {}) for C in self._costs(best)
                ]
                if not all(level in scores for scores in known) and self.progress.go_on():
                    self._score(scaling, kernel, gamma, np.array([epsilon]), self._costs(best), level)
                    seen += 1
            better = self._best(level, [scaling])
            if better is None or not self._is_worth_a_step(better, best, level):
                return better
            best = better
        return best

    def _is_worth_a_step(self, better: Cell, best: Cell, level: Level) -> bool:
        worst = min(self._mean(cell, level) for cell, known in self.scores.items() if level in known)
        mean = self._mean(best, level)
        return self._is_above(self._mean(better, level) - _LEAST_GAIN * (mean - worst), mean)

    def _is_worth_a_turn(self, best: Cell) -> bool:
        has_relevance = self.learn is not None and best.kernel in ("rbf", "laplacian") and bool(self.X.shape[1] > 1)
        return has_relevance and len(self.scalings) <= _TURNS and self.progress.go_on()

    def _turn(self, best: Cell, level: Level) -> bool:
        """Scale the columns by the gradients of the best cell's machine, and look around it; False if stopped."""
        self.progress.stage("relevance of the columns")
        self.scalings.append(Scaling(best.scaling, best, {}))
        scaling = len(self.scalings) - 1
        self._samples.clear()
        self._score(scaling, best.kernel, best.gamma, np.array([best.epsilon]), self._costs(best), level)
        return self._climb(level, scaling) is not None

    def _score_finalists(self, screen: Level, final: Level) -> None:
        self.progress.stage("the best on more rows")
        if self._n_rows(final) <= self._n_rows(screen):
            return
        finalists: list[Cell] = []
        for scaling in range(len(self.scalings)):
            cells = [cell for cell in self.scores if cell.scaling == scaling and screen in self.scores[cell]]
            finalists += sorted(cells, key=lambda cell: -self._mean(cell, screen))[:_FINALISTS]
        for cell in sorted(finalists, key=lambda cell: -self._mean(cell, screen))[: 2 * _FINALISTS]:
            if not self.progress.go_on(round=float(len(self.history))):
                return
            self._score(cell.scaling, cell.kernel, cell.gamma, np.array([cell.epsilon]), np.array([cell.C]), final)

    # --- neighbours ---

    def _neighbours(self, cell: Cell) -> list[tuple[Any, float, float]]:
        """The kernel, gamma and epsilon of the cells around one, itself first."""
        gammas = [cell.gamma, *self._next(self.axes.gammas, cell.gamma, _FINE_FACTOR)]
        if not self._has_gamma(cell.kernel):
            gammas = gammas[:1]
        around = [(cell.kernel, gamma, cell.epsilon) for gamma in gammas]
        epsilons = self._next(self.axes.epsilons, cell.epsilon, _EPSILON_FACTOR)
        if self.axes.epsilons is None:
            epsilons = [epsilon for epsilon in epsilons if 0.0 < epsilon < 1.0]
        return around + [(cell.kernel, cell.gamma, epsilon) for epsilon in epsilons]

    def _costs(self, cell: Cell) -> Vector:
        """The Cs next to a cell's and its own, ascending."""
        Cs = [cell.C, *self._next(self.axes.Cs, cell.C, _C_FACTOR)]
        return np.array(sorted(C for C in Cs if _SMALLEST <= C <= _LARGEST or C == cell.C))

    @staticmethod
    def _next(allowed: Vector | None, value: float, factor: float) -> list[float]:
        """The neighbours of a value: among the allowed ones, or a factor away."""
        if allowed is None:
            return [value / factor, value * factor]
        place = int(np.argmin(np.abs(allowed - value)))
        return [float(allowed[k]) for k in (place - 1, place + 1) if 0 <= k < len(allowed)]

    @staticmethod
    def _has_gamma(kernel: Any) -> bool:
        return bool(kernel != "linear")

    def _coarse_gammas(self, kernel: Any) -> list[float]:
        """From a quarter of 1 / mean distance to 1 / distance of near rows, each four times the last."""
        if not self._has_gamma(kernel):
            return [1.0]
        if self.axes.gammas is not None:
            return [float(gamma) for gamma in self.axes.gammas]
        power = 1 if kernel == "laplacian" else 2
        mean, near = self._distances(power)
        low = 0.25 / mean
        n_steps = int(np.ceil(np.log(max(4.0, 1.0 / (near * low))) / np.log(_COARSE_FACTOR)))
        return [low * _COARSE_FACTOR**k for k in range(min(n_steps, 6) + 1)]

    def _distances(self, power: int) -> tuple[float, float]:
        """The mean distance of rows, and the median distance of a row to the nearest other row of its cluster.

        Rows count by their weights; distances are sums over the columns of |x_j - z_j| ** power.
        """
        n = len(self.data.rows)
        rows = np.sort(self.rng.choice(n, min(_NEAR_ROWS, n), replace=False))
        weights, sample = self.data.weights[rows], _dense(self.X[rows])
        pairs = np.array([weights @ _distances(sample, row, power) for row in sample])
        mean = float(weights @ pairs) / float(weights.sum() ** 2)
        cluster_of = np.empty(n, np.intp)
        for c, cluster in enumerate(self.clusters):
            cluster_of[cluster] = c
        near = np.zeros(len(rows))
        for c in np.unique(cluster_of[rows]):
            others = _dense(self.X[self.clusters[c]])
            for k in np.flatnonzero(cluster_of[rows] == c):
                distances = _distances(others, sample[k], power)
                near[k] = distances[distances > 0].min(initial=np.inf)
        known = np.isfinite(near)
        mean = mean if mean > 0 else 1.0
        return mean, _weighted_median(near[known], weights[known]) if known.any() else mean

    # --- scores ---

    def _level(self, n_rows: int) -> Level:
        """As many folds, and of these as many clusters, as have at least `n_rows` held-out rows."""
        tests = [len(split.test) for split in self.data.splits]
        folds = 1
        while folds < len(tests) and sum(tests[:folds]) < n_rows:
            folds += 1
        share = min(1.0, n_rows / max(1, sum(tests[:folds])))
        n_clusters = max(1, int(np.ceil(share * len(self.clusters))))
        while n_clusters < len(self.clusters) and not self._have_rows(range(folds), n_clusters):
            n_clusters += 1
        return Level(tuple(range(folds)), n_clusters)

    def _have_rows(self, folds: Iterable[int], n_clusters: int) -> bool:
        """Whether each fold has two held-out rows or more in the first clusters, if it has so many: groups may not."""
        rows = np.concatenate(self.clusters[:n_clusters])
        tests = [self.data.splits[k].test for k in folds]
        return all(np.isin(test, rows).sum() >= min(2, len(test)) for test in tests)

    def _n_rows(self, level: Level) -> float:
        return sum(len(self.data.splits[k].test) for k in level.folds) * level.n_clusters / len(self.clusters)

    def _mean(self, cell: Cell, level: Level) -> float:
        return float(self.scores[cell][level].mean())

    def _best(self, level: Level, scalings: Iterable[int] | None = None) -> Cell | None:
        """The cell of the largest mean at a level.

        Of equal ones (to six digits of the largest) the least scaling, then that of least C, then of least gamma.
        """
        allowed = None if scalings is None else set(scalings)
        cells = [
            cell
            for cell, known in self.scores.items()
            if level in known and (allowed is None or cell.scaling in allowed) and not np.isnan(known[level]).any()
        ]
        largest = max((self._mean(cell, level) for cell in cells), default=0.0)
        equal = [cell for cell in cells if not self._is_above(largest, self._mean(cell, level))]
        return min(equal, key=lambda cell: (cell.scaling, cell.C, cell.gamma), default=None)

    @staticmethod
    def _is_above(score: float, other: float) -> bool:
        """Whether a score is better, in its first six digits."""
        return score > other and not math.isclose(score, other, rel_tol=1e-6)

    def _score(self, scaling: int, kernel: Any, gamma: float, epsilons: Vector, Cs: Vector, level: Level) -> None:
        """Score the cells of a kernel and gamma."""
        if self._kernel_of(kernel, gamma) is None:
            return
        groups = [[k] for k in level.folds] if scaling else [list(level.folds)]  # a fold has its own factors
        found = np.full((len(level.folds), len(epsilons), len(Cs)), np.nan)
        for group in groups:
            if not self.progress.go_on():
                return
            samples = self._scaled_samples(scaling, group[0], self.make_kernel(kernel, gamma))
            paths = [(k, e) for k in group for e in range(len(epsilons))]
            folds = [self._fold(k, float(epsilons[e]), Cs) for k, e in paths]
            chosen = range(level.n_clusters)
            values = self.held_out.held_out_values(self.make_kernel(kernel, gamma), samples, folds, chosen)
            for (k, e), held_out in zip(paths, values, strict=True):
                found[level.folds.index(k), e] = self._score_values(held_out, k, gamma, float(epsilons[e]), Cs)
        for e, epsilon in enumerate(epsilons.tolist()):
            for c, C in enumerate(Cs.tolist()):
                if not np.isnan(found[:, e, c]).any():
                    cell = Cell(scaling, kernel, float(gamma), epsilon, C)
                    self.scores.setdefault(cell, {})[level] = found[:, e, c]
                    self._record(cell, level, found[:, e, c])

    def _kernel_of(self, kernel: Any, gamma: float) -> Kernel | None:
        return self.make_kernel(kernel, gamma) if np.isfinite(gamma) and gamma > 0 else None

    def _score_values(self, held_out: ClusterValues, k: int, gamma: float, epsilon: float, Cs: Vector) -> Vector:
        """The score of each C (n_C,); NaN for those that a stopped search has not solved.

        A ValueError if the scorer gives NaN.
        """
        score = self.data.score(self.data.rows[held_out.rows])
        scores = np.full(len(Cs), np.nan)
        for c in np.flatnonzero(~np.isnan(held_out.values).any(axis=(1, 2))):
            scores[c] = score(self.data.problem.held_out_estimator(held_out.values[c]))
            if np.isnan(scores[c]):
                cell = f"gamma={gamma:.6g}, epsilon={epsilon:.6g}, C={Cs[c]:.6g}"
                raise ValueError(f"scoring gave NaN in fold {k} of {len(held_out.rows)} held-out rows, for {cell}")
        return scores

    def _record(self, cell: Cell, level: Level, scores: Vector) -> None:
        n_rows = sum(map(len, self.clusters[: level.n_clusters]))
        for k, score in zip(level.folds, scores.tolist(), strict=True):
            self.history.record(
                time=self.progress.elapsed,
                n_rows=n_rows,
                fold=k,
                scaling=cell.scaling,
                kernel=self.axes.kernels.index(cell.kernel),
                gamma=cell.gamma,
                epsilon=cell.epsilon,
                C=cell.C,
                score=score,
            )

    def _fold(self, k: int, epsilon: float, Cs: Vector) -> Fold:
        problems = self._duals.get((k, epsilon))
        if problems is None:
            problems = self.data.problem.duals(self.data.training_weights(k), epsilon)
        if len(self.clusters) == 1:
            self._duals[k, epsilon] = problems
        return Fold(self.data.splits[k].test, problems, Cs.tolist())

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
            base = make_samples(self._scaled(scaling, fold), kernel.sample_form) if scaling else self.data.samples
            float32 = np.dtype(np.float32)
            with np.errstate(over="ignore", invalid="ignore"):
                self._samples[key] = samples_of(kernel, base, converted(base, float32, float32))
        return self._samples[key]

    def _scaled(self, scaling: int, fold: int) -> Any:
        """X with the columns scaled; what the fold's training rows say is learned when it is first asked for."""
        if not scaling:
            return self.X
        node = self.scalings[scaling]
        if fold not in node.factors:
            assert self.learn is not None
            assert node.cell is not None
            X = self._scaled(node.parent, fold)
            own = self.scalings[node.parent].factors.get(fold, np.ones(self.X.shape[1]))
            rows = np.unique(self.data.splits[fold].train)
            node.factors[fold] = own * self.learn(X, rows, node.cell)
        return scale_columns(self.X, node.factors[fold])


def _dense(rows: Any) -> Matrix:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)


def _distances(rows: Matrix, row: Vector, power: int) -> Vector:
    return np.asarray((np.abs(rows - row) ** power).sum(axis=1))


def _weighted_median(values: Vector, weights: Vector) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])
