"""A search over C and gamma (and epsilon) on kernel rows that all folds and Cs share.

on a sample of a quarter of the rows: score every cell in every fold; eliminate cells below the best one (a race)
on all rows: score the remaining cells in the first two folds; eliminate cells
             score the remaining cells in the other folds
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t
from sklearn.base import is_classifier

from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from .._types import Array, Mask, Model, RowIndices, Vector
from ..algorithms.held_out import Fold, HeldOutSolver
from ..data.rows import positions
from ..data.samples import Samples, converted
from ..estimators._scale import check_range
from ..estimators._validation import check_integer, check_number, shown
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import Kernel
from ..solvers.dual.certificate import Limits
from ..solvers.results import History
from ._best_estimator import Score, explain_nan, try_score
from ._cv_problem import CVProblem

_SAMPLE_SHARE = 4  # rows / rows of the sample
_LEAST_SAMPLE = 500  # rows: smaller samples tell little, and all rows are as quick
_FIRST_FOLDS = 2  # of all rows, before cells are eliminated again
_KEY = "n_rows", "fold", "gamma", "epsilon", "C"  # of a score in a history


C_RANGE = 0.1, 1000.0  # of an automatic grid
GAMMA_RANGE = 1 / 16, 16.0  # of an automatic grid, in units of gamma="scale"
EPSILON_RANGE = 1e-3, 1.0  # of an automatic grid
CONFIDENCE = 0.95  # one-sided, that an eliminated cell is not the best
Predictions = tuple[RowIndices, Vector]  # the user's numbers of rows, and decision values or predictions of these


class Grid(NamedTuple):
    """Ascending values of each parameter. A cell is the indices of its gamma, epsilon and C."""

    gammas: Vector
    epsilons: Vector
    Cs: Vector

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_gammas, n_epsilons, n_C)."""
        return len(self.gammas), len(self.epsilons), len(self.Cs)

    def parameters(self, cell: tuple[int, int, int], names: Sequence[str]) -> dict[str, float]:
        """The parameters of a cell, those of `names` alone."""
        values = {"gamma": self.gammas[cell[0]], "epsilon": self.epsilons[cell[1]], "C": self.Cs[cell[2]]}
        return {name: float(values[name]) for name in names}


class Split(NamedTuple):
    """Training rows, which may repeat, and test rows of a fold."""

    train: RowIndices
    test: RowIndices

    def renumber(self, place: RowIndices) -> Split:
        """The split where row k has the number `place[k]` instead, or is left out if that is -1."""
        return Split(*(place[rows][place[rows] >= 0] for rows in self))


@dataclass
class SearchData:
    """The n rows of positive weight, the folds, and the scorer.

    Attributes
    ----------
    samples : Samples of length n
    problem : CVProblem on n rows
    weights : ndarray of shape (n,)
    splits : list of Split
    rows : ndarray of shape (n,)
        Their numbers among the rows that `fit` was given, which `score` takes.
    score : callable
        Takes the numbers of test rows, and returns a function: the score on them of an estimator.
    """

    samples: Samples
    problem: CVProblem
    weights: Vector
    splits: list[Split]
    rows: RowIndices
    score: Score

    def take(self, chosen: RowIndices) -> SearchData:
        """Some of the rows (ascending), and the splits restricted to them."""
        place = positions(chosen, len(self.rows))
        splits = [split.renumber(place) for split in self.splits]
        samples, problem = self.samples.take(chosen), self.problem.take(chosen)
        return SearchData(samples, problem, self.weights[chosen], splits, self.rows[chosen], self.score)

    def training_weights(self, k: int) -> Vector:
        """Weights (n,) of the rows in fold k: a row's weight, times how often the row is among the training rows."""
        return self.weights * np.bincount(self.splits[k].train, minlength=len(self.weights))

    def first_fault(self) -> tuple[int, str] | None:
        """The first fold that cannot be trained, and what its training rows lack; None if all folds can be."""
        faults = ((k, self.problem.find_fault(self.training_weights(k))) for k in range(len(self.splits)))
        return next(((k, fault) for k, fault in faults if fault is not None), None)

    def score_cells(
        self, k: int, test: RowIndices, values: Array, cells: Sequence[Mapping[str, float]]
    ) -> Iterator[tuple[int, float, Predictions]]:
        """Of cells that were solved in fold k: the number, the score, and predictions of the held-out rows.

        `values` (n_cells, n_test, n_machines) are NaN for others. A ValueError if the scorer gives NaN.
        """
        score = self.score(self.rows[test])
        for c in np.flatnonzero(~np.isnan(values).any(axis=(1, 2))).tolist():
            model = self.problem.held_out_estimator(values[c])
            value = score(model)
            if np.isnan(value):
                raise explain_nan(score, model, describe_cell(k, len(test), cells[c]))
            yield c, value, self._predict(test, model)

    def _predict(self, test: RowIndices, model: Model) -> Predictions:
        respond = model.decision_function if is_classifier(model) else model.predict
        return self.rows[test], respond(model.values)

    def join_predictions(self, predictions: Iterable[Predictions], n: int) -> Vector:
        """Of each of the user's n rows the mean of its predictions (n, ...); NaN where there is none."""
        nothing = self.problem.held_out_estimator(np.empty((0, len(self.problem.machines))))
        parts = [self._predict(np.empty(0, np.intp), nothing), *predictions]
        rows, values = map(np.concatenate, zip(*parts, strict=True))
        sums = np.zeros((n, *values.shape[1:]))
        np.add.at(sums, rows, values)
        counts = np.bincount(rows, minlength=n).reshape(-1, *[1] * (sums.ndim - 1))
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / counts)


class Search:
    """Scores of the cells of a grid.

    Parameters
    ----------
    data : SearchData
    grid : Grid
    make_kernel : callable
        The kernel of a gamma.
    limits : Limits
    n_bytes : int
        Memory for kernel matrices.
    progress : Progress
    team : ThreadTeam

    Attributes
    ----------
    scores : ndarray of shape (n_folds, n_gammas, n_epsilons, n_C)
        On all rows; NaN where a cell was eliminated or not scored.
    predictions : dict
        Of the held-out rows of a fold, by cell and fold, on the most rows: of the best cell so far, and of those not in
        all folds yet.
    sample_scores : ndarray of the same shape, or None
    history : History
        A row for each score: seconds, rows, fold, gamma, epsilon, C, score.
    """

    def __init__(
        self,
        data: SearchData,
        grid: Grid,
        make_kernel: Callable[[float], Kernel],
        limits: Limits,
        n_bytes: int,
        progress: Progress,
        team: ThreadTeam,
    ) -> None:
        self.data = data
        self.grid = grid
        self.make_kernel = make_kernel
        self.limits = limits
        self.n_bytes = n_bytes
        self.progress = progress
        self.team = team
        self.scores = self._no_scores()
        self.predictions: dict[tuple[Any, int], Predictions] = {}
        self.sample_scores: Vector | None = None
        self.remaining: Mask = np.ones(grid.shape, np.bool_)  # cells that were not eliminated
        self.history = History()
        self._known: dict[tuple[float, ...], float] = {}  # scores of an earlier search, by the columns `_KEY`

    def _no_scores(self) -> Vector:
        return np.full((len(self.data.splits), *self.grid.shape), np.nan)

    def recall(self, history: Mapping[str, Vector], kernel: int) -> None:
        """Take the scores of this kernel, by its number, in the history of an earlier search that was stopped."""
        for row in (dict(zip(history, values, strict=True)) for values in zip(*history.values(), strict=True)):
            if row.pop("kernel") == kernel:
                self.history.record(**row)
                self._known[tuple(float(row[name]) for name in _KEY)] = float(row["score"])

    def run(self, rng: np.random.Generator, *, exhaustive: bool) -> None:
        """Score the cells: all in all folds with `exhaustive`, else those that remain in the race."""
        folds = list(range(len(self.data.splits)))
        sample = None if exhaustive else self._sample(rng)
        with blas_limit(1):
            self._try_scorer()
            if sample is None:
                self._score_cells(self.data, folds, self.scores)
                return
            self.sample_scores = self._no_scores()
            self._score_cells(sample, folds, self.sample_scores)
            if not self.progress.go_on():
                return
            race = Race(self.sample_scores, np.sqrt(len(sample.rows) / len(self.data.rows)))
            self.remaining = race.remaining
            for batch in folds[:_FIRST_FOLDS], folds[_FIRST_FOLDS:]:
                self._score_cells(self.data, batch, self.scores)
                if not batch or not self.progress.go_on():
                    return
                self.remaining = race.update(self.scores[: batch[-1] + 1])

    def _try_scorer(self) -> None:
        """Score the middle cell on few rows of the first fold: a scorer that raises does so before the search."""
        few = self.data.take(np.unique(np.concatenate([self.data.problem.few(rows) for rows in self.data.splits[0]])))
        if len(few.rows) == len(self.data.rows):
            return
        gamma, epsilon, C = (float(values[len(values) // 2]) for values in self.grid)
        fold = Fold(few.splits[0].test, few.problem.duals(few.training_weights(0), epsilon), [C])
        solver = HeldOutSolver(few.problem.machines, self.limits, self.n_bytes, self.progress, self.team)
        kernel = self.make_kernel(gamma)
        ((decision,),) = solver.held_out_values(kernel, samples_of(kernel, few.samples), [fold])
        if not np.isnan(decision).any():
            try_score(few.score(few.rows[fold.test]), few.problem.held_out_estimator(decision))

    def _sample(self, rng: np.random.Generator) -> SearchData | None:
        """A quarter of the rows, if every fold has all classes there, and there are cells to eliminate."""
        n = len(self.data.rows)
        if n < _SAMPLE_SHARE * _LEAST_SAMPLE or self.remaining.sum() < 2 or len(self.data.splits) < 2:
            return None
        sample = self.data.take(np.sort(rng.choice(n, n // _SAMPLE_SHARE, replace=False)))
        held_out = (np.bincount(split.test, minlength=len(sample.rows)).astype(np.float64) for split in sample.splits)
        has_classes = sample.first_fault() is None and all(sample.problem.find_fault(rows) is None for rows in held_out)
        return sample if has_classes else None

    def _score_cells(self, data: SearchData, folds: Sequence[int], scores: Vector) -> None:
        """Write the scores of the remaining cells in these folds."""
        n_gammas = int(self.remaining.any((1, 2)).sum())
        self.progress.stage(f"{self.remaining.sum()} cells, {len(data.rows):,} rows", n_gammas)
        base, single = data.samples, in_float32(data.samples)
        n_bytes = self.n_bytes - (0 if single is base else base.nbytes)
        solver = HeldOutSolver(data.problem.machines, self.limits, n_bytes, self.progress, self.team)
        for g in _from_middle(len(self.grid.gammas)):
            paths = [(k, e) for k in folds for e in range(self.grid.shape[1]) if self.remaining[g, e].any()]
            paths = [(k, e) for k, e in paths if not self._take_known(len(data.rows), k, g, e, scores)]
            if not paths or not self.progress.go_on():
                continue
            kernel = self.make_kernel(float(self.grid.gammas[g]))
            tests = [self._fold(data, k, g, e) for k, e in paths]
            held_out = solver.held_out_values(kernel, samples_of(kernel, base, single), tests)
            for (k, e), fold, values in zip(paths, tests, held_out, strict=True):
                cells = [(g, e, int(c)) for c in np.flatnonzero(self.remaining[g, e])]
                named = [self.grid.parameters(cell, ("gamma", "epsilon", "C")) for cell in cells]
                for j, value, predicted in data.score_cells(k, fold.test, values, named):
                    scores[(k, *cells[j])] = value
                    self.history.record(
                        time=self.progress.elapsed, n_rows=len(data.rows), fold=k, **named[j], score=value
                    )
                    self.predictions[cells[j], k] = predicted
                self.progress.go_on(round=float(len(self.history)))
            self._drop_predictions()
            self.progress.advance()

    def _drop_predictions(self) -> None:
        """Drop those of cells that were eliminated, or scored in all folds, but for the best one."""
        means = self.scores.mean(axis=0)
        wanted = self.remaining & np.isnan(means)
        if not np.isnan(means).all():
            wanted[best_cell(self.scores)] = True
        self.predictions = {key: one for key, one in self.predictions.items() if wanted[key[0]]}

    def _take_known(self, n_rows: int, k: int, g: int, e: int, scores: Vector) -> bool:
        """Write the scores of a fold's remaining cells of gamma g and epsilon e, if an earlier search had them all."""
        gamma, epsilon, Cs = self.grid.gammas[g], self.grid.epsilons[e], self.grid.Cs[self.remaining[g, e]]
        known = [self._known.get((n_rows, k, float(gamma), float(epsilon), C)) for C in Cs.tolist()]
        if None in known:
            return False
        scores[k, g, e, self.remaining[g, e]] = known
        return True

    def _fold(self, data: SearchData, k: int, g: int, e: int) -> Fold:
        """Fold k with its duals for epsilon e, and the Cs of the remaining cells of gamma g and epsilon e."""
        problems = data.problem.duals(data.training_weights(k), float(self.grid.epsilons[e]))
        return Fold(data.splits[k].test, problems, self.grid.Cs[self.remaining[g, e]].tolist())


class Race:
    """The cells of a grid that are not eliminated yet.

    A cell's differences from the best cell are paired by fold: its mean difference has the standard error
    s / sqrt(folds), where s is the cell's standard deviation or the median of all cells', whichever is larger: few
    folds may agree by chance. A cell is eliminated if the upper confidence limit of its difference is below zero. The
    direct neighbours of the best cell are kept: on more rows one of them may be the best.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, *shape of the grid)
        Of all cells, on a sample of the rows.
    spread_ratio : float
        Standard deviation of the scores of a fold of all rows / that of a fold of the sample.
    """

    def __init__(self, scores: Vector, spread_ratio: float) -> None:
        n_folds, best = len(scores), best_cell(scores)
        of_best = np.array([fold[best] for fold in scores])
        differences = scores - of_best.reshape(-1, *[1] * (scores.ndim - 1))
        spread = differences.std(axis=0, ddof=1)
        spread = np.maximum(spread, np.median(spread))
        limit = differences.mean(axis=0) + t.ppf(CONFIDENCE, n_folds - 1) * spread / np.sqrt(n_folds)
        self.remaining: Mask = (limit >= 0) | _neighbours(best, scores.shape[1:])
        self.spread: Vector = spread_ratio * spread

    def update(self, scores: Vector) -> Mask:
        """Eliminate cells by the scores on all rows so far, (n_folds, *shape); return the mask of those that remain."""
        means = scores.mean(axis=0)
        best = np.nanmax(means)
        with np.errstate(invalid="ignore"):
            limit = means + norm.ppf(CONFIDENCE) * self.spread / np.sqrt(len(scores))
        self.remaining = self.remaining & (limit >= best)
        return self.remaining


def best_cell(scores: Vector) -> tuple[int, ...]:
    """The cell of the largest mean of scores (n_folds, *shape); of equal ones that of least C, then of least gamma."""
    means = scores.mean(axis=0)
    cells = np.argwhere(means == np.nanmax(means))
    return tuple(int(k) for k in min(cells, key=lambda cell: tuple(cell[::-1])))


def _neighbours(cell: tuple[int, ...], shape: tuple[int, ...]) -> Mask:
    """Mask of the cells at most one step from `cell` along every axis."""
    steps = [np.abs(np.arange(size) - k) <= 1 for size, k in zip(shape, cell, strict=True)]
    mask = np.ones(shape, np.bool_)
    for axis, near in enumerate(steps):
        mask &= np.expand_dims(near, tuple(k for k in range(len(shape)) if k != axis))
    return mask


def make_values(name: str, values: Any, least: float, largest: float, *, middle: float) -> Vector:
    """Ascending values of a parameter: those given, each once; or, of a number, so many log-spaced ones.

    If the number is 1, the value is `middle`.

    Raises
    ------
    ValueError
        If there are none, or one is not a number > 0 (epsilon: >= 0).
    """
    if isinstance(values, Integral):
        check_integer(name, values, 1)
        return np.geomspace(least, largest, int(values)) if int(values) > 1 else np.array([middle])
    if isinstance(values, str) or not np.iterable(values):
        raise ValueError(f"{name} must be an integer >= 1 or a list of numbers, got {shown(values)}")
    entries = list(values)
    if not entries:
        raise ValueError(f"{name} must have at least one value, got {shown(values)}")
    for k, value in enumerate(entries):
        check_number(f"{name}[{k}]", value, **({"least": 0.0} if name == "epsilons" else {"above": 0.0}))
    return np.unique(np.array(entries, np.float64))


def describe_cell(fold: int, n_rows: int, parameters: Mapping[str, float]) -> str:
    """The place of a score in words."""
    values = ", ".join(f"{name}={value:.6g}" for name, value in parameters.items())
    return f"fold {fold} of {n_rows} held-out rows, for {values}"


def join_histories(histories: Sequence[History]) -> dict[str, Vector]:
    """The columns of several histories, one after the other, with `kernel`, the number of each."""
    columns = [{**h.as_arrays(), "kernel": np.full(len(h), float(k))} for k, h in enumerate(histories) if len(h)]
    return {name: np.concatenate([c[name] for c in columns]) for name in columns[0]} if columns else {}


def _from_middle(n: int) -> list[int]:
    """0 ... n - 1, the middle first: a search that is stopped has then scored the likeliest gammas."""
    return sorted(range(n), key=lambda k: abs(2 * k + 1 - n))


def in_float32(samples: Samples) -> Samples:
    """The samples in half the memory, exact enough for scores: `samples_of` checks the range."""
    with np.errstate(over="ignore", invalid="ignore"):
        return converted(samples, np.dtype(np.float32), np.dtype(np.float32))


def samples_of(kernel: Kernel, base: Samples, single: Samples | None = None) -> Samples:
    """float32 samples if their range allows it, else the data's; the data's too for functions and given matrices."""
    single = in_float32(base) if single is None else single
    if kernel.sample_form in ("rows", "entries"):
        check_range(kernel, base)
        return base
    try:
        check_range(kernel, single)
    except ValueError:
        check_range(kernel, base)
        return base
    precise = ensure_precision(kernel, single)
    return single if precise is single else converted(base, precise.precision, precise.dtype)
