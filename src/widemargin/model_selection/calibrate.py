"""`calibrate`: probabilities of a trained machine, from held-out decision values that need no other machine.

An early machine is one machine for each cluster (Lemma 1), so its cross-validation is the clusters' own: folds inside
each cluster, on one kernel matrix. Those of an exact machine are of all rows.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from .._types import Given, Labels, Matrix, Model, RowIndices, Rows
from ..algorithms.held_out import Fold, HeldOutSolver
from ..algorithms.held_out_clusters import ClusteredHeldOut
from ..data import compute_rows, compute_values
from ..data.samples import make_samples
from ..estimators import DCSVMClassifier
from ..estimators._estimator import warn_of_stop
from ..estimators._kernel_machine import TrainingRows
from ..estimators._predictor import ordered_votes
from ..estimators._scale import sample_form
from ..estimators._validation import check_choice, check_integer, check_weights, make_rng
from ..estimators._wrapped import unwrap
from ..models.clustered import ClusteredExpansion
from ._cv_problem import Classification
from ._grid_race import samples_of


def calibrate(
    model: Model,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    method: str = "sigmoid",
    n_folds: int = 5,
    random_state: Given = None,
) -> CalibratedClassifierCV:
    """A classifier with `predict_proba`, around a machine that stays as it is.

    Parameters
    ----------
    model : estimator
        A fitted `DCSVMClassifier`, early or exact; or a `DCSVMClassifierCV`, a pipeline or a frozen estimator with one
        as its last step.
    X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
        The rows that it was trained on; of a pipeline those before its first step.
    y : array-like of shape (n_samples,)
        Their labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Their weights, as in `fit`.
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        The curve from a decision value to a probability: with two parameters (Platt's), or any that rises, which wants
        some thousand rows. With several classes, one for each against the rest, scaled to the sum 1.
    n_folds : int, default=5
        The held-out values of a fold are those of machines trained on the other folds.
    random_state : int, RandomState instance or None, default=None
        Of the folds, which have equally many rows of each class; None is a fixed seed.

    Returns
    -------
    CalibratedClassifierCV
        scikit-learn's, fitted. Its decision values are those of `model`; `to_onnx` (method "sigmoid"), `save` and
        `compress` take it.

    Raises
    ------
    ValueError
        Naming `model` or its parameter if it is another, X if its shape is not that of the rows of the fit, or y if it
        has other classes or, of two, one with a single row.

    Warns
    -----
    ConvergenceWarning
        If Ctrl-C has stopped it, with how many rows' values the curves were fitted.

    Notes
    -----
    An early machine costs `n_folds` solves of each cluster, without its division into clusters; an exact one as many
    solves of all rows, on one kernel matrix if it fits in the memory budget. Values of rows that two clusters decide
    are those of the nearer one. For rows that the model has not seen take
    ``CalibratedClassifierCV(FrozenEstimator(model))``, for other machines ``CalibratedClassifierCV(model,
    ensemble=False)``, which trains them `cv` times more.

    References
    ----------
    J. Platt, "Probabilistic Outputs for Support Vector Machines", 1999; C.-J. Hsieh, S. Si, I. S. Dhillon, "A
    Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014, Lemma 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import DCSVMClassifier, calibrate
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DCSVMClassifier().fit(X, y)
    >>> calibrate(model, X, y).predict_proba(X[:2]).round(2)[:, :3]
    array([[0.95, 0.  , 0.  ],
           [0.  , 0.98, 0.  ]])
    """
    check_choice("method", method, ("sigmoid", "isotonic"))
    check_integer("n_folds", n_folds, 2)
    steps, machine = _parts(model)
    X = compute_rows(X, memory_plan(machine))
    for step in steps:
        X = step.transform(X)
    rows, routed = _training_rows(machine, X, compute_values(y), compute_values(sample_weight))
    rng = make_rng(random_state, seed_of_none=0)
    values = _held_out_values(machine, rows, routed, _deal(rows.y, n_folds, rng))
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    scores = values[known] if len(rows.classes) == 2 else ordered_votes(values[known], len(rows.classes))
    curves = CalibratedClassifierCV(_HeldOutScores(), method=method, ensemble=False, cv=[(np.arange(len(known)),) * 2])
    with config_context(enable_metadata_routing=False):
        curves.fit(scores, rows.classes[rows.y[known]], sample_weight=rows.weights[known])
    return _around(model, curves)


def _parts(model: Model) -> tuple[list[Any], DCSVMClassifier]:
    """The steps before the machine, and the machine; a ValueError for what is none."""
    steps: list[Model] = []
    machine = unwrap(model)
    while isinstance(machine, Pipeline):
        steps += [step for _, step in machine.steps[:-1] if step not in (None, "passthrough")]
        machine = unwrap(machine.steps[-1][1])
    if not isinstance(machine, DCSVMClassifier):
        raise ValueError(
            f"model must be a DCSVMClassifier, or end in one, got {machine!r}: "
            "sklearn.calibration.CalibratedClassifierCV(model, ensemble=False) trains others again for each fold"
        )
    check_is_fitted(machine)
    if machine.decision_function_shape != "ovr" and len(machine.classes_) > 2:
        raise ValueError(
            "decision_function_shape must be 'ovr' for a value of each class, got "
            f"{machine.decision_function_shape!r}: set_params changes it without another fit"
        )
    return steps, machine


def _training_rows(machine: DCSVMClassifier, X: Given, y: Given, sample_weight: Given) -> tuple[TrainingRows, Any]:
    """The rows of positive weight, and these as the machine predicts them; a ValueError if they are other ones."""
    checked, shape = copy(machine), getattr(machine, "shape_fit_", None)
    X, targets = checked._accept_rows(X, y, reset=False)
    if shape not in (None, X.shape):
        raise ValueError(
            f"X must be the rows that the model was trained on, of shape {shape}, got shape {X.shape}: "
            "CalibratedClassifierCV(FrozenEstimator(model)) takes other rows"
        )
    rows = checked._take_rows(X, targets, check_weights(sample_weight, X))
    if not np.array_equal(rows.classes, machine.classes_):
        raise ValueError(f"y must have the classes of the model, {machine.classes_}, got {rows.classes}")
    counts = np.bincount(rows.y)
    if len(counts) == 2 and counts.min() < 2:
        raise ValueError(f"y must have two rows of each class, got one of class {rows.classes[counts.argmin()]!r}")
    return rows, X[rows.kept]


def _deal(y: Labels, n_folds: int, rng: np.random.Generator) -> list[RowIndices]:
    """The rows of each fold, ascending: those of a class, in a random order, are dealt out one by one."""
    fold = np.empty(len(y), np.intp)
    fold[np.lexsort((rng.permutation(len(y)), y))] = np.arange(len(y)) % n_folds
    return [np.flatnonzero(fold == k) for k in range(min(n_folds, len(y)))]


def _held_out_values(machine: DCSVMClassifier, rows: TrainingRows, X: Rows, tests: list[RowIndices]) -> Matrix:
    """Decision values (n, n_pairs) of the rows by machines that have not seen them; NaN where it was stopped."""
    kernel, n = machine._make_kernel(), len(rows.y)
    problem = Classification(rows.y, rows.classes, machine.fit_intercept, machine.class_weight, "ovr", False)
    training = [np.where(np.isin(np.arange(n), test), 0.0, rows.weights) for test in tests]
    duals = [problem.duals(weights, 0.0) for weights in training]
    folds = [Fold(test, own, [float(machine.C)]) for test, own in zip(tests, duals, strict=True)]
    limits, memory = machine._settings(kernel, n).limits, memory_plan(machine)
    values = np.full((n, len(problem.machines)), np.nan)
    with (
        Progress(max_time=None, verbose=machine.verbose, title="calibrate") as progress,
        blas_limit(1),
        ThreadTeam(machine.n_jobs) as team,
    ):
        form = sample_form(kernel, rows.X) if machine.fit_intercept else kernel.sample_form
        samples = samples_of(kernel, make_samples(rows.X, form))
        if isinstance(machine._model, ClusteredExpansion):
            labels = machine._model.router.route(X, team)
            clusters = [np.flatnonzero(labels == c) for c in np.unique(labels)]
            clustered = ClusteredHeldOut(clusters, problem.machines, n, limits, memory, progress, team)
            for found in clustered.held_out_values(kernel, samples, folds, range(len(clusters))):
                values[found.rows] = found.values[0]
        else:
            whole = HeldOutSolver(problem.machines, limits, memory["folds"], progress, team)
            for fold, of_fold in zip(folds, whole.held_out_values(kernel, samples, folds), strict=True):
                values[fold.test] = of_fold[0]
    if progress.stopped_by:
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if len(np.unique(rows.y[known])) < len(rows.classes):
            raise KeyboardInterrupt("calibrate was stopped before there were held-out values of every class")
        warn_of_stop("calibrate", progress.stopped_by, f"with the held-out values of {len(known)} of {n} rows.")
    return values


class _HeldOutScores(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are their own decision values, so that scikit-learn fits curves to these."""

    def fit(self, X: Matrix, y: Given, sample_weight: Given = None) -> Self:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Matrix) -> Matrix:
        return X[:, 0] if X.shape[1] == 1 else X

    predict = decision_function  # scikit-learn wants it, and does not call it


def _around(model: Model, curves: CalibratedClassifierCV) -> CalibratedClassifierCV:
    """The calibrated classifier of a model, from one that was fitted to its held-out values."""
    curves.set_params(estimator=FrozenEstimator(model), cv=None)
    curves.calibrated_classifiers_[0].estimator = model
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(curves, name, getattr(model, name))
    return curves
