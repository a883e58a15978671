"""Kernel machines of bounded size by stochastic gradient descent, as a scikit-learn classifier."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels

from .._memory import memory_plan
from .._progress import Progress
from .._types import AnyArray, ClassWeight, Given, KernelParameter, Labels, RandomState, Rows, Vector
from ..algorithms.bsgd_epochs import BudgetedSGD, EpochSettings, TimedSample, needed_bytes, primal_objective, run_epochs
from ..data import compute_values, is_dask_collection, iterate_blocks
from ..data.labels import one_vs_rest_signs
from ..kernels.functions import FUNCTION_KERNELS
from ..models.expansion import KernelExpansion
from ..solvers.sgd.budgeted_machine import (
    COEF,
    EXCESS_MISTAKES,
    MAINTENANCE,
    MERGE_RULES,
    N_BACK,
    N_FRONT,
    StepSettings,
)
from ._estimator import all_or_nothing, warn_of_stop
from ._fitted_state import FittedState
from ._kernel_machine import ExpansionMachine, TrainingRows
from ._predictor import Classifier, ScorePredictor, argmax_classes
from ._scale import make_checked_samples, warn_of_origin
from ._training_warnings import PROBE_ROWS, warn_of_one_class_on_probe
from ._validation import (
    check_choice,
    check_flag,
    check_has_rows,
    check_integer,
    check_kernel,
    check_labels,
    check_number,
    check_resources,
    check_seed,
    check_weights,
    column_of,
    shown,
    to_float32,
)

_LEAST_LAM = 1e-100  # coefficients are sums of up to 1 / lam, and their squares must be finite
_STREAM_ROWS = 10_000  # n of the default lam = 1 / (C n) of a stream (docs/how/bsgd.md)
_CALLS_KEPT = 1000  # entries of `history_` of a stream, which may have any number of calls
_ESTIMATE_SECONDS = 0.1  # for each of the two sums of a stopped fit's objective
_MOST_NODES = 4096  # of the table, a side: compiled look-ups number the nodes in float32, exact up to 2^24


class BSGDClassifier(Classifier, ScorePredictor, ExpansionMachine):
    r"""Kernel support vector machine with at most `budget` support vectors, by stochastic gradient descent.

    It minimises, over machines of at most `budget` support vectors,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i \max(0, 1 - y_i f(x_i))

    by stochastic gradient steps on one row each. Above the budget, two support vectors are merged into one. Memory and
    the cost of a step and of a prediction are bounded from the start: for data that exceed the memory, and for streams.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses in `fit`, > 0; of a row's loss it is multiplied by the sample's and its class's weight.
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian"} or callable, default="rbf"
        As in `DCSVMClassifier`; maintenance="merge" needs "rbf".
    gamma : {"scale", "auto"} or float, default="scale"
        As in `DCSVMClassifier`. In `partial_fit`, X is the first chunk.
    budget : int, default=100
        Largest number of support vectors, at least 2; of each class's machine if there are more than two classes.
    lam : float or None, default=None
        Weight of :math:`\tfrac12 \|w\|^2` against the *mean* loss, at least 1e-100. None: ``1 / (C n)`` in `fit`;
        `lam_` of an earlier `fit`, else ``1 / (10,000 C)``, in `partial_fit`, where the number of rows is unknown: of
        1e-2 to 1e-6, the best or nearly so on seven of :doc:`eight streams </how/bsgd>`.
    n_epochs : int, default=20
        Passes of `fit` over the rows.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" in `fit` only.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    maintenance : {"merge", "removal", "projection"}, default="merge"
        Budget maintenance of budget + 1 support vectors: merge two; remove the one of least ``coef ** 2 * k(x, x)``; or
        project one onto the span of the others, which takes ``3 budget ** 2`` operations. Removal and projection take
        any kernel.
    merge : {"lookup-wd", "gss-precise"}, default="lookup-wd"
        How the weight degradation of a merger with each candidate is found: from a look-up table, or by golden section
        search to 1e-10, which takes 40 times as long and more.
    table_size : int, default=400
        Nodes a side of the look-up tables, at least 2, at most 4096.
    fit_intercept : bool, default=False
        Whether the machine has an intercept, regularised as in `sklearn.svm.LinearSVC` with intercept_scaling=1.
    average : bool, default=True
        Whether the model is the weighted average over the steps instead of the machine of the last step. Step t has
        ``1 + 3 / t`` times the weight of the step before, ``1 + 3 / t + 1 / budget`` with a merger: machines before the
        last `budget` mergers have little weight, as their support vectors are gone. Averaged coefficients are merged
        like the coefficients, which approximates the average. Where the average makes more mistakes than the machine of
        the last step, it restarts: so it follows a stream that changes.
    early_stopping : bool, default=False
        Whether `fit` sets validation rows aside, measures their weighted accuracy after each pass, returns the best
        model, and ends after three passes in a row without a better one. Must be False for `partial_fit`, as in
        `sklearn.linear_model.SGDClassifier`.
    validation_fraction : float, default=0.1
        Share of the validation rows, in (0, 1).
    max_time : float or None, default=None
        Seconds after which `fit` or `partial_fit` returns the model so far.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that `fit`, `partial_fit` and `predict` may take beyond the data, the copy in float32
        of other data included; None is the value of `widemargin.get_config`. A ValueError names the least that can be
        kept.
    shuffle : bool, default=True
        Whether each pass of `fit` reads the rows in a new random order.
    n_jobs : int or None, default=None
        Threads, over the classes' machines. The model does not depend on it.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For the order of the rows and the choice of validation rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,), float64
        Factor of C for each class, from `class_weight`.
    support_vectors_ : ndarray or CSR array of shape (n_SV, n_features)
        With merging no rows of the data; with removal and projection rows. In the dtype of the data.
    dual_coef_ : ndarray of shape (n_functions, n_SV), float64
        Coefficients; n_functions is 1 for two classes, else n_classes, each with its own support vectors.
    n_support_ : ndarray of shape (n_functions,), int
        Support vectors of each machine.
    intercept_ : ndarray of shape (n_functions,), float64
        Zero without `fit_intercept`.
    coef_ : ndarray of shape (n_functions, n_features), float64
        For the linear kernel.
    lam_ : float
        The `lam` of the steps.
    objective_ : float
        After `fit`: the primal objective of the model, summed over the classes' machines. Of a stopped fit an estimate:
        from random samples of as many support vectors and rows as can be predicted in a fraction of a second.
    converged_ : bool
        Whether all passes were made, or early stopping ended them.
    n_iter_ : int
        Passes begun, or calls of `partial_fit`.
    t_ : int
        Steps made, one a row.
    history_ : dict of ndarrays
        One entry a pass, or a call of `partial_fit`, of which the latest 1,000 are kept: ``time`` in seconds; ``steps``
        so far; over the steps of the pass ``hinge`` (mean loss of the rows, each just before its step), ``violations``
        (share of rows within the margin), ``mergers``, ``removals``, ``merging_frequency`` (mergers a step) and
        ``mean_degradation`` (mean squared weight degradation); ``n_support``; with early stopping
        ``validation_score``, NaN of a later `partial_fit`. Counts and losses are sums over the classes' machines.
    shape_fit_ : tuple of int
        Shape of the training data, or of the latest chunk.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, Ctrl-C or a callback ended the fit before its last row. The model is the average over the steps
        so far; with average=False that of the last step.
    UserWarning
        When a machine of `fit` predicts one class for all of up to 1,000 training rows, equally many of each class.

    Notes
    -----
    A step costs about `budget` times the row's non-zeros multiply-adds, and `budget` exponentials: 0.35 microseconds
    with 22 features and a budget of 100; a merger about as much again. Memory: ``budget * n_features`` numbers a
    machine, and tables of 4 MB. Steps compute in float32, predictions in the dtype of the data; float32 data are read
    in place, from a memory map too, others are copied. There is no certificate: a lower bound of the optimum takes all
    rows at once, and no machine of a small budget comes near it.

    Differences from the papers, beside :doc:`five </how/bsgd>`: (6) lam t w is kept instead of w: no step scales
    coefficients; (7) golden section searches cover h >= 1/2 alone, where the maximum is, and end with a step of
    Newton's method.

    References
    ----------
    T. Glasmachers, S. Qaadan, "Speeding Up Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden
    Section Search", 2018, doi:10.1007/978-3-030-13709-0_28.
    Z. Wang, K. Crammer, S. Vucetic, "Breaking the Curse of Kernelization: Budgeted Stochastic Gradient Descent for
    Large-Scale SVM Training", JMLR 13, 2012.

    Examples
    --------
    >>> from widemargin import BSGDClassifier
    >>> from widemargin.datasets import load_patches
    >>> X, y = load_patches(30_000)
    >>> model = BSGDClassifier(C=8, gamma=1.0, budget=200, n_epochs=2, random_state=0).fit(X[:20_000], y[:20_000])
    >>> model.support_vectors_.shape, model.score(X[20_000:], y[20_000:]) > 0.9
    ((200, 75), True)

    A stream:

    >>> stream = BSGDClassifier(gamma=1.0, budget=200)
    >>> for start in range(0, 20_000, 5_000):
    ...     rows = slice(start, start + 5_000)
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    >>> stream.t_, stream.score(X[20_000:], y[20_000:]) > 0.85
    (20000, True)
    """

    _memory_kinds = ("prediction of a kernel machine",)

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelParameter = "rbf",
        gamma: float | str = "scale",
        budget: int = 100,
        lam: float | None = None,
        n_epochs: int = 20,
        class_weight: ClassWeight = None,
        degree: int = 3,
        coef0: float = 0.0,
        maintenance: str = "merge",
        merge: str = "lookup-wd",
        table_size: int = 400,
        fit_intercept: bool = False,
        average: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.budget = budget
        self.lam = lam
        self.n_epochs = n_epochs
        self.class_weight = class_weight
        self.degree = degree
        self.coef0 = coef0
        self.maintenance = maintenance
        self.merge = merge
        self.table_size = table_size
        self.fit_intercept = fit_intercept
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def coef_(self) -> Vector:
        """`ExpansionMachine.coef_` as a dense array."""
        weights = super().coef_
        return np.asarray(weights.toarray() if sp.issparse(weights) else weights)

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_kernel(self, *FUNCTION_KERNELS)
        for name, least in (("budget", 2), ("table_size", 2), ("n_epochs", 1)):
            check_integer(name, getattr(self, name), least)
        if self.table_size > _MOST_NODES:
            raise ValueError(f"table_size must be at most {_MOST_NODES}, got {shown(self.table_size)}")
        check_choice("maintenance", self.maintenance, MAINTENANCE)
        check_choice("merge", self.merge, MERGE_RULES)
        if self.maintenance == "merge" and self.kernel != "rbf":
            raise ValueError(f"maintenance='merge' is for kernel='rbf' alone, got kernel={self.kernel!r}")
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        if self.lam is not None:
            check_number("lam", self.lam, least=_LEAST_LAM)
        flags = ("fit_intercept", "average", "early_stopping", "shuffle")
        check_flag(**{name: getattr(self, name) for name in flags})
        check_seed(self.random_state)
        check_resources(self)

    def _check_stream_parameters(self) -> None:
        if self.early_stopping:
            raise ValueError("early_stopping must be False for partial_fit, got True")
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight must be None or a dict for partial_fit, got {shown(self.class_weight)}")

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One step on each row of the next chunk of a stream, in the order given.

        Consecutive chunks give, bit for bit, the model of one call with all their rows (with a callable kernel, as far
        as its values do not depend on the shapes of its arguments). The kernel and its parameters, `maintenance` and
        `budget` must stay as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array, dask array, dask data frame} of shape (n_samples, n_features)
            At least one row. The blocks of a dask collection are computed, sent here and learnt one after the other.
        y : array-like or dask collection of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels of the stream. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows of weight 0 are skipped; the first chunk must have others.
        """
        if is_dask_collection(X):
            return self._fit_blocks(X, y, classes, sample_weight)
        with all_or_nothing(self):
            self._check_parameters()
            self._check_stream_parameters()
            is_first = not hasattr(self, "_states")
            X, labels = self._accept_rows(X, y, reset=is_first)
            weights = check_weights(sample_weight, X, may_be_zero=not is_first)
            if is_first:
                self.classes_ = _stream_classes(classes)
            X = self._as_float32(X, len(self.classes_))
            if is_first:
                self._start_stream(X, labels, weights)
            elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {shown(self.classes_)}, got {shown(np.asarray(classes))}"
                )
            with self._make_progress() as progress:
                self._train_on_chunk(X, self._class_numbers(labels), weights, progress)
        return self

    def _fit_blocks(self, X: Given, y: Given, classes: Given, sample_weight: Given) -> Self:
        """`partial_fit` on the blocks of a dask collection. An error leaves what the blocks before it have given."""
        labels, weights = column_of(y), compute_values(sample_weight)
        check_labels(labels)
        check_has_rows(len(labels), X)
        end = 0
        for block in iterate_blocks(X):
            rows = slice(end, end + block.shape[0])
            self.partial_fit(block, labels[rows], classes, None if weights is None else weights[rows])
            end = rows.stop
        if end != len(labels):
            raise ValueError(f"X and y must have the same number of rows, got {end} and {len(labels)}")
        return self

    def _take_rows(self, X: Rows, targets: AnyArray, weights: Vector) -> TrainingRows:
        rows = super()._take_rows(X, targets, weights)
        return rows._replace(X=self._as_float32(rows.X, len(rows.classes), is_copy=rows.X is not X))

    def _as_float32(self, X: Rows, k: int, *, is_copy: bool = False) -> Rows:
        """The rows in float32; for k classes, a ValueError with the least memory budget if this one is smaller.

        It counts the rows themselves if they are a copy of the user's.
        """
        (n, d), q, n_values = X.shape, 1 if k == 2 else k, X.nnz if sp.issparse(X) else X.size
        index_bytes = X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else 0
        float32_bytes = 4 * n_values + index_bytes
        own_bytes = X.dtype.itemsize * n_values + index_bytes if is_copy else 0
        copies = int(X.dtype != np.float32) + int(self.early_stopping)
        needed = needed_bytes(X.shape, float32_bytes / n, q, int(self.budget), self.maintenance)
        needed += copies * float32_bytes + own_bytes
        what = f"{n} rows of {d} features, {q} machines and maintenance={self.maintenance!r} with budget={self.budget}"
        memory_plan(self).require(needed, what)
        warn_of_origin(type(self).__name__, self.kernel, X)
        return to_float32(X)

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        X, y, weights, _, classes = rows
        random_state = check_random_state(self.random_state)
        score = None
        if self.early_stopping:
            from sklearn.model_selection import train_test_split  # with it comes more than a plain fit needs

            X, X_held, y, y_held, weights, weights_held = train_test_split(
                X, y, weights, test_size=self.validation_fraction, random_state=random_state, stratify=y
            )
            score = partial(self._score_validation_rows, X_held, y_held, weights_held)
        self._set_classes_and_gamma(classes, X, y, weights)
        weights = self._set_class_weight(classes, y, weights)
        signed_weights = weights * one_vs_rest_signs(y, len(classes))
        n = max(1, int(np.count_nonzero(weights)))  # without the rows of classes of weight 0
        self.lam_ = self._resolve_lam(n)
        settings = self._settings(signed_weights)
        sgd = BudgetedSGD(settings, X, len(signed_weights))
        rng = np.random.default_rng(random_state.randint(2**31))
        epochs = EpochSettings(self.n_epochs, bool(self.shuffle), score)
        model, self.converged_ = run_epochs(sgd, X, signed_weights, epochs, progress, rng, self.n_jobs)
        self._set_fitted_attributes(sgd, model)
        progress.current_solution = sgd, model
        C, memory = 1 / (self.lam_ * n), memory_plan(self)
        sampler = TimedSample(_ESTIMATE_SECONDS, rng) if progress.stopped_by else None
        self.objective_ = primal_objective(model, X, signed_weights, C, self.n_jobs, memory, sampler)
        self._warn_if_stopped(progress)
        if not progress.stopped_by:
            warn_of_one_class_on_probe(model, X, y, classes, n_jobs=self.n_jobs, memory=memory)

    def _snapshot(self, rows: TrainingRows, progress: Progress) -> dict[str, Any] | None:
        """The attributes of the machine after the latest pass, but objective_ and converged_."""
        if progress.current_solution is None:
            return None
        stopped = copy.copy(self)
        stopped._set_fitted_attributes(*progress.current_solution)
        return dict(stopped.__dict__)

    def _resolve_lam(self, n: int) -> float:
        if self.lam is not None:
            return float(self.lam)
        lam = 1 / (float(self.C) * n)
        if lam < _LEAST_LAM:
            raise ValueError(f"C must be at most {1 / (_LEAST_LAM * n):g} with {n} rows, got {shown(self.C)}")
        return lam

    def _score_validation_rows(self, X: Rows, y: Labels, weights: Vector, model: KernelExpansion) -> float:
        values = model.decision_values(X, n_jobs=self.n_jobs, memory=memory_plan(self))
        return float(np.average(argmax_classes(values) == y, weights=weights))

    def _start_stream(self, X: Rows, y: AnyArray, weights: Vector) -> None:
        self._set_classes_and_gamma(self.classes_, X, self._class_numbers(y), weights)
        self._states: list[dict[str, Any]] | None = None
        self.history_: dict[str, Vector] = {}
        self.converged_ = True

    def _train_on_chunk(self, X: Rows, y: Labels, weights: Vector, progress: Progress) -> None:
        """Take a step on each row of a chunk, in the order given; rows of weight 0 are skipped."""
        if self._states is not None:
            self._check_unchanged()
        weights = self._set_class_weight(self.classes_, y, weights)
        signed_weights = weights * one_vs_rest_signs(y, len(self.classes_))
        if self.lam is not None or not hasattr(self, "lam_"):
            self.lam_ = self._resolve_lam(_STREAM_ROWS)
        sgd = BudgetedSGD(self._settings(signed_weights), X, len(signed_weights), self._states)
        progress.stage("chunk", X.shape[0])
        order = np.flatnonzero(weights)
        self.converged_ = sgd.take_steps(X, signed_weights, order, progress, self.n_jobs)
        self.__dict__.pop("objective_", None)  # of an earlier fit
        earlier, n_calls = self.history_, getattr(self, "n_iter_", 0)
        self._set_fitted_attributes(sgd, sgd.model())
        self.n_iter_ += n_calls
        self.history_ = {
            name: np.append(earlier[name], self.history_.get(name, np.nan))[-_CALLS_KEPT:] for name in earlier
        } or self.history_
        self._warn_if_stopped(progress)

    def _check_unchanged(self) -> None:
        if self._budget != self._budget_parameters():
            raise ValueError(f"maintenance and budget must stay as the model was made, {self._budget}")
        if (own := self._kernel_parameters()) != self._kernel:
            made = self._kernel
            raise ValueError(f"kernel, gamma, degree and coef0 must stay as the model was made, {made}, got {own}")

    def _budget_parameters(self) -> dict[str, Any]:
        return {"maintenance": self.maintenance, "budget": int(self.budget)}

    def _set_classes_and_gamma(self, classes: AnyArray, X: Rows, y: Labels, weights: Vector) -> None:
        """Set `classes_` and gamma, and check the range and the scale of some rows."""
        self.classes_ = classes
        few = slice(None, None, -(-X.shape[0] // PROBE_ROWS))
        make_checked_samples(self._resolve_kernel(X, weights), X[few], y[few])

    def _settings(self, signed_weights: Vector) -> StepSettings:
        """The parameters of the steps. Checks that coefficients of these weights (q, n) have finite squares."""
        heaviest, most = float(np.abs(signed_weights).max()), self.lam_ / _LEAST_LAM
        if heaviest > most:
            raise ValueError(f"sample_weight times class_weight must be at most {most:g}, got {heaviest:g}")
        return StepSettings(
            kernel=self._make_kernel(),
            lam=self.lam_,
            budget=int(self.budget),
            maintenance=self.maintenance,
            merge=self.merge,
            table_size=int(self.table_size),
            fit_intercept=bool(self.fit_intercept),
            average=bool(self.average),
        )

    def _class_numbers(self, labels: AnyArray) -> Labels:
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels that are not among the classes of the first call: {shown(unknown)}")
        return np.searchsorted(self.classes_, labels)

    def _set_fitted_attributes(self, sgd: BudgetedSGD, model: KernelExpansion) -> None:
        """Set the fitted attributes but objective_, lam_ and converged_."""
        self._states = sgd.states()
        self.support_vectors_ = model.points.astype(self._dtype)  # predictions are in the precision of the data
        self.dual_coef_, self.intercept_ = model.coef, model.intercept
        self.n_support_ = np.array([np.count_nonzero(row) for row in model.coef])
        self._budget = self._budget_parameters()
        self.history_ = sgd.history.as_arrays()
        self.n_iter_, self.t_ = len(sgd.history), sgd.totals().steps
        self._model = self._make_model()

    def _make_model(self) -> KernelExpansion:
        return KernelExpansion(self._make_kernel(), self.support_vectors_, self.dual_coef_, self.intercept_)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        self._check_dtype_and_weights(fitted)
        fitted.check_history()
        k = fitted.count_classes()
        q = 1 if k == 2 else k
        n = fitted.rows("support_vectors_", self._dtype, None, self.n_features_in_).shape[0]
        fitted.array("n_support_", np.integer, q, least=0, below=n + 1)
        fitted.array("dual_coef_", np.float64, q, n)
        fitted.array("intercept_", np.float64, q)
        fitted.integer("t_", 0)
        fitted.number("lam_", least=_LEAST_LAM)
        made = fitted.nested("_budget")
        maintenance, budget = made.choice("maintenance", MAINTENANCE), made.integer("budget", 2)
        for state in fitted.nested_list("_states", q):
            _check_machine_state(state, self.n_features_in_, maintenance, budget)

    def _warn_if_stopped(self, progress: Progress) -> None:
        if not self.converged_:
            objective = f", objective {self.objective_:.6g}" if hasattr(self, "objective_") else ""
            warn_of_stop(
                self,
                progress.stopped_by,
                f"after {self.t_} steps: mean hinge loss of its latest pass {self.history_['hinge'][-1]:.3g}"
                f"{objective}. The model is the {'best so far' if self.early_stopping else 'latest'}.",
            )


def _stream_classes(classes: ArrayLike | None) -> AnyArray:
    if classes is None:
        raise ValueError("classes must be given in the first call of partial_fit, got None")
    labels: AnyArray = unique_labels(classes)
    if len(labels) < 2:
        raise ValueError(f"classes must be at least two, got {shown(labels)}")
    return labels


def _check_machine_state(state: FittedState, d: int, maintenance: str, budget: int) -> None:
    is_merging = maintenance == "merge"
    coef = "slots" if is_merging else "coef"  # with more columns than the budget, which they bound
    width = state.array(coef, np.float64, 4 if is_merging else 2, None).shape[1]
    if budget >= width:
        raise ValueError(f"_budget['budget'] must be below the {width} columns of {state.name(coef)}, got {budget}")
    counts = state.array("counts", np.int64, EXCESS_MISTAKES + 1, least=0)
    n_front, n_back = map(int, counts[N_FRONT : N_BACK + 1])
    if n_front + n_back > budget:
        raise ValueError(f"{state.name('counts')} must be of at most {budget} points, got {n_front} and {n_back}")
    state.array("sums", np.float64, 7)
    if is_merging:
        state.array("points", np.float32, d, width)
        state.array("shift", np.float32, d)
        if state.value("slots")[COEF, n_front : width - n_back].any():
            raise ValueError(f"{state.name('slots')} must be 0 between the {n_front} and {n_back} points of its ends")
        return
    side = width if maintenance == "projection" else 0
    n = len(state.array("columns", np.integer, None, least=0, below=width))
    state.rows("points", np.float32, n, d)
    state.array("diagonal", np.float64, width)
    state.array("inverse", np.float64, side, side)
