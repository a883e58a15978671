"""The base of the ...CV estimators of kernel machines: a search over C and gamma, and its results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._config import resolve_memory_budget
from .._progress import Callback, Progress
from .._threads import ThreadTeam
from .._types import Vector
from ..data.rows import positions
from ..data.samples import make_samples
from ..estimators._dual_machine import DualMachine
from ..estimators._kernel_machine import TrainingRows
from ..estimators._scale import named_kernel, resolve_gamma, sample_form
from ..estimators._validation import WITHOUT_GAMMA, check_flag, check_weights, make_rng, shown
from ..kernels.functions import Kernel
from ._best_estimator import BestEstimator, Score, cv_results, make_splits
from ._cv_problem import CVProblem
from ._grid import LARGEST_C, LARGEST_GAMMA, LEAST_C, LEAST_GAMMA, Grid, make_values
from ._race import best_cell
from ._search import Search, SearchData, Split


class SearchCV(BestEstimator):
    """Base of the estimators that choose C and gamma by cross-validation, and then train that machine on all rows.

    A subclass has `_machine_type`, `_cv_problem`, and `_names`, the parameters that it chooses.
    """

    Cs: Any
    gammas: Any
    kernel: Any
    degree: int
    coef0: float
    cv: Any
    exhaustive: bool
    memory_budget: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    _names: tuple[str, ...]

    def _cv_problem(self, rows: TrainingRows) -> CVProblem:
        """What is trained and scored on these rows."""
        raise NotImplementedError

    def _epsilons(self) -> Vector:
        return np.zeros(1)

    def _choose(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, callback: Callback | None
    ) -> tuple[dict[str, float], str | None]:
        grid = self._check_grid()
        prototype: DualMachine = self._prototype()
        prototype._check_parameters()
        rows, targets, weights = self._take_rows(prototype, X, y, sample_weight)
        grid = grid._replace(gammas=self._scale_gammas(rows, grid.gammas))
        score = self._make_score(prototype, X, targets, None if sample_weight is None else weights)
        data = self._make_data(rows, targets, groups, score)
        prototype._check_memory(data.samples, rows)
        search = self._search(data, grid, callback)
        return self._set_results(search), search.progress.stopped_by

    def _check_grid(self) -> Grid:
        check_flag(exhaustive=self.exhaustive)
        gammas = make_values("gammas", self.gammas, LEAST_GAMMA, LARGEST_GAMMA, middle=1.0)
        return Grid(gammas, self._epsilons(), make_values("Cs", self.Cs, LEAST_C, LARGEST_C, middle=1.0))

    def _take_rows(
        self, prototype: DualMachine, X: Any, y: Any, sample_weight: Any
    ) -> tuple[TrainingRows, NDArray[Any], Vector]:
        """Validated rows of positive weight, all targets, all weights; sets `n_features_in_`, `feature_names_in_`."""
        X, targets = prototype._accept_rows(X, y)
        self._take_features(prototype)
        weights = check_weights(sample_weight, X)
        return prototype._take_rows(X, targets, weights), targets, weights

    def _scale_gammas(self, rows: TrainingRows, gammas: Vector) -> Vector:
        """The gammas to try: automatic ones are multiples of that of "scale"; a kernel without gamma has that one."""
        scale = resolve_gamma("scale", rows.X, rows.weights, is_gram=self.kernel == "precomputed")
        if callable(self.kernel) or self.kernel in WITHOUT_GAMMA:
            return np.array([scale])
        return gammas if np.iterable(self.gammas) else scale * gammas

    def _make_data(self, rows: TrainingRows, y: NDArray[Any], groups: Any, score: Score) -> SearchData:
        """The rows of positive weight, and the folds in their numbering."""
        n, kernel = len(y), self._make_kernel(1.0)
        place = positions(rows.kept, n)
        splits = [
            Split(*split).renumber(place) for split in make_splits(self.cv, y, groups, classifier=is_classifier(self))
        ]
        samples = make_samples(rows.X, sample_form(kernel, rows.X) if self.fit_intercept else kernel.sample_form)
        data = SearchData(samples, self._cv_problem(rows), rows.weights, splits, rows.kept, score)
        if not all(len(split.test) for split in splits):
            raise ValueError(f"cv must give folds with test rows of positive weight, got {shown(self.cv)}")
        if fault := data.first_fault():
            raise ValueError(f"cv: the training rows of fold {fault[0]} have {fault[1]}")
        return data

    def _make_kernel(self, gamma: float) -> Kernel:
        return named_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _search(self, data: SearchData, grid: Grid, callback: Callback | None) -> Search:
        limits = self._prototype()._settings(self._make_kernel(1.0)).limits
        title, budget = type(self).__name__, resolve_memory_budget(self.memory_budget)
        with (
            Progress(max_time=self._search_time(), verbose=self.verbose, title=title, callback=callback) as progress,
            ThreadTeam(self.n_jobs) as team,
        ):
            search = Search(data, grid, self._make_kernel, limits, budget, progress, team)
            search.run(make_rng(self.random_state, seed_of_none=0), exhaustive=bool(self.exhaustive))
        return search

    def _set_results(self, search: Search) -> dict[str, float]:
        """Set the fitted attributes but `best_estimator_`; return the parameters of the best cell."""
        cell, self.best_score_ = _best_seen(search)
        best = search.grid.parameters(cell, self._names)
        for name, value in best.items():
            setattr(self, f"{name}_", value)
        self.Cs_, self.gammas_ = search.grid.Cs, search.grid.gammas
        self.scores_ = search.scores[:, :, 0]
        if "epsilon" in self._names:
            self.epsilons_, self.scores_ = search.grid.epsilons, search.scores
        cells = [search.grid.parameters(index, self._names) for index in np.ndindex(search.grid.shape)]
        self.cv_results_ = cv_results(cells, search.scores.reshape(len(search.scores), -1))
        self.history_ = search.history.as_arrays()
        scores = search.scores[np.broadcast_to(search.remaining, search.scores.shape)]
        n_missing = int(np.isnan(scores).sum())
        if search.progress.stopped_by and n_missing:
            chosen = ", ".join(f"{name}={value:.6g}" for name, value in best.items())
            self._warn_of_stop(
                search.progress.stopped_by,
                f"too early: {n_missing} of {len(scores)} cells ({', '.join(self._names)} and fold) were not scored "
                f"(NaN in scores_). The best so far: {chosen}.",
            )
        return best


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
