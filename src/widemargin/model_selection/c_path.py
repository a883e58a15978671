"""The choice of C: linear machines for a path of values, and their scores in cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, indexable

from .._memory import memory_plan
from .._progress import Progress
from .._types import Matrix, RowIndices, Vector
from ..data import compute_rows, compute_values
from ..data.csr import check_sparse
from ..data.rows import spread_rows
from ..estimators._estimator import warn_of_stop
from ..estimators._linear_machine import LinearMachine
from ..estimators._training_warnings import PROBE_ROWS, rows_of_each_class
from ._best_estimator import explain_nan, find_scorer, make_splits, try_score


@dataclass
class CPath:
    """Machines for several C.

    Attributes
    ----------
    Cs : ndarray of shape (n_C,)
    models : list of OCASClassifier or OCASRegressor
        Fitted on all data, one for each C.
    scores : ndarray of shape (n_folds, n_C)
        On the rows of each test fold; of a stopped search, of the folds that were finished.
    """

    Cs: Vector
    models: list[LinearMachine]
    scores: Matrix

    @property
    def best(self) -> LinearMachine:
        """The machine whose C has the best mean score; of equal ones that with the smallest C.

        Raises
        ------
        ValueError
            If the search was stopped before any fold was finished.
        """
        if not len(self.scores):
            raise ValueError("scores must have at least one fold, but the search was stopped before: give it more time")
        means = self.scores.mean(axis=0)
        return self.models[min(np.flatnonzero(means == means.max()), key=lambda k: self.Cs[k])]


def C_path(
    estimator: LinearMachine,
    X: ArrayLike,
    y: ArrayLike,
    Cs: Sequence[float],
    *,
    cv: Any = None,
    scoring: Any = None,
) -> CPath:
    """Train for every C, on all data and on each training fold, with planes shared along the path.

    `OCASClassifierCV` does the same as an estimator, and trains on all data for the best C alone.

    Parameters
    ----------
    estimator : OCASClassifier or OCASRegressor
        Its other parameters; it is not changed. `max_time` is for the whole search.
    X, y : as its `fit`
    Cs : sequence of float
        An ascending order is the cheapest.
    cv : int, splitter or None, default=None
        As in scikit-learn, but None means five stratified folds of rows in a random order (of a fixed seed).
    scoring : str, callable or None, default=None
        As in scikit-learn: None means the estimator's score.

    Returns
    -------
    CPath

    Warns
    -----
    ConvergenceWarning
        When `max_time` or Ctrl-C stopped it, or a fit of it: folds that were not finished have no scores. For machines
        that `max_iter` ended, as of `OCASClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import C_path, OCASClassifier
    >>> path = C_path(OCASClassifier(tol=1e-5), *load_iris(return_X_y=True), Cs=[0.01, 0.1, 1, 10])
    >>> path.scores.shape
    (5, 4)
    >>> path.best.C
    10
    """
    X, y = compute_rows(X, memory_plan(estimator)), compute_values(y)
    if sp.issparse(X):
        check_sparse(X)  # before any of its rows are taken
    X, y = indexable(X, y)
    Cs = list(Cs)
    score = find_scorer(estimator, scoring, np.asarray(y))
    with Progress(max_time=estimator.max_time, title="C_path") as progress:
        splits = make_splits(cv, np.asarray(y), None, classifier=is_classifier(estimator))
        data = LabelledRows(X, y, None)
        check_fold_memory(estimator, data, splits)

        def score_of(test: RowIndices) -> Callable[[Any], float]:
            return partial(_call, score, _safe_indexing(X, test), _safe_indexing(y, test))

        try_scorer(estimator, data, Cs, splits, score_of)
        rows_left = np.shape(y)[0] + sum(len(train) for train, _ in splits)
        models, is_cut = _fit_share(estimator, data, Cs, progress, rows_left)
        folds, folds_are_cut = score_folds(estimator, data, Cs, splits, score_of, progress)
    scores = np.array(folds).reshape(-1, len(Cs))
    if reason := progress.stopped_by or ("max_time" if is_cut or folds_are_cut else None):
        n_open = sum(not model.converged_ for model in models)
        state = f"after {len(folds)} of {len(splits)} folds; {n_open} of {len(models)} models had not converged."
        warn_of_stop("C_path", reason, state)
    return CPath(np.array(Cs, dtype=np.float64), models, scores)


class LabelledRows(NamedTuple):
    """Rows X (n, d), labels (n,) and weights (n,) or None."""

    X: Any
    y: Any
    weights: Any

    def take(self, rows: RowIndices) -> LabelledRows:
        """Some of the rows."""
        return LabelledRows(*(None if column is None else _safe_indexing(column, rows) for column in self))


def check_fold_memory(
    estimator: LinearMachine, data: LabelledRows, splits: Sequence[tuple[RowIndices, RowIndices]]
) -> None:
    """Raise a ValueError with the least memory budget if the copy of a fold's training rows exceeds this one."""
    n, X = max((len(train) for train, _ in splits), default=0), data.X
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else getattr(X, "nbytes", 0)
    memory_plan(estimator).require(size * n / len(data.y), f"a copy of the {n} training rows of a fold")


def try_scorer(
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


def score_folds(
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


def _call(score: Callable[..., float], X: Any, y: Any, model: Any) -> float:
    try:
        return score(model, X, y)
    except StopIteration as error:
        raise RuntimeError("scoring: the callable raised StopIteration") from error


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
