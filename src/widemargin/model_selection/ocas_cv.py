"""The linear machines that choose C by cross-validation along a path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from .._memory import memory_plan
from .._progress import Callback, Progress
from .._types import AnyArray, Given, Matrix, Model, RowIndices
from ..data.rows import spread_rows
from ..estimators._linear_machine import LinearMachine
from ..estimators._predictor import Regressor
from ..estimators._training_warnings import PROBE_ROWS, rows_of_each_class, wild_rows
from ..estimators._validation import check_weights, shown
from ..estimators.ocas import OCASClassifier
from ..estimators.ocas_regressor import OCASRegressor
from ._best_estimator import (
    BestClassifier,
    BestEstimator,
    Found,
    Score,
    cv_results,
    explain_nan,
    make_splits,
    try_score,
)
from ._grid_race import make_values

_C_RANGE = 1e-4, 10.0  # of an automatic path


class LabelledRows(NamedTuple):
    """Rows X (n, d), labels (n,) and weights (n,) or None."""

    X: Given
    y: Given
    weights: Any

    def take(self, rows: RowIndices) -> LabelledRows:
        """Some of the rows."""
        return LabelledRows(*(None if column is None else _safe_indexing(column, rows) for column in self))


class PathSearch(BestEstimator):
    """Base of linear machines with C chosen along a path: in each fold a machine goes on with the planes before it."""

    Cs: Given
    cv: Given
    verbose: int

    def _search(self, X: Given, y: Given, sample_weight: Given, groups: Given, callback: Callback | None) -> Found:
        Cs = make_values("Cs", self.Cs, *_C_RANGE, middle=1.0)
        machine: LinearMachine = self._prototype()
        machine._check_parameters()
        rows = self._check_rows(machine, X, y, sample_weight)
        self.Cs_ = Cs * self._path_unit(rows.y) if np.ndim(self.Cs) == 0 else Cs
        splits = make_splits(self.cv, rows.y, groups, classifier=is_classifier(self))
        self._check_folds(splits, rows)
        if not is_classifier(self) and machine.loss != "squared_epsilon_insensitive":
            numbers = np.arange(len(rows.y)) if rows.weights is None else np.flatnonzero(rows.weights > 0)
            splits = self._without_wild_tests(splits, rows.y, numbers)
        _check_fold_memory(machine, rows, splits)
        scorer = self._find_scorer(machine, rows.y, splits, rows.weights)
        score = _score_on_user_rows(self._make_score(scorer, X, rows.y, rows.weights), machine)
        scores, stopped_by = self._score(machine, rows, splits, score, callback)
        self._set_results(scores, stopped_by)
        return Found({"C": self.C_}, stopped_by)

    def _check_rows(self, machine: LinearMachine, X: Given, y: Given, sample_weight: Given) -> LabelledRows:
        """Validated rows; sets `n_features_in_`, and `feature_names_in_` where there are any."""
        X, y = machine._check_targets(X, y)
        self._take_features(machine)
        return LabelledRows(X, y, None if sample_weight is None else check_weights(sample_weight, y))

    def _path_unit(self, y: AnyArray) -> float:
        """What the values of an automatic path are multiples of."""
        return 1.0

    def _check_folds(self, splits: list[Any], rows: LabelledRows) -> None:
        """Raise a ValueError if the rows of a fold cannot be trained or tested on."""
        raise NotImplementedError

    def _score(
        self,
        machine: LinearMachine,
        rows: LabelledRows,
        splits: list[Any],
        score: Score,
        callback: Callback | None,
    ) -> tuple[Matrix, str | None]:
        """Scores (n_folds, n_Cs), NaN where there was no time, and what stopped the search."""
        scores = np.full((len(splits), len(self.Cs_)), np.nan)
        title = type(self).__name__
        with Progress(max_time=self._search_time(), verbose=self.verbose, title=title, callback=callback) as progress:
            _try_scorer(machine, rows, self.Cs_.tolist(), splits, score)  # a Ctrl-C in its fit ends the search
            folds, is_cut = _score_folds(machine, rows, self.Cs_.tolist(), splits, score, progress)
        scores[: len(folds)] = np.array(folds).reshape(-1, len(self.Cs_))
        return scores, progress.stopped_by or ("max_time" if is_cut else None)

    def _set_results(self, scores: Matrix, stopped_by: str | None) -> None:
        n_seen = int(np.count_nonzero(~np.isnan(scores).any(axis=1)))
        means = scores[:n_seen].mean(axis=0) if n_seen else np.full(len(self.Cs_), np.nan)
        best = int(np.argmax(means)) if n_seen else len(self.Cs_) // 2
        self.C_, self.best_score_ = float(self.Cs_[best]), float(means[best])
        self.scores_ = scores
        self.cv_results_ = cv_results([{"C": C} for C in self.Cs_.tolist()], scores)
        if stopped_by:
            state = f"after {n_seen} of {len(scores)} folds."
            self._warn_of_stop(stopped_by, state, {"C": self.C_}, has_scores=n_seen > 0)


class OCASClassifierCV(BestClassifier, PathSearch):
    """`OCASClassifier` with C chosen by cross-validation along a path, at a fraction of the cost of separate fits.

    In each fold a machine goes on with the planes of those with smaller C (`OCASClassifier.fit_path`).

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C, or how many, log-spaced from 0.0001 to 10.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn, but None means five stratified folds of rows in a random order (of a fixed seed): as for
        `DCSVMClassifierCV`.
    scoring : str, callable or None, default=None
        A scorer of labels or of decision values, as in scikit-learn; None means accuracy.
    loss, class_weight
        Of `OCASClassifier`.
    max_time : float or None, default=None
        Seconds for the whole search; a fifth of them are for the machine that is trained on all rows.
    n_jobs
        Of `OCASClassifier`.

    Other Parameters
    ----------------
    refit : bool, default=True
        Whether a machine with the best C is trained on all rows. Without it there are no predictions.
    tol, fit_intercept, multi_class, max_iter, memory_budget
        Of `OCASClassifier`.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.

    Attributes
    ----------
    C_ : float
        Of the best mean score; of equal ones the smallest.
    best_score_ : float
        NaN if the search was stopped before any fold was finished.
    best_estimator_ : OCASClassifier
        Trained on all rows. Its attributes (`coef_`, `intercept_`, `dual_gap_`, ...) are this object's as well.
    Cs_ : ndarray of shape (n_Cs,)
        The values tried, ascending.
    scores_ : ndarray of shape (n_folds, n_Cs), float64
        NaN in folds that were not finished.
    cv_results_ : dict of ndarrays
        As of `DCSVMClassifierCV`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time` or Ctrl-C ended the search, or a fit of it, with the number of folds seen; and for machines
        that `max_iter` ended, as of `OCASClassifier`. After Ctrl-C the machine is trained for at most 0.4 s.

    Notes
    -----
    Rows are in memory: folds are taken by their numbers. For scikit-learn's callbacks (`set_callbacks`), every fold is
    a task; True ends the search.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import OCASClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OCASClassifierCV(Cs=6).fit(scale(X), y)
    >>> model.scores_.shape, bool(model.best_score_ > 0.96)
    ((5, 6), True)
    """

    _machine_type = OCASClassifier

    def __init__(
        self,
        Cs: Given = 10,
        *,
        cv: Given = None,
        scoring: Given = None,
        loss: str = "hinge",
        class_weight: Given = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        refit: bool = True,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: str = "ovr",
        max_iter: int = 1000,
        memory_budget: int | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.class_weight = class_weight
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.refit = refit
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose

    def _check_folds(self, splits: list[Any], rows: LabelledRows) -> None:
        _check_classes(splits, rows)


class OCASRegressorCV(Regressor, PathSearch):
    """`OCASRegressor` with C chosen by cross-validation along a path, at a fraction of the cost of separate fits.

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C, or how many, log-spaced from 0.0001 to 10; with losses that are not squared times the standard
        deviation of y, without wild targets, so that the units of y do not matter.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn, but None means five folds of rows in a random order (of a fixed seed).
    scoring : str, callable or None, default=None
        As in scikit-learn; None means the coefficient of determination, on test rows without wild targets (see
        `DCSVMRegressorCV`) where losses are not squared, or minus the mean pinball loss of a quantile.
    loss, epsilon, quantile
        Of `OCASRegressor`.
    max_time : float or None, default=None
        Seconds for the whole search; a fifth of them are for the machine that is trained on all rows.
    n_jobs
        Of `OCASRegressor`.

    Other Parameters
    ----------------
    refit : bool, default=True
        Whether a machine with the best C is trained on all rows. Without it there are no predictions.
    tol, fit_intercept, max_iter, memory_budget
        Of `OCASRegressor`.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.

    Attributes
    ----------
    C_, best_score_, best_estimator_, Cs_, scores_, cv_results_, n_features_in_, feature_names_in_
        As of `OCASClassifierCV`.

    Warns
    -----
    ConvergenceWarning
        As `OCASClassifierCV`.
    UserWarning
        As `DCSVMRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import OCASRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OCASRegressorCV(Cs=6, loss="absolute").fit(X / X.std(axis=0), y)
    >>> model.scores_.shape, bool(model.best_score_ > 0.45)
    ((5, 6), True)
    """

    _machine_type = OCASRegressor

    def __init__(
        self,
        Cs: Given = 10,
        *,
        cv: Given = None,
        scoring: Given = None,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        quantile: float = 0.5,
        max_time: float | None = None,
        n_jobs: int | None = None,
        refit: bool = True,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        memory_budget: int | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.refit = refit
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose

    def _path_unit(self, y: AnyArray) -> float:
        ordinary = np.delete(y, wild_rows(y))
        return 1.0 if self.loss == "squared_epsilon_insensitive" else float(ordinary.std()) or 1.0

    def _check_folds(self, splits: list[Any], rows: LabelledRows) -> None:
        if rows.weights is None:
            return
        for k, parts in enumerate(splits):
            for name, part in zip(("training", "test"), parts, strict=True):
                if not (rows.weights[part] > 0).any():
                    raise ValueError(f"cv: the {name} rows of fold {k} have no positive weight")


def _score_on_user_rows(score: Score, machine: LinearMachine) -> Score:
    """The score of models trained on validated rows, given test rows in the user's form: a frame with its columns."""
    names = getattr(machine, "feature_names_in_", None)

    def score_of(test: RowIndices) -> Callable[[Any], float]:
        of_model = score(test)

        def with_names(model: Model) -> float:
            if names is not None:
                model.feature_names_in_ = names
            return of_model(model)

        return with_names

    return score_of


def _check_classes(splits: list[Any], rows: LabelledRows) -> None:
    """Every fold's training rows must have two classes of positive weight, and its test rows a positive weight."""
    counted = np.ones(len(rows.y), np.bool_) if rows.weights is None else rows.weights > 0
    classes = np.unique(rows.y[counted])
    for k, (train, test) in enumerate(splits):
        if not counted[test].any():
            raise ValueError(f"cv: the test rows of fold {k} have no positive weight")
        trained = np.unique(rows.y[train][counted[train]])
        if len(trained) < min(2, len(classes)):
            lacking = shown(np.setdiff1d(classes, trained)[0])
            raise ValueError(
                f"cv: the training rows of fold {k} have rows of fewer than two classes: no row of class {lacking}"
            )


def _check_fold_memory(
    estimator: LinearMachine, data: LabelledRows, splits: Sequence[tuple[RowIndices, RowIndices]]
) -> None:
    """Raise a ValueError with the least memory budget if the copy of a fold's training rows exceeds this one."""
    n, X = max((len(train) for train, _ in splits), default=0), data.X
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else getattr(X, "nbytes", 0)
    memory_plan(estimator).require(size * n / len(data.y), f"a copy of the {n} training rows of a fold")


def _try_scorer(
    estimator: LinearMachine,
    data: LabelledRows,
    Cs: Sequence[float],
    splits: Sequence[tuple[RowIndices, RowIndices]],
    score: Callable[[RowIndices], Callable[[Any], float]],
) -> None:
    """Score a machine of few rows of the first fold: a scorer that raises does so before the search."""
    train, test = (_few(data, rows) for rows in splits[0])
    if len(train) + len(test) < len(data.y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            few, machine = data.take(train), clone(estimator).set_params(max_iter=20, verbose=0)
            (model,) = machine.fit_path(few.X, few.y, Cs[:1], few.weights)
        try_score(score(test), model)


def _few(data: LabelledRows, rows: RowIndices) -> RowIndices:
    """About 1,000 of the rows of positive weight, equally many of each class where there are."""
    rows = rows if data.weights is None else rows[data.weights[rows] > 0]
    classes, numbers = np.unique(_safe_indexing(data.y, rows), return_inverse=True)
    if len(classes) > PROBE_ROWS:
        return rows[spread_rows(len(rows), PROBE_ROWS)]
    return rows[rows_of_each_class(numbers, len(classes))] if len(rows) else rows


def _score_folds(
    estimator: LinearMachine,
    data: LabelledRows,
    Cs: Sequence[float],
    splits: Sequence[tuple[RowIndices, RowIndices]],
    score: Callable[[RowIndices], Callable[[Any], float]],
    progress: Progress,
) -> tuple[list[list[float]], bool]:
    """Scores of the machines for all Cs, (n_folds, n_Cs), of the folds that were finished in time.

    Returned with them is whether the time of a fold ended before its machines had converged. `score` takes the numbers
    of test rows, and returns a function: the score on them of a machine.
    """
    folds: list[list[float]] = []
    folds_are_cut = False
    rows_left = sum(len(train) for train, _ in splits)
    for train, test in splits:
        if not progress.go_on():
            break
        path, is_cut = _fit_share(estimator, data.take(train), Cs, progress, rows_left)
        rows_left -= len(train)
        folds_are_cut = folds_are_cut or is_cut
        if progress.go_on():
            score_of = score(test)
            folds.append([score_of(model) for model in path])
            if np.isnan(folds[-1]).any():
                c = int(np.isnan(folds[-1]).argmax())
                place = f"fold {len(folds) - 1} of {len(test)} held-out rows, for C={Cs[c]:.6g}"
                raise explain_nan(score_of, path[c], place)
            progress.go_on(round=float(len(folds)))
    return folds, folds_are_cut


def _fit_share(
    estimator: LinearMachine, data: LabelledRows, Cs: Sequence[float], progress: Progress, rows_left: int
) -> tuple[list[LinearMachine], bool]:
    """Fit the machines for all Cs, in the share of the time left that their rows are of the rows of all paths left.

    Returned with them is whether this time ended before they had converged.
    """
    if not np.isfinite(progress.deadline):
        return estimator.fit_path(data.X, data.y, Cs, data.weights), False
    begin = perf_counter()
    seconds = max(0.0, progress.deadline - begin) * (len(data.y) / rows_left)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* was stopped by max_time ", ConvergenceWarning)  # the caller warns once
        models = clone(estimator).set_params(max_time=seconds).fit_path(data.X, data.y, Cs, data.weights)
    is_cut = perf_counter() >= begin + seconds and not all(model.converged_ for model in models)
    return [model.set_params(max_time=estimator.max_time) for model in models], is_cut
