"""The base of the ...CV estimators of kernel machines: a search over C and gamma, and its results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._native import return_freed_memory
from .._progress import Callback, Progress
from .._threads import ThreadTeam, effective_n_jobs
from .._types import AnyArray, Given, KernelParameter, Model, RowIndices, Vector
from ..algorithms.relevance import learn_relevance, scale_columns
from ..data.rows import positions, sample_classes
from ..data.samples import make_samples
from ..estimators._dual_machine import DualMachine
from ..estimators._kernel_machine import TrainingRows
from ..estimators._resuming import checksum
from ..estimators._scale import resolve_gamma, sample_form
from ..estimators._validation import check_choice, check_flag, check_weights, is_auto, make_rng, shown, upper_bounds
from ..estimators.relevance_scaler import POWERS, RelevanceScaler
from ..kernels.functions import FUNCTION_KERNELS, KERNELS, WITHOUT_GAMMA, Kernel, make_kernel
from ..partition.divide import CLUSTER_ROWS, clustering_level
from ..solvers.dual.certificate import Limits
from ..solvers.dual.memory import needed_bytes
from ._adaptive_search import AdaptiveSearch, Axes, Cell, Loss, Part
from ._best_estimator import (
    BestEstimator,
    Fold,
    Found,
    Score,
    cv_results,
    last_step,
    make_splits,
    needs_refit,
    takes_weights,
)
from ._cv_problem import CVProblem, is_unequal
from ._grid_race import (
    C_RANGE,
    EPSILON_RANGE,
    GAMMA_RANGE,
    Grid,
    Predictions,
    Search,
    SearchData,
    Split,
    best_cell,
    join_histories,
    make_values,
    samples_of,
)

_FIRST_CS = 1.0, 8.0, 64.0
_FIRST_EPSILONS = (0.1,)
_LEAST_LEARNED, _MOST_LEARNED = 3000, 100_000  # rows of a machine that scales columns: the least, and of all pairs
_DRAWN_FINALLY = 20_000  # rows that the best cells are scored on, where cells are scored on drawn rows
_MAX_VIOLATION = 0.1  # of a cell whose gap is at most `tol`
_MOST_EXACT = 50_000  # rows of an exact machine after a search, if the user does not say
_TRAINING_PER_DIVISION = 4.0  # seconds of an early last machine / of dividing the rows
_BRANCHING, _SLOWER = 4, 1.5  # clusters of a level / of the one above; seconds of a row there / here, at most


class SearchCV(BestEstimator):
    """Base of the estimators that choose kernel and parameters by cross-validation, and then train on all rows.

    A subclass has `_machine_type`, `_cv_problem`, and `_names`, the parameters that it chooses.
    """

    Cs: Given
    gammas: Given
    kernels: Given
    search: str
    relevance: Any
    degree: int
    coef0: float
    fit_intercept: bool
    cv: Given
    exhaustive: bool
    n_jobs: int | None
    verbose: int
    random_state: Given
    refit: Given
    _names: tuple[str, ...]

    def _cv_problem(self, rows: TrainingRows) -> CVProblem:
        """What is trained and scored on these rows."""
        raise NotImplementedError

    def _epsilon_values(self) -> Any:
        """What the user gave for epsilon: "auto", a number of values, or values."""
        return (0.0,)

    def _search(self, X: Given, y: Given, sample_weight: Given, groups: Given, callback: Callback | None) -> Found:
        self._check_search()
        prototype: DualMachine = self._prototype(kernel=self._kernel_list(X)[0])
        prototype._check_parameters()
        rows, targets = self._take_rows(prototype, X, y, sample_weight)
        *_, Cs = self._values()
        if Cs is not None:
            upper_bounds(Cs.max(), rows.weights)
        kernels, begin = self._kernel_list(rows.X), perf_counter()
        splits = make_splits(self.cv, targets, groups, classifier=is_classifier(self), random_state=self.random_state)
        if not is_classifier(self):
            splits = self._without_wild_tests(splits, targets, rows.kept)
        weights = None if sample_weight is None else _spread(rows.weights, rows.kept, len(targets))
        scorer = self._find_scorer(prototype, targets, splits, weights)
        is_exact, drawn, names = self._is_exact(kernels, len(rows.y)), [rows], self._names
        is_ranked = not is_exact and self._is_ranking_or_rare(scorer, rows)
        if is_ranked:
            drawn = self._draw(rows) if takes_weights(scorer) else drawn
            names = (*names, "class_weight") if is_auto(getattr(self, "class_weight", None)) else names
        is_one_cluster = len(drawn[0].y) <= 2 * CLUSTER_ROWS  # machines of several would be more than linear
        if is_auto(self.kernels) and is_one_cluster and not is_exact and (is_ranked or not is_classifier(self)):
            kernels = [*kernels, "linear"]
        parts = []
        for part in drawn:
            used = weights if part is rows else _spread(part.weights, part.kept, len(targets))
            score = self._make_score(scorer, X, targets, used)
            parts.append(Part(self._make_data(part, len(targets), splits, score, kernels[0]), part))
        prototype._check_memory(parts[0].data.samples, parts[0].rows)
        mark, before = self._mark(splits, rows), None
        known: Mapping[str, Vector] = {}
        stopped = self.__dict__.pop("_stopped_search", None)
        if mark is not None and mark == stopped:
            known, before = self.history_, last_step(self.__dict__.get("best_estimator_"))
        if is_exact:
            found, predictions = self._search_grid(parts[0], kernels, callback, known)
        else:
            found, predictions = self._search_adaptively(parts, kernels, names, callback, known)
        name = "oof_decision_function_" if is_classifier(self) else "oof_prediction_"
        setattr(self, name, parts[0].data.join_predictions(predictions, len(targets)))
        problem = parts[0].data.problem if len(drawn) == 1 else self._cv_problem(rows)
        return found._replace(mark=mark, before=before, problem=problem, seconds=perf_counter() - begin)

    def _mark(self, splits: Sequence[Fold], rows: TrainingRows) -> int | None:
        """A number that differs for other searches, whose scores are no scores of this one; None if all differ."""
        if not self._has_seed:
            return None
        parameters = self.get_params(deep=False)
        for name in ("max_time", "n_jobs", "memory_budget", "verbose", "refit"):
            parameters.pop(name)
        return checksum(parameters, rows.X, [rows.y, rows.weights, *(part for split in splits for part in split)])

    @property
    def _has_seed(self) -> bool:
        """Whether another search of the same data has the same folds and clusters."""
        return self.random_state is None or isinstance(self.random_state, Integral)

    @property
    def _advice(self) -> str:
        return " To go on from there, call fit again with the same data." if self._has_seed else ""

    def _is_ranking_or_rare(self, scorer: Any, rows: TrainingRows) -> bool:
        """Whether the score is one of decision values, or not the accuracy and a class is rare."""
        if not len(rows.classes) or self.scoring in (None, "accuracy"):
            return False
        is_ranking = "decision_function" in np.ravel(getattr(scorer, "_response_method", ""))
        return is_ranking or is_unequal(np.bincount(rows.y, rows.weights).astype(np.float64))

    def _draw(self, rows: TrainingRows) -> list[TrainingRows]:
        """Rows for all cells, and for the best ones: a rare class has more than its share, and weights make up for it.

        All rows alone where there are few.
        """
        if len(rows.y) <= 2 * CLUSTER_ROWS:
            return [rows]
        rng, drawn = make_rng(self.random_state, seed_of_none=0), list[TrainingRows]()
        for size in (2 * CLUSTER_ROWS, _DRAWN_FINALLY):
            chosen, factors = sample_classes(rows.y, size, rng)
            is_all = len(chosen) == len(rows.y)
            weights, kept = rows.weights[chosen] * factors, rows.kept[chosen]
            drawn.append(rows if is_all else TrainingRows(rows.X[chosen], rows.y[chosen], weights, kept, rows.classes))
        return drawn

    @needs_refit
    def decision_gradient(self, X: ArrayLike) -> NDArray[np.float64]:
        """How the decision value of each row changes with its columns, in units of the given columns.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples, n_functions, n_features), float64
            As of the machine's `decision_gradient`; where it is one of scaled columns, times their factors.
        """
        check_is_fitted(self)
        best = self.best_estimator_
        if not isinstance(best, Pipeline):
            return cast(NDArray[np.float64], best.decision_gradient(X))
        scaler, machine = best
        return cast(NDArray[np.float64], machine.decision_gradient(scaler.transform(X)) * scaler.scale_)

    def _check_refit(self) -> None:
        if isinstance(self.refit, str):
            check_choice("refit", self.refit, ("auto", "exact", "early"))
        else:
            check_flag(refit=self.refit)

    # --- the last machine ---

    def _fit_best(self, X: Given, y: Given, sample_weight: Given, max_time: float | None, found: Found) -> Model:
        """Train the model of the best cell on all rows: after the scaling of the columns, if there is one."""
        return_freed_memory()
        if found.factors is None:
            return self._train_exact_or_early(X, y, sample_weight, max_time, found)
        scaler = RelevanceScaler(kernel=found.parameters["kernel"], n_jobs=self.n_jobs).set_factors(X, found.factors)
        machine = self._train_exact_or_early(scaler.transform(X), y, sample_weight, max_time, found)
        return Pipeline([("relevance", scaler), ("machine", machine)])

    def _train_exact_or_early(
        self, X: Given, y: Given, sample_weight: Given, max_time: float | None, found: Found
    ) -> Model:
        """The exact model, or early ones of fewer and fewer clusters as long as the time allows."""
        begin, level = perf_counter(), self._first_level(len(found.problem.y))
        if not level:
            return self._train(X, y, sample_weight, max_time, found, **found.parameters)
        limit = found.seconds if max_time is None else max_time
        while True:
            started = perf_counter()
            left = None if max_time is None else max(0.0, max_time - (started - begin))
            model = self._train(X, y, sample_weight, left, found, **found.parameters, stop_level=level)
            seconds, level = perf_counter() - started, level - 1
            if not level or perf_counter() - begin + _BRANCHING * _SLOWER * seconds > limit:
                return model

    def _first_level(self, n: int) -> int:
        """The level of the first early model of n rows; 0 where the last model is exact, or there is none."""
        is_auto = self.refit is True or self.refit == "auto"
        if not self.refit or self.refit == "exact" or (is_auto and n <= _MOST_EXACT):
            return 0
        return clustering_level(n, _BRANCHING)

    # --- what is searched ---

    def _check_search(self) -> None:
        check_flag(exhaustive=self.exhaustive)
        check_choice("search", self.search, ("auto", "exact", "early"))
        if not is_auto(self.relevance):
            check_flag(relevance=self.relevance)
        self._values()
        is_list = isinstance(self.kernels, Collection) and getattr(self.kernels, "ndim", 1) > 0 and len(self.kernels)
        kernels = self.kernels if is_list and not isinstance(self.kernels, str) else [self.kernels]
        if not all(isinstance(kernel, str) or callable(kernel) for kernel in kernels):
            raise ValueError(f"kernels must be 'auto', a kernel or a list of kernels, got {shown(self.kernels)}")
        for kernel in kernels:
            if isinstance(kernel, str) and not is_auto(self.kernels):
                check_choice("kernels", kernel, (*KERNELS, *FUNCTION_KERNELS, "precomputed"))
        for kernel in self._kernel_list(np.empty((0, 0))):
            self._prototype(kernel=kernel)._check_parameters()

    def _kernel_list(self, X: Given) -> list[KernelParameter]:
        """The kernels to try: "auto" are RBF and Laplacian, of sparse rows RBF alone."""
        if is_auto(self.kernels):
            return ["rbf"] if sp.issparse(X) else ["rbf", "laplacian"]
        if callable(self.kernels) or isinstance(self.kernels, str):
            return [self.kernels]
        return list(dict.fromkeys(self.kernels))

    def _is_exact(self, kernels: list[KernelParameter], n: int) -> bool:
        """Whether all cells of a grid are scored by exact machines: one cluster is as exact, where values are free."""
        if self.exhaustive or self.search == "exact" or any(kernel not in KERNELS for kernel in kernels):
            return True
        is_given = not any(map(is_auto, (self.Cs, self.gammas, self._epsilon_values())))
        return self.search == "auto" and is_given and n <= 2 * CLUSTER_ROWS

    def _values(self, counts: Sequence[int | None] = (None, None, None)) -> list[Any]:
        """The values of gamma, epsilon and C: those given; of automatic ones so many, or None without a count."""
        ranges = {
            "gammas": (self.gammas, *GAMMA_RANGE, 1.0),
            "epsilons": (self._epsilon_values(), *EPSILON_RANGE, 0.1),
            "Cs": (self.Cs, *C_RANGE, 1.0),
        }
        found = []
        for count, (name, (given, least, largest, middle)) in zip(counts, ranges.items(), strict=True):
            values = count if is_auto(given) else given
            found.append(None if values is None else make_values(name, values, least, largest, middle=middle))
        return found

    def _axes(self, rows: TrainingRows, kernels: list[KernelParameter], names: Sequence[str]) -> Axes:
        """What an adaptive search may try: any value where the user has given none."""
        gammas, epsilons, Cs = self._values()
        if gammas is not None:
            with_gamma = [kernel for kernel in kernels if kernel not in WITHOUT_GAMMA]
            gammas = self._scale_gammas(rows, gammas, (with_gamma or kernels)[0])
        first = _coarse(epsilons, _FIRST_EPSILONS) if "epsilon" in self._names else np.zeros(1)
        losses = [Loss(epsilon) for epsilon in first.tolist()]
        if "class_weight" in names:
            losses.append(Loss(class_weight="balanced"))
        return Axes(kernels, gammas, Cs, epsilons, _coarse(Cs, _FIRST_CS), losses)

    def _take_rows(
        self, prototype: DualMachine, X: Given, y: Given, sample_weight: Given
    ) -> tuple[TrainingRows, AnyArray]:
        """Validated rows of positive weight, and all targets; sets `n_features_in_`, `feature_names_in_`."""
        X, targets = prototype._accept_rows(X, y)
        self._take_features(prototype)
        return prototype._take_rows(X, targets, check_weights(sample_weight, X)), targets

    def _scale_gammas(self, rows: TrainingRows, gammas: Vector, kernel: KernelParameter) -> Vector:
        """The gammas to try: automatic ones are multiples of that of "scale"; a kernel without gamma has that one."""
        scale = resolve_gamma("scale", rows.X, rows.weights, is_gram=kernel == "precomputed")
        if callable(kernel) or kernel in WITHOUT_GAMMA:
            return np.array([scale])
        return gammas if np.iterable(self.gammas) and not is_auto(self.gammas) else scale * gammas

    def _make_data(
        self, rows: TrainingRows, n: int, folds: list[Fold], score: Score, kernel: KernelParameter
    ) -> SearchData:
        """The rows of positive weight, and the folds of all n rows in their numbering."""
        made, place = self._make_kernel(kernel, 1.0), positions(rows.kept, n)
        splits = [Split(*fold).renumber(place) for fold in folds]
        samples = make_samples(rows.X, sample_form(made, rows.X) if self.fit_intercept else made.sample_form)
        data = SearchData(samples, self._cv_problem(rows), rows.weights, splits, rows.kept, score)
        if not all(len(split.test) for split in splits):
            raise ValueError(f"cv must give folds with test rows of positive weight, got {shown(self.cv)}")
        if fault := data.first_fault():
            raise ValueError(f"cv: the training rows of fold {fault[0]} have {fault[1]}")
        return data

    def _make_kernel(self, kernel: KernelParameter, gamma: float) -> Kernel:
        return make_kernel(kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _limits(self, kernel: KernelParameter) -> Limits:
        """Those of the machine; in an exhaustive search gaps, where they are bounds, are at most `tol`.

        Violations may then be ten times `tol`, as far as these are below 0.1.
        """
        prototype: DualMachine = self._prototype(kernel=kernel)
        limits = prototype._settings(self._make_kernel(kernel, 1.0), 1).limits
        if not self.exhaustive or limits.max_relative_gap == np.inf:
            return limits
        gap = min(limits.tol, limits.max_relative_gap)
        return replace(limits, tol=max(limits.tol, min(10.0 * limits.tol, _MAX_VIOLATION)), max_relative_gap=gap)

    # --- a grid of exact cells ---

    def _search_grid(
        self, part: Part, kernels: list[KernelParameter], callback: Callback | None, known: Mapping[str, Vector]
    ) -> tuple[Found, list[Predictions]]:
        """Score the cells of each kernel's grid, one kernel after the other; `known` is an earlier search's history.

        With what was found, the best cell's predictions of held-out rows.
        """
        gammas, epsilons, Cs = self._values((5, 3, 10))
        title, memory = type(self).__name__, memory_plan(self)
        searches: dict[Any, Search] = {}
        with (
            Progress(max_time=self._search_time(), verbose=self.verbose, title=title, callback=callback) as progress,
            ThreadTeam(self.n_jobs) as team,
        ):
            for kernel in kernels:
                grid = Grid(self._scale_gammas(part.rows, gammas, kernel), epsilons, Cs)
                make = partial(self._make_kernel, kernel)
                search = Search(part.data, grid, make, self._limits(kernel), memory["folds"], progress, team)
                search.recall(known, kernels.index(kernel))
                search.run(make_rng(self.random_state, seed_of_none=0), exhaustive=bool(self.exhaustive))
                searches[kernel] = search
        parameters, cell = self._set_grid_results(searches)
        return Found(parameters, progress.stopped_by), _of_cell(searches[self.kernel_].predictions, cell)

    def _set_grid_results(self, searches: dict[Any, Search]) -> tuple[dict[str, Any], tuple[int, int, int]]:
        """Set the attributes of scores and of the best cell; return its parameters, and its place in the grid."""
        found = {kernel: _best_seen(search) for kernel, search in searches.items()}
        self.kernel_ = max(found, key=lambda kernel: -np.inf if np.isnan(found[kernel][1]) else found[kernel][1])
        search, (cell, self.best_score_) = searches[self.kernel_], found[self.kernel_]
        best = search.grid.parameters(cell, self._names)
        for name, value in best.items():
            setattr(self, f"{name}_", value)
        self.relevance_ = None
        self._set_scores(search.grid, search.scores)
        cells = [
            {"kernel": kernel, **s.grid.parameters(index, self._names)}
            for kernel, s in searches.items()
            for index in np.ndindex(s.grid.shape)
        ]
        self.cv_results_ = cv_results(
            cells, np.hstack([s.scores.reshape(len(s.scores), -1) for s in searches.values()])
        )
        self.history_ = join_histories([s.history for s in searches.values()])
        self._warn_of_missing(searches, best)
        return {"kernel": self.kernel_, **best}, cell

    def _warn_of_missing(self, searches: dict[Any, Search], best: dict[str, float]) -> None:
        scores = np.concatenate([s.scores[np.broadcast_to(s.remaining, s.scores.shape)] for s in searches.values()])
        n_missing, stopped_by = int(np.isnan(scores).sum()), next(iter(searches.values())).progress.stopped_by
        if stopped_by and n_missing:
            unseen = {kernel: _unseen_gammas(search) for kernel, search in searches.items()}
            self._warn_of_stop(
                stopped_by,
                f"too early: {n_missing} of {len(scores)} cells ({', '.join(self._names)} and fold) were not scored "
                f"(NaN in scores_).{_describe_unseen(unseen)}",
                best,
                has_scores=bool(self.history_),
            )

    # --- cells of early machines, wherever the best are ---

    def _search_adaptively(
        self,
        parts: list[Part],
        kernels: list[KernelParameter],
        names: Sequence[str],
        callback: Callback | None,
        known: Mapping[str, Vector],
    ) -> tuple[Found, list[Predictions]]:
        """Score cells of early machines around the best ones; `known` is an earlier search's history.

        With what was found, the best cell's predictions of held-out rows.
        """
        title, memory, rows = type(self).__name__, memory_plan(self), parts[0].rows
        with (
            Progress(max_time=self._search_time(), verbose=self.verbose, title=title, callback=callback) as progress,
            ThreadTeam(self.n_jobs) as team,
        ):
            has_relevance = self.relevance and not sp.issparse(rows.X)
            learn = partial(self._learn_factors, names, progress) if has_relevance else None
            axes, limits = self._axes(rows, kernels, names), self._limits(kernels[0])
            rng, start = make_rng(self.random_state, seed_of_none=0), perf_counter()
            search = AdaptiveSearch(parts, axes, self._make_kernel, learn, limits, memory, progress, team, rng)
            if self.max_time is not None and self._first_level(len(rows.y)):  # the last machine divides all rows again
                needed = _TRAINING_PER_DIVISION * (perf_counter() - start)
                progress.end_within(self.max_time - min(needed, 0.5 * (self.max_time - progress.elapsed)))
            search.recall(known)
            search.run()
        found = search.best()
        best, self.best_score_ = found or (self._middle_cell(search), np.nan)
        parameters, factors = best.parameters(names), search.factors(best.scaling)
        for name in ("kernel", *self._names):
            setattr(self, f"{name}_", parameters[name])
        self.relevance_ = None if factors is None else factors / factors.max()
        self.history_ = search.history.as_arrays()
        self._set_tables(search, best, names)
        if progress.stopped_by:
            state = f"too early: {len(search.scores)} cells were scored, neighbours of the best not all."
            state = (state if found else "at once.") + _describe_unseen(search.unseen)
            self._warn_of_stop(progress.stopped_by, state, parameters, has_scores=found is not None)
        return Found(parameters, progress.stopped_by, factors=factors), _of_cell(search.predictions, best)

    def _learn_factors(
        self, names: Sequence[str], progress: Progress, part: Part, factors: Vector, chosen: RowIndices, cell: Cell
    ) -> Vector:
        """Factors (d,), beside those given, by the gradients of a cell's machine, trained on some of the rows."""
        rng, problem, memory = np.random.default_rng(0), part.data.problem, memory_plan(self).among(1, "relevance")
        most = max(_LEAST_LEARNED, _MOST_LEARNED // len(problem.machines))
        if len(chosen) > most:
            chosen = np.sort(rng.choice(chosen, most, replace=False))
        y, classes = problem.y[chosen], part.rows.classes
        if len(classes):
            present, y = np.unique(y, return_inverse=True)
            classes = classes[present]
            if len(classes) < 2:
                return np.ones(len(factors))
        few = make_samples(part.rows.X[chosen], "distances")
        few = samples_of(self._make_kernel(cell.kernel, cell.gamma), few)
        X = scale_columns(few.stored(), factors)
        rows = TrainingRows(X, y, part.data.weights[chosen], np.arange(len(chosen)), classes)
        machine = self._prototype(**cell.parameters(names), stop_level="auto", tol=1e-2)
        least = needed_bytes(few, machine._machine_sizes(rows), effective_n_jobs(self.n_jobs))
        machine.memory_budget = max(memory.budget, least)
        del few, X
        learned = learn_relevance(
            rows.X,
            rows.weights,
            lambda Z: machine.train_model(rows._replace(X=Z), progress),
            2,  # fits
            progress,
            rng,
            power=POWERS.get(cell.kernel, 2),
            n_jobs=self.n_jobs,
            memory=memory,
        )
        return learned.scale

    def _middle_cell(self, search: AdaptiveSearch) -> Cell:
        """What is chosen before any cell is scored: the first kernel, and the middle of what is tried first."""
        kernel, given = search.axes.kernels[0], search.axes.gammas
        scale = resolve_gamma("scale", search.X, search.data.weights, is_gram=False)
        gamma, C = (
            float(np.sort(np.ravel(v))[np.size(v) // 2])
            for v in (scale if given is None else given, search.axes.first_costs)
        )
        return Cell(0, kernel, gamma, search.axes.first_losses[0], C)

    def _set_tables(self, search: AdaptiveSearch, best: Cell, names: Sequence[str]) -> None:
        """`cv_results_` of all cells, each by its best-known scores; `Cs_`, `gammas_`, `scores_` of the best kernel."""
        n_folds, cells = len(search.data.splits), list(search.scores)
        scores, sizes = np.full((n_folds, len(cells)), np.nan), np.zeros(len(cells))
        for j, cell in enumerate(cells):
            level = max(search.scores[cell], key=lambda level: level.n_rows)
            scores[list(level.folds), j], sizes[j] = search.scores[cell][level], level.n_rows
        columns = [{"kernel": cell.kernel, "relevance": cell.scaling, **cell.parameters(names)} for cell in cells]
        self.cv_results_ = cv_results(columns, scores, sizes) if cells else {}
        own = [j for j, cell in enumerate(cells) if cell.same_kind(best)]
        values = {name: [cells[j].parameters([name])[name] for j in own] for name in ("gamma", "epsilon", "C")}
        grid = Grid(*(np.unique(of_name) for of_name in values.values()))
        table = np.full((n_folds, *grid.shape), np.nan)
        g, e, c = (np.searchsorted(axis, of_name) for axis, of_name in zip(grid, values.values(), strict=True))
        table[:, g, e, c] = scores[:, own]
        self._set_scores(grid, table[~np.isnan(table).all(axis=(1, 2, 3))] if own else table)

    def _set_scores(self, grid: Grid, scores: Vector) -> None:
        """Set `scores_` (n_folds, *shape of the grid), without an axis of a single epsilon, and the grid's values."""
        self.Cs_, self.gammas_, self.scores_ = grid.Cs, grid.gammas, scores
        if "epsilon" in self._names:
            self.epsilons_ = grid.epsilons
        else:
            self.scores_ = scores.reshape(len(scores), len(grid.gammas), len(grid.Cs))


def _of_cell(predictions: Mapping[tuple[Any, int], Predictions], cell: Any) -> list[Predictions]:
    """A cell's predictions of the held-out rows of each fold."""
    return [predicted for (other, _), predicted in predictions.items() if other == cell]


def _spread(values: Vector, rows: RowIndices, n: int) -> Vector:
    """The values at their rows among n, 0 elsewhere."""
    spread = np.zeros(n)
    spread[rows] = values
    return spread


def _coarse(allowed: Vector | None, first: tuple[float, ...]) -> Vector:
    """The first values of a parameter: among those allowed, at most as many as there are by default."""
    if allowed is None:
        return np.array(first)
    if len(first) == 1:
        return np.asarray(allowed[[np.abs(allowed - first[0]).argmin()]])
    places = np.linspace(0, len(allowed) - 1, min(len(allowed), len(first))).round().astype(int)
    return np.asarray(allowed[np.unique(places)])


def _describe_unseen(unseen: Mapping[Any, Sequence[float]]) -> str:
    """A sentence on the kernels and gammas that a stopped search has not looked at; empty if there are none."""
    parts = [
        f"{kernel!r} with gamma={', '.join(f'{gamma:.6g}' for gamma in gammas)}"
        if isinstance(kernel, str) and kernel not in WITHOUT_GAMMA
        else f"{kernel!r}"
        for kernel, gammas in unseen.items()
        if len(gammas)
    ]
    return f" Not looked at: {'; '.join(parts)}." if parts else ""


def _unseen_gammas(search: Search) -> list[float]:
    """The gammas without any score, on all rows or on the sample."""
    known = ~np.isnan(search.scores)
    if search.sample_scores is not None:
        known |= ~np.isnan(search.sample_scores)
    return [float(gamma) for gamma in search.grid.gammas[~known.any(axis=(0, 2, 3))]]


def _best_seen(search: Search) -> tuple[tuple[int, int, int], float]:
    """The best cell and its mean score on all rows.

    Of a search that was stopped: by the most folds in which a cell was scored on all rows, else on the sample (with a
    score of NaN), else the middle cell.
    """
    candidates = [search.scores[: k + 1] for k in reversed(range(len(search.scores)))]
    if search.sample_scores is not None:
        candidates += [search.sample_scores[: k + 1] for k in reversed(range(len(search.scores)))]
    for k, scores in enumerate(candidates):
        means = scores.mean(axis=0)
        if not np.isnan(means).all():
            cell = best_cell(scores)
            return cell, float(means[cell]) if k < len(search.scores) else np.nan  # type: ignore[return-value]
    G, E, C = search.grid.shape
    return (G // 2, E // 2, C // 2), np.nan
