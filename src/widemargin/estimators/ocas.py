"""The linear support vector machine by optimised cutting planes, as a scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._config import resolve_memory_budget
from .._progress import Progress
from .._threads import ThreadTeam, blas_limit, row_blocks
from .._types import Labels, Matrix, RowIndices, Vector
from ..algorithms.ocas import OCASSettings, Trained, train_path
from ..data import DesignMatrix, open_design_matrix, with_constant
from ..data.columns import occupied_columns, restore_columns
from ..data.csr import canonical
from ..models.linear import LinearModel
from ..solvers.cutting_plane.crammer_singer import MulticlassHingeLoss
from ..solvers.cutting_plane.losses import HingeLoss, Loss, one_vs_rest_weights
from ..solvers.cutting_plane.optimal_intercept import InterceptHingeLoss
from ..solvers.results import History, LinearResult
from ._estimator import Estimator, describe_gap, relative_gap, warn_unconverged
from ._fitted_state import FittedState
from ._predictor import Classifier, OneVsRestPredictor, convert_in_blocks
from ._training_warnings import warn_of_one_class_of_linear
from ._validation import (
    FLOATS,
    LARGEST_ENTRY,
    check_choice,
    check_flag,
    check_integer,
    check_magnitude,
    check_memory,
    check_number,
    check_resources,
    check_training_data,
    check_weights,
    number_classes,
    shown,
    to_memory,
    validate_rows,
    weigh_classes,
)

_START_POINTS = 24  # of a warm start: each costs a third of a round
_VECTORS, _VECTORS_SHARE = 14, 0.5  # vectors of n that a machine's training holds; part of the memory budget for them
_LEAST_VECTORS = 11  # of them, those that it cannot do without
_LEAST_NORMALS = 6  # vectors of d that it cannot do without: planes, points and search directions


class ValidatedRows(NamedTuple):
    """Samples X (n, d) in memory, in a file or on a cluster; labels (n,); weights (n,), or None where all are 1."""

    X: Any
    labels: NDArray[Any]
    weights: Vector | None
    columns: RowIndices | None = None  # of the user's X that X has, where it has not all


class LinearProblem(NamedTuple):
    """What a fit solves: a machine for each loss on the same samples. Losses hold vectors of n: made when needed."""

    X: DesignMatrix
    losses: list[Callable[[], Loss]]
    n_outputs: int  # of each loss


class OCASClassifier(Classifier, OneVsRestPredictor, Estimator):
    r"""Linear support vector machine, for up to millions of rows, with a certificate.

    It minimises, by optimised cutting planes (OCAS),

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i \max(0, 1 - y_i (\langle w, x_i \rangle + b)),

    and reports how far from the optimum it stopped. Take it for many rows, for a large C, and where the
    precision must be known.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight and by its class's weight.
    tol : float, default=1e-3
        Largest duality gap at the end, relative to the objective; of each class with several.
    fit_intercept : bool, default=True
        Whether the machine has an intercept. It is not regularised.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With more than two classes: one machine for each class against the rest, all in the same passes over the data;
        or Crammer and Singer's single problem, for two classes too:
        :math:`\tfrac12 \|W\|^2 + C \sum_i s_i \max_c ([c \neq y_i] + f_c(x_i) - f_{y_i}(x_i))`. Its intercepts are
        regularised, as weights of a constant feature 1 (as in LIBLINEAR).
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" is inversely proportional to the classes' total sample weight.
    max_time : float or None, default=None
        Seconds after which `fit` returns the best model so far; 0 gives weights of zero.
    n_jobs : int or None, default=None
        Threads; None means all cores, and one inside a worker of joblib. The model does not depend on it.

    Other Parameters
    ----------------
    mu : float, default=0.1
        In (0, 1]: new planes touch the risk at :math:`(1 - \mu) w_b + \mu w_t`, :math:`w_b` the best point,
        :math:`w_t` the search point.
    line_search : bool, default=True
        False gives the plain cutting plane algorithm (CPA, as in SVMperf and BMRM), to be compared with; it is never
        accelerated.
    acceleration : {"auto"} or None, default="auto"
        None trains by Algorithm 1 of the paper as it is; see Notes. "auto" adds what makes it faster, by the shape of X
        and the loss. Both find the same machine, to `tol`.
    max_iter : int, default=1000
        Most rounds on all rows, of two passes over the data each.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that `fit` and `predict` may take beyond the data; None is the value of
        `widemargin.get_config`. A ValueError names the least that can be kept.
    warm_start : bool, default=False
        Start from the fitted machine: from planes at its best point and, if it was fitted with `warm_start` too, at up
        to 23 others, taken anew on these data. For a path of C on the same data `fit_path` is cheaper.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Zero without `fit_intercept`. Where several are optimal, the midpoint of their interval.
    objective_ : float
        Value of the problem at the returned machine; with several classes the sum over them.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum.
    relative_gap_ : float
        ``dual_gap_ / objective_``; with several classes of the sums over them.
    converged_ : bool
        Whether each machine's gap is at most `tol` times its objective.
    n_iter_ : int
        Rounds on all rows; the sum, where classes were trained in groups, one after the other.
    history_ : dict of ndarrays
        One entry a round: ``time`` in seconds, ``objective``, ``lower_bound``, ``step``, ``n_planes``,
        ``seconds_active_rows``, ``seconds_dual_ascent``, ``seconds_decision_values``, ``seconds_line_search``,
        ``seconds_plane`` and ``seconds_master_problem``. Where no round was
        needed, one entry for the start.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, a callback or the precision of float64 (no round of 50 moved objective or
        bound) ended the fit: with the gap. The machine is the best so far. A second Ctrl-C within two seconds raises
        KeyboardInterrupt and leaves the estimator as it was.

    Notes
    -----
    Cost: a round reads X once, and once more its rows whose coefficient in the plane has changed; the number of rounds
    hardly depends on that of the rows. X is not copied as a whole: dense in C or Fortran order, a memory map, CSR with
    32- or 64-bit indices (converted are CSC, and CSR whose entries are repeated or not sorted), float32 or float64. A
    fit holds about 90 bytes a row beside X, for each class, and 8 bytes x n_features a plane (16 with `warm_start`).
    Columns of a CSR without values cost nothing but their places in `coef_`, where it has fewer values than columns
    (and without `warm_start`).
    Decision values of a single machine and all planes are added up in float64; decision values of several machines on
    dense data are matrix products in X's dtype, and `objective_` is that of these values.

    Accelerations, where there are enough rows for each feature (the guide has the table): the dual on the Gram matrix
    for small data; a start from the machine of a sample; rounds, or Newton steps on smoothed hinges, on a copy of the
    rows near the margin, with a linear function in place of the rest; epochs of dual coordinate ascent on one thread
    for each class, without any planes where columns outnumber rows, or sparse rows have one for four. None on dask;
    with Crammer and Singer's loss, only the start from a sample and, where columns outnumber rows, epochs of dual
    coordinate ascent, on one thread.

    With ``acceleration=None`` each master problem is solved to rounding, each step is the minimiser on its line, and
    planes stay while `memory_budget` allows. With ``fit_intercept=False`` and ``multi_class="ovr"`` this is the paper's
    Algorithm 1 line by line, whose first round, at w = 0, is not counted in `n_iter_`.

    Differences from the paper, with ``acceleration=None`` too: (1) C multiplies the sum of the hinges, not their mean,
    and `tol` is a gap relative to the objective, where the paper's is absolute. (2) Weights, an unregularised
    intercept, several classes. (3) The line search selects instead of sorting, O(n) expected; with an intercept, b is
    interpolated linearly between its optima at step 0 and at about the step. (4) The master problem is solved by Newton
    steps as well as steps in pairs. (5) Where `memory_budget` is reached, planes with multiplier 0 are dropped, and
    others merged. (6) After 50 rounds in which the gap has not fallen, the precision of float64 ends the fit. With
    "auto" also: (7) The accelerations. (8) Steps are at most 2, master problems are solved to 5 % of the gap, and
    planes are dropped after 20 rounds with multiplier 0.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A Dual Coordinate Descent Method for
    Large-scale Linear SVM", ICML 2008, https://doi.org/10.1145/1390156.1390208.
    V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008,
    https://doi.org/10.1145/1390156.1390197.
    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A Sequential Dual Method for Large Scale
    Multi-Class Linear SVMs", KDD 2008, https://doi.org/10.1145/1401890.1401942.
    K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR 2, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import OCASClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = OCASClassifier(C=0.1).fit(X[::2], y[::2])
    >>> print(f"{model.score(X[1::2], y[1::2]):.2f}")
    0.95
    >>> model.converged_, bool(model.dual_gap_ <= 1e-3 * model.objective_)
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: str = "ovr",
        class_weight: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        mu: float = 0.1,
        line_search: bool = True,
        acceleration: str | None = "auto",
        max_iter: int = 1000,
        memory_budget: int | str | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.mu = mu
        self.line_search = line_search
        self.acceleration = acceleration
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.warm_start = warm_start
        self.verbose = verbose

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
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
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
            Labels of any kind, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each sample, >= 0.

        Returns
        -------
        self
        """
        self._run(self._fit, X, y, sample_weight)
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
        list of OCASClassifier
            Fitted copies of this estimator, which stays as it is. `max_time` is for all of them together.
        """
        models = [clone(self).set_params(C=C) for C in Cs]
        if not models:
            raise ValueError("Cs must have at least one value, got none")
        for model in models:
            model._check_parameters()
        models[0]._run(partial(models[0]._train, models), X, y, sample_weight)
        return models

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> ValidatedRows:
        X, labels = check_training_data(self, X, y, resolve_memory_budget(self.memory_budget))
        if sp.issparse(X) or type(X) is np.ndarray:  # neither a file, which would be read once more, nor remote rows
            check_magnitude("X", X, LARGEST_ENTRY)
        X = canonical(X) if sp.issparse(X) else X  # norms of rows are sums of squared entries
        weights = None if sample_weight is None else check_weights(to_memory(sample_weight), labels)
        # with a warm start, other samples may follow, which hold values in other columns
        X, columns = (X, None) if self.warm_start else occupied_columns(X)
        return ValidatedRows(X, labels, weights, columns)

    def _fit(self, data: ValidatedRows, progress: Progress) -> None:
        self._train([self], data, progress)
        if (isinstance(data.X, np.ndarray) or sp.issparse(data.X)) and not progress.stopped_by:
            model = LinearModel(self.coef_ if data.columns is None else self.coef_[:, data.columns], self.intercept_)
            warn_of_one_class_of_linear(
                model, data.X, lambda: number_classes(data.labels, data.weights)[1], self.classes_, n_jobs=self.n_jobs
            )

    def _train(self, models: Sequence[Self], data: ValidatedRows, progress: Progress) -> None:
        """Train models that differ from this estimator in C alone."""
        settings, Cs = self._settings(), [model.C for model in models]
        with (
            blas_limit(1),  # the products are bound by memory, and the same on any number of threads
            ThreadTeam(self.n_jobs) as team,
            open_design_matrix(data.X, team, settings.memory_budget) as matrix,
        ):
            check_consistent_length(matrix, data.labels)
            problem = self._make_problem(matrix, data, max(Cs), team)
            self._check_memory(problem, len(models))
            for model, trained in zip(models, self._train_path(problem, Cs, settings, progress, team), strict=True):
                model._set_attributes(self, data.columns, *trained)
                model._warn_if_stopped(progress, trained[0])

    def _check_memory(self, problem: LinearProblem, n_models: int) -> None:
        """Raise a ValueError with the least memory budget if this one is smaller."""
        (n, d), k, n_features = problem.X.shape, len(self.classes_), self.n_features_in_
        needed = 8 * (problem.n_outputs * (_LEAST_VECTORS * n + _LEAST_NORMALS * d) + n_models * k * n_features)
        check_memory(self.memory_budget, needed, f"{n} rows of {n_features} features and {k} classes")

    def _train_path(
        self, problem: LinearProblem, Cs: Sequence[float], settings: OCASSettings, progress: Progress, team: ThreadTeam
    ) -> Iterable[Trained]:
        """The machines for each C: in groups one after the other, where memory has no room for all decision values."""
        losses, start = problem.losses, self._warm_start_points(problem)
        size = int(_VECTORS_SHARE * settings.memory_budget / (_VECTORS * 8 * max(problem.X.shape[0], 1)))
        groups = row_blocks(len(losses), max(size, 1))
        if len(groups) == 1:
            return train_path(problem.X, [make() for make in losses], Cs, settings, progress, start, team)
        progress.stage("classes", len(groups))
        paths = []
        for number, group in enumerate(groups):
            some, points = [make() for make in losses[group]], start and start[group]
            share = progress.part(1 / (len(groups) - number))
            paths.append(list(train_path(problem.X, some, Cs, settings, share, points, team)))
            progress.advance()
        return [_join_groups(machines) for machines in zip(*paths, strict=True)]

    def _settings(self) -> OCASSettings:
        return OCASSettings(
            C=self.C,
            tol=self.tol,
            mu=self.mu,
            line_search=self.line_search,
            is_plain=self.acceleration is None,
            max_iter=self.max_iter,
            memory_budget=resolve_memory_budget(self.memory_budget),
            keep_points=self.warm_start,
        )

    def _make_problem(self, X: DesignMatrix, data: ValidatedRows, C: float, team: ThreadTeam) -> LinearProblem:
        """Set `classes_`, and return the problem, whose objectives at w = 0 have a finite sum for this C."""
        weights = data.weights
        self.classes_, y = number_classes(data.labels, weights, team)
        k = len(self.classes_)
        ones = partial(np.ones, len(y))
        if weights is not None or self.class_weight is not None:
            weights = weigh_classes(self.class_weight, self.classes_, y, ones() if weights is None else weights)
        total = float(k * (len(y) if weights is None else weights.sum()))
        most = np.finfo(np.float64).max / max(1.0, total)
        if float(C) > most:
            raise ValueError(f"C must be at most {most:g} with {len(y)} rows of these weights, got {shown(C)}")
        if self.multi_class == "ovr":
            return LinearProblem(X, self._hinge_losses(y, k, weights, team), 1)
        s, numbers = ones() if weights is None else weights, y.astype(np.int64, copy=False)
        loss = partial(MulticlassHingeLoss, numbers, s, k, team)
        return LinearProblem(with_constant(X) if self.fit_intercept else X, [loss], k)

    def _hinge_losses(self, y: Labels, n_classes: int, s: Vector | None, team: ThreadTeam) -> list[Callable[[], Loss]]:
        def make(c: int) -> Loss:
            weights = one_vs_rest_weights(y, c, s, team)
            return InterceptHingeLoss(weights, team) if self.fit_intercept else HingeLoss(weights, team)

        positive = range(1, 2) if n_classes == 2 else range(n_classes)  # of two classes the second
        return [partial(make, c) for c in positive]

    def _warm_start_points(self, problem: LinearProblem) -> list[Matrix] | None:
        """With `warm_start`, for each loss points (n_points, q n_features) that the fitted machine has; else None.

        None, too, if the fitted machine was of another shape.
        """
        points: list[Matrix] = (getattr(self, "_points", []) or self._best_points(problem)) if self.warm_start else []
        sizes = [problem.n_outputs * problem.X.shape[1]] * len(problem.losses)
        return points if points and [own.shape[1] for own in points] == sizes else None

    def _best_points(self, problem: LinearProblem) -> list[Matrix]:
        """The fitted machine as a point (1, q n_features) for each loss: all that a fit without `warm_start` leaves."""
        W: Matrix = getattr(self, "coef_", np.empty((0, 0)))
        if problem.n_outputs == 1 or not len(W):
            return list(W[:, None])
        W = np.column_stack([W, self.intercept_]) if self.fit_intercept else W
        W = np.concatenate([-0.5 * W, 0.5 * W]) if len(W) == 1 else W
        return [W.reshape(1, -1)]

    def _snapshot(self, data: ValidatedRows, progress: Progress) -> dict[str, Any] | None:
        """The attributes of the current solution."""
        if progress.current_solution is None:
            return None
        stopped = copy.copy(self)
        stopped._set_attributes(self, data.columns, *progress.current_solution)
        return dict(stopped.__dict__)

    def _set_attributes(
        self, checked: Self, columns: RowIndices | None, results: list[LinearResult], history: History
    ) -> None:
        """Set the fitted attributes; those of the data are copied from `checked`, which has validated them."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        of_data = {name: getattr(checked, name) for name in names if hasattr(checked, name)}
        machine = _prediction_attributes(results, checked.n_features_in_, columns)
        self.__dict__.update({**of_data, **machine, **_certificate(results, history)})
        self._points = [_start_points(result) for result in results] if self.warm_start else []

    def _decision_values(self, X: Any, convert: Callable[[Matrix], NDArray[Any]] | None = None) -> NDArray[Any]:
        """Decision values (n, n_functions), or `convert` of them, block by block within the memory budget."""
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        model = self._row_model
        budget = resolve_memory_budget(self.memory_budget)
        compute: Callable[[Any], Matrix] = partial(model.decision_values, n_jobs=self.n_jobs, memory_budget=budget)
        return convert_in_blocks(compute, convert, X, len(self.coef_), budget)

    @property
    def _row_model(self) -> LinearModel:
        return LinearModel(self.coef_, self.intercept_)

    def _check_state(self, fitted: FittedState) -> None:
        d, k = fitted.integer("n_features_in_", 1), fitted.count_classes()
        q = 1 if k == 2 else k
        fitted.array("coef_", np.float64, q, d)
        fitted.array("intercept_", np.float64, q)
        fitted.check_certificate()
        points = fitted.nested("_points")
        for i in points:
            points.array(i, np.float64, None, None)

    def _warn_if_stopped(self, progress: Progress, results: list[LinearResult]) -> None:
        if not progress.ended_with_outer:
            reason = next((result.stopped_by for result in results if not result.converged), None)
            warn_unconverged(self, progress.stopped_by or reason, f"{describe_gap(self)} where tol={self.tol:g}")


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


def _prediction_attributes(results: list[LinearResult], n_features: int, columns: RowIndices | None) -> dict[str, Any]:
    """`coef_` and `intercept_`; of Crammer and Singer's two outputs for two classes the differences.

    Weights are those of `columns`, where these are given; all others are zero.
    """
    W = np.concatenate([result.w for result in results])
    intercept = np.concatenate([result.intercept for result in results])
    if W.shape[1] > (n_features if columns is None else len(columns)):
        W, intercept = W[:, :-1], W[:, -1].copy()
    if len(W) == 2:
        W, intercept = W[1:] - W[:1], intercept[1:] - intercept[:1]
    return {"coef_": restore_columns(np.ascontiguousarray(W), columns, n_features), "intercept_": intercept}


def _start_points(result: LinearResult) -> Matrix:
    """The best point, and those where the heaviest planes touch the risk."""
    return np.vstack([result.w.reshape(1, -1), result.points[: _START_POINTS - 1]])


def _certificate(results: list[LinearResult], history: History) -> dict[str, Any]:
    objective, gap = float(sum(r.objective for r in results)), float(sum(r.gap for r in results))
    return {
        "objective_": objective,
        "dual_gap_": gap,
        "relative_gap_": relative_gap(objective, gap),
        "converged_": all(result.converged for result in results),
        "n_iter_": max(1, len(history)),
        "history_": history.as_arrays(),
    }
