"""`LinearMachine`, the base of machines that are trained by cutting planes: a fit, a path of C, predictions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._memory import MemoryPlan, memory_plan
from .._progress import AnyProgress, Progress, share_time
from .._threads import ThreadTeam, blas_limit, row_blocks
from .._types import AnyArray, Given, Labels, Matrix, RowIndices, Rows, Vector
from ..algorithms.ocas import OCASSettings, Trained, train_path
from ..data import DesignMatrix, compute_values, open_design_matrix
from ..data.csr import canonical, prefers_csr
from ..data.rows import occupied_columns, restore_columns
from ..models.linear import LinearModel
from ..solvers.cutting_plane.losses import Loss
from ..solvers.results import History, LinearResult
from ._estimator import Estimator, describe_gap, relative_gap, warn_unconverged
from ._fitted_state import FittedState
from ._predictor import convert_in_blocks
from ._row_function import Response
from ._validation import (
    FLOATS,
    LARGEST_ENTRY,
    check_choice,
    check_flag,
    check_integer,
    check_magnitude,
    check_number,
    check_regression_data,
    check_resources,
    check_training_data,
    check_weights,
    shown,
    validate_rows,
)

_START_POINTS = 24  # of a warm start: each costs a third of a round
_PASSES = 128  # over X, about, that a fit has: all of them decide whether it has more than one thread
# a dense array is held as CSR if it has more values than the first, at least so many columns, and at most such a share
# of non-zeros: others' products are as fast as they are
_LARGE, _LEAST_COLUMNS, _DENSITY = 2**20, 192, 1 / 8
_NONZEROS_PART = 1 / 4  # of the memory budget, at most
_VECTORS = 14  # of n that a machine's training holds
_LEAST_VECTORS = 11  # of them, those that it cannot do without
_LEAST_NORMALS = 6  # vectors of d that it cannot do without: planes, points and search directions


class ValidatedRows(NamedTuple):
    """Samples X (n, d) in memory, in a file or on a cluster; labels (n,); weights (n,), or None where all are 1."""

    X: Rows
    labels: AnyArray
    weights: Vector | None
    columns: RowIndices | None = None  # of the user's X that X has, where it has not all
    groups: Labels | None = None  # (n,), of a ranking


class LinearProblem(NamedTuple):
    """What a fit solves: a machine for each loss on the same samples. Losses hold vectors of n: made when needed."""

    X: DesignMatrix
    losses: list[Callable[[], Loss]]
    n_outputs: int  # of each loss


def check_objective_at_zero(C: float, losses: float, data: str) -> None:
    """Raise a ValueError that names the `data` unless the objective at w = 0, C times all `losses`, is finite."""
    most = np.finfo(np.float64).max / max(1.0, losses)
    if float(C) > most:
        raise ValueError(f"C must be at most {most:g} with {data}, got {shown(C)}")


class LinearMachine(Estimator[ValidatedRows]):
    """A machine that is trained by cutting planes.

    A subclass has `_make_problem`.
    """

    _memory_kinds = ("linear machine",)
    C: float
    tol: float
    mu: float
    acceleration: str | None
    fit_intercept: bool
    max_iter: int
    n_jobs: int | None
    line_search: bool = True  # for machines without these parameters
    warm_start: bool = False
    n_features_in_: int
    _is_single_function = False  # whether `coef_` is (n_features,)

    def __sklearn_tags__(self) -> Tags:
        """Sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("tol", self.tol, above=0)
        check_number("mu", self.mu, above=0)
        if self.mu > 1:
            raise ValueError(f"mu must be at most 1, got {shown(self.mu)}")
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ("auto", None))
        check_integer("max_iter", self.max_iter, 1)
        check_flag(fit_intercept=self.fit_intercept, line_search=self.line_search, warm_start=self.warm_start)
        check_resources(self)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array, dask array, dask data frame} of shape (n_samples, n_features)
            The rows of a dask collection stay on the workers of the active client's cluster.
        y : array-like or dask collection of shape (n_samples,)
            Of a classifier labels of any kind, of at least two classes; of a regressor numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each sample, >= 0.
        """
        with self._fitting(X, y, sample_weight) as (data, progress):
            self._train([self], data, progress)
            if not progress.stopped_by:
                self._warn_of_machine(data)
        return self

    def fit_path(
        self, X: ArrayLike, y: ArrayLike, Cs: Sequence[float], sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Train a machine for each of several C, at a fraction of the cost of separate fits.

        What a fit learns of the risk does not depend on C: each machine goes on with the planes of those before it.

        Parameters
        ----------
        X, y, sample_weight : as `fit`
        Cs : sequence of float
            In this order; an ascending one is the cheapest.

        Returns
        -------
        list of estimators
            Fitted copies of this estimator, which stays as it is. `max_time` is for all of them together.
        """
        models = self._models_of(Cs)
        with models[0]._fitting(X, y, sample_weight) as (data, progress):
            models[0]._train(models, data, progress)
        return models

    def _models_of(self, Cs: Sequence[float]) -> list[Self]:
        """An unfitted copy of this estimator for each C, with valid parameters."""
        models = [clone(self).set_params(C=C) for C in Cs]
        if not models:
            raise ValueError("Cs must have at least one value, got none")
        for model in models:
            model._check_parameters()
        return models

    def _warn_of_machine(self, data: ValidatedRows) -> None:
        """Warn of a machine, trained to the end, that has learned nothing."""

    def _make_problem(self, X: DesignMatrix, data: ValidatedRows, C: float, team: ThreadTeam) -> LinearProblem:
        """The problem, whose objectives at w = 0 have a finite sum for this C."""
        raise NotImplementedError

    def _check_targets(self, X: Given, y: Given) -> tuple[Rows, AnyArray]:
        check = check_training_data if isinstance(self, ClassifierMixin) else check_regression_data
        return check(self, X, y)

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> ValidatedRows:
        X, labels = self._check_targets(X, y)
        is_sparse, columns = sp.issparse(X), None
        if is_sparse or type(X) is np.ndarray:  # neither a file, which would be read once more, nor remote rows
            check_magnitude("X", X, LARGEST_ENTRY)
        weights = None if sample_weight is None else check_weights(compute_values(sample_weight), labels)
        if is_sparse:
            X = canonical(X)  # norms of rows are sums of squared entries
            # with a warm start, other samples may follow, which hold values in other columns
            X, columns = (X, None) if self.warm_start else occupied_columns(X)
        return ValidatedRows(X, labels, weights, columns)

    def _train(self, models: Sequence[Self], data: ValidatedRows, progress: Progress) -> None:
        """Train models that differ from this estimator in C alone."""
        settings, Cs = self._settings(), [float(model.C) for model in models]  # NumPy's float32 would spread
        X, settings = _hold_nonzeros(data.X, settings)
        n, d = len(data.labels), X.shape[1]
        with (
            blas_limit(1, float(n) * d * max(n, d)),  # the products are bound by memory, with any number of threads
            ThreadTeam(self.n_jobs, _PASSES * float(n) * d) as team,
            open_design_matrix(X, team, settings.memory.budget) as matrix,
        ):
            if matrix.shape[0] != n:
                check_consistent_length(matrix, data.labels)
            problem = self._make_problem(matrix, data, max(Cs), team)
            self._check_memory(problem, memory_plan(self), len(models))
            for model, trained in zip(models, self._train_path(problem, Cs, settings, progress, team), strict=True):
                model._set_attributes(self, data.columns, *trained)
                model._warn_if_stopped(progress, trained[0])

    def _check_memory(self, problem: LinearProblem, memory: MemoryPlan, n_models: int) -> None:
        (n, d), n_features = problem.X.shape, self.n_features_in_
        k = len(getattr(self, "classes_", ())) or 1
        classes = f" and {k} classes" if k > 1 else ""
        needed = 8 * (problem.n_outputs * (_LEAST_VECTORS * n + _LEAST_NORMALS * d) + n_models * k * n_features)
        memory.require(needed, f"{n} rows of {n_features} features{classes}")

    def _train_path(
        self, problem: LinearProblem, Cs: Sequence[float], settings: OCASSettings, progress: Progress, team: ThreadTeam
    ) -> Iterable[Trained]:
        """The machines for each C: in groups one after the other, where memory has no room for all decision values."""
        losses, start = problem.losses, self._warm_start_points(problem)
        size = settings.memory["vectors"] // (_VECTORS * 8 * max(problem.X.shape[0], 1))
        groups = row_blocks(len(losses), max(size, 1))
        if len(groups) == 1:
            return train_path(problem.X, [make() for make in losses], Cs, settings, progress, start, team)
        progress.stage("classes", len(groups))

        def train(group: slice, before: list[Trained] | None, share: AnyProgress) -> list[Trained]:
            some, points = [make() for make in losses[group]], start and start[group]
            path = list(train_path(problem.X, some, Cs, settings, share, points, team))
            progress.advance()
            return path

        paths = share_time(train, groups, [1] * len(groups), progress, lambda _: True)
        return [_join_groups(machines) for machines in zip(*paths, strict=True)]

    def _settings(self) -> OCASSettings:
        return OCASSettings(
            C=float(self.C),
            tol=float(self.tol),
            mu=float(self.mu),
            line_search=self.line_search,
            is_plain=self.acceleration is None,
            max_iter=self.max_iter,
            memory=memory_plan(self),
            keep_points=self.warm_start,
        )

    def _warm_start_points(self, problem: LinearProblem) -> list[Matrix] | None:
        """With `warm_start`, for each loss points (n_points, q n_features) that the fitted machine has; else None.

        None, too, if the fitted machine was of another shape.
        """
        points: list[Matrix] = (getattr(self, "_points", []) or self._best_points(problem)) if self.warm_start else []
        sizes = [problem.n_outputs * problem.X.shape[1]] * len(problem.losses)
        return points if points and [own.shape[1] for own in points] == sizes else None

    def _best_points(self, problem: LinearProblem) -> list[Matrix]:
        """The fitted machine as a point (1, q n_features) for each loss: all that a fit without `warm_start` leaves."""
        W: Matrix = np.atleast_2d(getattr(self, "coef_", np.empty((0, 0))))
        if problem.n_outputs == 1 or not len(W):
            return list(W[:, None])
        W = np.column_stack([W, self.intercept_]) if self.fit_intercept else W
        W = np.concatenate([-0.5 * W, 0.5 * W]) if len(W) == 1 else W
        return [W.reshape(1, -1)]

    def _snapshot(self, data: ValidatedRows, progress: Progress) -> dict[str, Any] | None:
        if progress.current_solution is None:
            return None
        stopped = copy.copy(self)
        stopped._set_attributes(self, data.columns, *progress.current_solution)
        return dict(stopped.__dict__)

    def _set_attributes(
        self, checked: Self, columns: RowIndices | None, results: list[LinearResult], history: History
    ) -> None:
        """Set the fitted attributes. `checked` has validated the data: its classes and features are taken over."""
        for name in ("classes_", "n_features_in_", "feature_names_in_") if checked is not self else ():
            if hasattr(checked, name):
                setattr(self, name, getattr(checked, name))
        W = np.concatenate([result.w for result in results])
        intercept = np.concatenate([result.intercept for result in results])
        if W.shape[1] > (self.n_features_in_ if columns is None else len(columns)):  # the constant column comes last
            W, intercept = W[:, :-1], W[:, -1].copy()
        if len(W) == 2:  # Crammer and Singer's outputs for two classes
            W, intercept = W[1:] - W[:1], intercept[1:] - intercept[:1]
        W = restore_columns(np.ascontiguousarray(W), columns, self.n_features_in_)
        self.coef_ = W[0] if self._is_single_function else W
        self.intercept_ = intercept
        self.objective_ = float(sum([result.objective for result in results]))
        self.dual_gap_ = float(sum([result.gap for result in results]))
        self.relative_gap_ = relative_gap(self.objective_, self.dual_gap_)
        self.converged_ = all(result.converged for result in results)
        self.n_iter_ = max(1, len(history))
        self.history_ = history.as_arrays()
        self._points = [_start_points(result) for result in results] if self.warm_start else []

    @property
    def _model(self) -> LinearModel:
        return LinearModel(np.atleast_2d(self.coef_), self.intercept_)

    def _decision_values(self, X: Given, convert: Response | None = None) -> AnyArray:
        """Decision values (n, n_functions), or `convert` of them, block by block within the memory budget."""
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        model = self._model
        memory = memory_plan(self)
        compute: Callable[[Any], Matrix] = partial(model.decision_values, n_jobs=self.n_jobs, memory=memory)
        return convert_in_blocks(compute, convert, X, len(model.coef), memory)

    def _check_linear_state(self, fitted: FittedState, n_functions: int) -> None:
        fitted.array("intercept_", np.float64, n_functions)
        fitted.check_certificate()
        points = fitted.nested("_points")
        for i in points:
            points.array(i, np.float64, None, None)

    def _warn_if_stopped(self, progress: Progress, results: list[LinearResult]) -> None:
        if not progress.ended_with_outer:
            reason = next((result.stopped_by for result in results if not result.converged), None)
            warn_unconverged(self, progress.stopped_by or reason, f"{describe_gap(self)} where tol={self.tol:g}")


class SingleFunction(LinearMachine):
    """A linear machine of one function, of weights `coef_` (n_features,) as scikit-learn's regressors."""

    _is_single_function = True

    def _check_state(self, fitted: FittedState) -> None:
        fitted.array("coef_", np.float64, fitted.integer("n_features_in_", 1))
        self._check_linear_state(fitted, 1)


def _hold_nonzeros(X: Rows, settings: OCASSettings) -> tuple[Rows, OCASSettings]:
    """X (n, d) as CSR where it is a large dense array of few non-zeros; and the settings, less the memory for these."""
    if settings.is_plain or type(X) is not np.ndarray or X.size <= _LARGE:
        return X, settings
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        return X, settings
    most_bytes = _DENSITY * X.size * (X.itemsize + np.dtype(np.int32).itemsize)
    if most_bytes > _NONZEROS_PART * settings.memory.budget or not prefers_csr(X, _DENSITY, _LEAST_COLUMNS):
        return X, settings
    nonzeros = canonical(X)
    n_bytes = nonzeros.data.nbytes + nonzeros.indices.nbytes + nonzeros.indptr.nbytes
    return nonzeros, replace(settings, memory=settings.memory.less(n_bytes))


def _join_groups(machines: Sequence[Trained]) -> Trained:
    """All machines, and one history of groups that were trained one after the other.

    In it, the machines of later groups count with their objective after round 1.
    """
    history = History()
    initial = [columns.as_arrays()["objective"][0] for _, columns in machines]
    objective = lower_bound = 0.0
    for k, (results, rows) in enumerate(machines):
        columns = rows.as_arrays()
        columns["objective"] += objective + sum(initial[k + 1 :])
        columns["lower_bound"] += lower_bound
        for values in zip(*columns.values(), strict=True):
            history.record(**dict(zip(columns, values, strict=True)))
        objective += sum(result.objective for result in results)
        lower_bound += sum(result.lower_bound for result in results)
    return [result for results, _ in machines for result in results], history


def _start_points(result: LinearResult) -> Matrix:
    """The best point, and those where the heaviest planes touch the risk."""
    return np.vstack([result.w.reshape(1, -1), result.points[: _START_POINTS - 1]])
