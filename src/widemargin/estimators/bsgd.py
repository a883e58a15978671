"""Kernel machines of a fixed size for streams, as a scikit-learn classifier."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels

from .._config import resolve_memory_budget
from .._progress import Progress
from ..algorithms.bsgd import BudgetedSGD, Epochs, primal_objective, train
from ..data.labels import one_vs_rest_signs
from ..kernels.tiles import entry_work
from ..models.expansion import KernelExpansion
from ..solvers.results import History
from ..solvers.sgd.budgeted_machine import COEF, EXCESS_MISTAKES, N_BACK, N_FRONT, StepSettings, projection_bytes
from ..solvers.sgd.merging import ALGORITHM_1, MAINTENANCE, RULES
from ._fitted_state import FittedState
from ._kernel import make_checked_samples
from ._kernel_machine import KernelMachine, LinearWeights, TrainingRows
from ._parameters import check_kernel, check_limits
from ._predictor import OneAgainstRestPredictor, largest
from ._training import all_or_nothing, clock, warn_of_stop
from ._validation import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_seed,
    check_weights,
    plain,
    to_single,
    weigh_classes,
)

Vector = NDArray[np.float64]

_LEAST_LAM = 1e-100  # coefficients are sums of up to 1 / lam, and their squares must be finite
_QUICK_WORK = 5e9  # multiply-adds of a fraction of a second
_LEAST_ROWS = 100
_STREAM_ROWS = 10_000  # for which `lam` is chosen, where their number is not known
_CHECKED_ROWS = 1000  # at most, for their range and scale
_OLDER_COUNTS = 6  # entries of `counts` in files of versions without EXCESS_MISTAKES
_MOST_NODES = 4096  # a side: compiled look-ups number the nodes in float32, exact up to 2^24


class BSGDClassifier(ClassifierMixin, OneAgainstRestPredictor, LinearWeights, KernelMachine):
    """Kernel support vector machine with at most `budget` support vectors, learnt from a stream.

    It minimises ``1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i f(x_i))`` over machines of at most `budget` support vectors by
    stochastic gradient steps on one row each. Above the budget, two support vectors are merged into one. Memory, and
    the cost of a step and of a prediction, are fixed from the start: for data that do not fit in memory, or never end.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses in `fit`, > 0. For each row it is multiplied by its weight and by its class's weight.
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian"} or callable, default="rbf"
        Only "rbf" can be merged. A callable takes arrays of shapes (r, d) and (c, d) and returns (r, c).
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (n_features * X.var())``, ``1 / n_features`` or a number > 0. In `partial_fit`, X is the first chunk.
    degree : int, default=3
        Of the polynomial kernel ``(gamma <x, z> + coef0) ** degree``.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    budget : int, default=100
        Largest number of support vectors, at least 2; of each class's machine if there are more than two classes.
    maintenance : {"merge", "removal", "projection"}, default="merge"
        What is done above the budget: merge two support vectors; remove the one that weighs least; or project one onto
        the span of the others, at the cost of ``3 budget ** 2`` operations. The latter two take any kernel.
    merge : {"lookup-wd", "lookup-h", "gss", "gss-precise"}, default="lookup-wd"
        How the partner to merge with is found: by a look-up of the degradation, by a look-up of the merged point's
        place, or by golden section search for it, to 0.01 and one step of Newton's method, or to 1e-10. The latter
        three exist to be compared with.
    table_size : int, default=400
        Nodes a side of the tables, at least 2, at most 4096.
    lam : float or None, default=None
        Weight of ``1/2 |w|^2`` against the *mean* loss, at least 1e-100. None stands for ``1 / (C n)`` in `fit`, and in
        `partial_fit`, which does not know how many rows will come, for `lam_` of an earlier `fit`, else for
        ``1 / (10,000 C)``: of 1e-2 to 1e-6, the best or nearly so on seven streams of 20,000 rows
        (docs/guide/bsgd.md).
    fit_intercept : bool, default=False
        Whether the machine has an intercept, regularised as in `sklearn.svm.LinearSVC` with intercept_scaling=1.
    n_epochs : int, default=20
        Passes of `fit` over the rows.
    average : bool, default=True
        Whether the model is an average over the steps instead of the last step's machine. Weights grow like ``t ** 3``,
        and by ``1 + 1 / budget`` with every merger: what was before `budget` mergers hardly counts, as its points are
        gone. Points that merge take their averages along, so that it is an approximation of that average. Where it
        errs more often than the last step's machine, it restarts there: so it follows a stream that changes.
    early_stopping : bool, default=False
        Whether `fit` sets rows aside, measures the accuracy on them after each pass, keeps the best model, and ends
        after three passes in a row without a better one.
    validation_fraction : float, default=0.1
        Share of rows set aside, in (0, 1).
    max_time : float or None, default=None
        Seconds after which `fit` or `partial_fit` returns the model as it is.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that predictions may take beyond the data; None asks `widemargin.get_config`.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" is for `fit` alone.
    shuffle : bool, default=True
        Whether each pass of `fit` reads the rows in a new random order.
    n_jobs : int or None, default=None
        Threads: several classes are learnt side by side. The model does not depend on it.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For the order of rows, and for those set aside.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_vectors_ : ndarray or CSR array of shape (n_SV, n_features)
        Merged points, not rows of the data; removal and projection keep rows. In the dtype of the data.
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
        After `fit`: the primal value of the model; over the classes' machines the sum. Of a stopped fit, an estimate:
        losses of as many rows, drawn at random, as can be predicted in a fraction of a second.
    converged_ : bool
        Whether all passes were made, or early stopping ended them.
    n_iter_ : int
        Passes begun, or calls of `partial_fit`.
    t_ : int
        Steps made, one a row.
    history_ : dict of ndarrays
        One entry a pass, or a call of `partial_fit`: ``time`` in seconds, ``steps`` so far, and of the pass's own steps
        ``hinge`` (the mean loss of each row just before its step), ``violations`` (share of rows within the margin),
        ``mergers``, ``removals``, ``merging_frequency`` (mergers a step), ``mean_degradation`` (squared norm of the
        change of w by a merger, removal or projection); ``n_support``; ``validation_score`` with early stopping.
        Counts and losses are sums over the classes' machines.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, Ctrl-C or a callback ended the fit before its last row. The model is the one of that moment.

    Notes
    -----
    A step costs about `budget` times the row's non-zeros multiply-adds, and `budget` exponentials: 0.35 microseconds
    with 22 features and a budget of 100. A merger costs about one step more. Memory: ``budget * n_features`` numbers a
    machine, and the tables of 4 MB. Steps take the data as float32, predictions as they are; float32 data
    are read in place, a memory map too, others are copied. There is no certificate: a lower bound of the optimum would
    take all rows at once, and a small budget leaves a machine above it for good.

    Differences from the papers: (1) of equally light support vectors the newest is merged first, as its kernel values
    are at hand; (2) coefficients are kept in units of the step size, so no step scales them; (3) tables cover
    m >= 1/2 alone, where h is continuous, and hold the root of the degradation; (4) the searches too look at
    h >= 1/2 alone, where the maximum is, and "gss" ends with a step of Newton's method; (5) projection takes the point
    whose loss is least, not the lightest; (6) steps are averaged: the last step's machine varies by percents from one
    order of rows to the next.

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

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        budget: int = 100,
        maintenance: str = "merge",
        merge: str = "lookup-wd",
        table_size: int = 400,
        lam: float | None = None,
        fit_intercept: bool = False,
        n_epochs: int = 20,
        average: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        class_weight: Any = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.maintenance = maintenance
        self.merge = merge
        self.table_size = table_size
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def coef_(self) -> Vector:
        """As of `LinearWeights`, but an array for sparse rows too."""
        weights = super().coef_
        return np.asarray(weights.toarray() if sp.issparse(weights) else weights)

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_kernel(self)
        for name, least in (("budget", 2), ("table_size", 2), ("n_epochs", 1)):
            check_integer(name, getattr(self, name), least)
        if self.table_size > _MOST_NODES:
            raise ValueError(f"table_size must be at most {_MOST_NODES}, got {plain(self.table_size)!r}")
        check_choice("maintenance", self.maintenance, MAINTENANCE)
        check_choice("merge", self.merge, (*RULES, ALGORITHM_1))
        if self.maintenance == "merge" and self.kernel != "rbf":
            raise ValueError(f"maintenance='merge' is for kernel='rbf' alone, got kernel={self.kernel!r}")
        check_number("validation_fraction", self.validation_fraction, above=0)
        if self.validation_fraction >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {plain(self.validation_fraction)!r}")
        if self.lam is not None:
            check_number("lam", self.lam, least=_LEAST_LAM)
        flags = ("fit_intercept", "average", "early_stopping", "shuffle")
        check_flag(**{name: getattr(self, name) for name in flags})
        check_seed(self.random_state)
        check_limits(self)

    def _check_stream_parameters(self) -> None:
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight must be None or a dict for partial_fit, got {plain(self.class_weight)!r}")

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next chunk of a stream, one step a row, in the order given.

        Chunks one after the other give, bit for bit, the model of one call with all their rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            At least one row.
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._check_parameters()
            self._check_stream_parameters()
            is_first = not hasattr(self, "_states")
            X, labels = self._check_data(X, y, reset=is_first)
            weights = check_weights(sample_weight, X)
            if is_first:
                self._start_stream(X, labels, classes, weights)
            elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {plain(self.classes_)}, got {plain(np.asarray(classes))}"
                )
            with clock(self) as progress:
                self._train_on_chunk(X, self._class_numbers(labels), weights, progress)
        return self

    def _check_data(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, NDArray[Any]]:
        X, y = super()._check_data(X, y, reset=reset)
        return to_single(X), y

    def _fit(self, rows: TrainingRows, progress: Progress) -> None:
        X, y, weights, _, classes = rows
        seed = check_random_state(self.random_state)
        score = None
        if self.early_stopping:
            from sklearn.model_selection import train_test_split  # with it comes more than a plain fit needs

            X, X_held, y, y_held, weights, _ = train_test_split(
                X, y, weights, test_size=self.validation_fraction, random_state=seed, stratify=y
            )
            score = partial(self._score_validation_rows, X_held, y_held)
        self._classes_and_gamma(classes, X, y, weights)
        weights = weigh_classes(self.class_weight, classes, y, weights)
        signed_weights = weights * one_vs_rest_signs(y, len(classes))
        self.lam_ = self._resolve_lam(X.shape[0])
        settings = self._settings(signed_weights)
        sgd = BudgetedSGD(settings, X, len(signed_weights))
        rng = np.random.default_rng(seed.randint(2**31))
        epochs = Epochs(self.n_epochs, bool(self.shuffle), score)
        model, self.converged_ = train(sgd, X, signed_weights, epochs, progress, rng, self.n_jobs)
        self._set_fitted_attributes(sgd, model)
        C, memory = 1 / (self.lam_ * X.shape[0]), resolve_memory_budget(self.memory_budget)
        if progress.stopped_by:
            X, signed_weights = _sample_rows(X, signed_weights, len(model.coef.T), rng)
        self.objective_ = primal_objective(model, X, signed_weights, C, self.n_jobs, memory)
        self._warn_if_stopped(progress)

    def _resolve_lam(self, n: int) -> float:
        """The given `lam`, or that of n rows."""
        if self.lam is not None:
            return float(self.lam)
        lam = 1 / (float(self.C) * n)
        if lam < _LEAST_LAM:
            raise ValueError(f"C must be at most {1 / (_LEAST_LAM * n):g} with {n} rows, got {plain(self.C)!r}")
        return lam

    def _score_validation_rows(self, X: Any, y: NDArray[np.intp], model: KernelExpansion) -> float:
        values = model.decision_values(X, n_jobs=self.n_jobs, memory_budget=resolve_memory_budget(self.memory_budget))
        return float(np.mean(largest(values) == y))

    def _start_stream(self, X: Any, y: NDArray[Any], classes: ArrayLike | None, weights: Vector) -> None:
        """The first chunk of a stream: classes, and what "scale" stands for."""
        if classes is None:
            raise ValueError("classes must be given in the first call of partial_fit, got None")
        self.classes_ = unique_labels(classes)
        if len(self.classes_) < 2:
            raise ValueError(f"classes must be at least two, got {plain(self.classes_)}")
        self._classes_and_gamma(self.classes_, X, self._class_numbers(y), weights)
        self._states: list[dict[str, Any]] | None = None
        self.history_: dict[str, Vector] = {}
        self.converged_ = True

    def _train_on_chunk(self, X: Any, y: NDArray[np.intp], weights: Vector, progress: Progress) -> None:
        if self._states is not None and self._shape != [self.maintenance, self.budget]:
            raise ValueError(f"maintenance and budget must stay as the machine was made, {self._shape}")
        weights = weigh_classes(self.class_weight, self.classes_, y, weights)
        signed_weights = weights * one_vs_rest_signs(y, len(self.classes_))
        if self.lam is not None or not hasattr(self, "lam_"):
            self.lam_ = self._resolve_lam(_STREAM_ROWS)
        sgd = BudgetedSGD(self._settings(signed_weights), X, len(signed_weights), self._states)
        sgd.history = History({name: column.tolist() for name, column in self.history_.items()})
        progress.stage("chunk", X.shape[0])
        order = np.flatnonzero(weights)
        self.converged_ = sgd.take_steps(X, signed_weights, order, progress, self.n_jobs)
        self._set_fitted_attributes(sgd, sgd.model())
        self._warn_if_stopped(progress)

    def _classes_and_gamma(self, classes: NDArray[Any], X: Any, y: NDArray[np.integer], weights: Vector) -> None:
        self.classes_ = classes
        few = slice(None, None, -(-X.shape[0] // _CHECKED_ROWS))
        make_checked_samples(self._resolve_kernel(X, weights), X[few], y[few])  # for what it raises and warns of alone

    def _settings(self, signed_weights: Vector) -> StepSettings:
        heaviest, most = float(np.abs(signed_weights).max()), self.lam_ / _LEAST_LAM
        if heaviest > most:
            raise ValueError(f"sample_weight times class_weight must be at most {most:g}, got {heaviest:g}")
        settings = StepSettings(
            kernel=self._make_kernel(),
            lam=self.lam_,
            budget=int(self.budget),
            maintenance=self.maintenance,
            merge=self.merge,
            table_size=int(self.table_size),
            fit_intercept=bool(self.fit_intercept),
            average=bool(self.average),
        )
        least = projection_bytes(settings, len(signed_weights))
        if least > resolve_memory_budget(self.memory_budget):
            raise ValueError(
                f"memory_budget must be at least {least} bytes for maintenance='projection' with "
                f"budget={settings.budget} and {len(signed_weights)} machines, got {plain(self.memory_budget)!r}"
            )
        return settings

    def _class_numbers(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Positions of labels among the classes of a stream."""
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels that are not among the classes of the first call: {plain(unknown)}")
        return np.searchsorted(self.classes_, labels)

    def _set_fitted_attributes(self, sgd: BudgetedSGD, model: KernelExpansion) -> None:
        """Set the fitted attributes."""
        self._states = sgd.states()
        self.support_vectors_ = model.points.astype(self._dtype)  # predictions are in the precision of the data
        self.dual_coef_, self.intercept_ = model.coef, model.intercept
        self.n_support_ = np.array([np.count_nonzero(row) for row in model.coef])
        self._shape = [self.maintenance, int(self.budget)]
        self.history_ = sgd.history.as_arrays()
        self.n_iter_, self.t_ = len(sgd.history), sgd.totals().steps
        self._model = self._make_model()

    def _make_model(self) -> KernelExpansion:
        return KernelExpansion(self._make_kernel(), self.support_vectors_, self.dual_coef_, self.intercept_)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        k = fitted.classes()
        q = 1 if k == 2 else k
        n = fitted.rows("support_vectors_", self._dtype, None, self.n_features_in_).shape[0]
        fitted.array("n_support_", np.integer, q, least=0, below=n + 1)
        fitted.array("dual_coef_", np.float64, q, n)
        fitted.array("intercept_", np.float64, q)
        fitted.integer("t_", 0)
        if "lam_" in fitted:  # not in older files
            fitted.number("lam_", least=_LEAST_LAM)
        shape = fitted.value("_shape")
        if not isinstance(shape, list) or len(shape) != 2:
            raise ValueError(f"_shape must be a list of two, got {shape!r}")
        check_choice("_shape[0]", shape[0], MAINTENANCE)
        check_integer("_shape[1]", shape[1], 2)
        for state in fitted.inners("_states", q):
            _check_machine_state(state, self.n_features_in_, *shape)

    def _restore(self) -> None:
        super()._restore()
        for state in self._states or ():
            state["counts"] = np.pad(state["counts"], (0, EXCESS_MISTAKES + 1 - len(state["counts"])))

    def _warn_if_stopped(self, progress: Progress) -> None:
        if not self.converged_:
            objective = f", objective {self.objective_:.6g}" if hasattr(self, "objective_") else ""
            warn_of_stop(
                self,
                progress.stopped_by,
                f"after {self.t_} steps: mean hinge loss of its latest pass {self.history_['hinge'][-1]:.3g}"
                f"{objective}. The model is the latest.",
            )


def _check_machine_state(state: FittedState, d: int, maintenance: str, budget: int) -> None:
    """Raise a ValueError that names the first array of a machine's state that cannot be."""
    is_merging = maintenance == "merge"
    coef = "slots" if is_merging else "coef"  # more columns than the budget: so they bound it
    width = state.array(coef, np.float64, 4 if is_merging else 2, None).shape[1]
    if budget >= width:
        raise ValueError(f"_shape[1] must be below the {width} columns of {state.name(coef)}, got {budget}")
    counts = state.array("counts", np.int64, None, least=0)
    if len(counts) not in (_OLDER_COUNTS, EXCESS_MISTAKES + 1):
        raise ValueError(f"{state.name('counts')} must have {EXCESS_MISTAKES + 1} entries, got {len(counts)}")
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


def _sample_rows(X: Any, signed_weights: Vector, n_points: int, rng: np.random.Generator) -> tuple[Any, Vector]:
    """Random rows, with weights that sum to those of all, whose kernel values with the points take a moment."""
    n, d = X.shape
    m = min(n, max(_LEAST_ROWS, int(_QUICK_WORK / entry_work(max(n_points, 1), d))))
    rows = np.sort(rng.choice(n, m, replace=False))
    return X[rows], signed_weights[:, rows] * (n / m)
