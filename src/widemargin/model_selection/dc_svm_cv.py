"""Kernel machines that choose their kernel, its parameters and the scale of the columns by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Given
from ..estimators._kernel_machine import TrainingRows
from ..estimators._predictor import Regressor
from ..estimators._regression_loss import LOSSES
from ..estimators._validation import check_choice, is_auto
from ..estimators.dc_svm import DCSVMClassifier
from ..estimators.dc_svm_regressor import DCSVMRegressor
from ._best_estimator import BestClassifier, Found
from ._cv_problem import Classification, Regression
from ._search_cv import SearchCV


class DCSVMClassifierCV(BestClassifier, SearchCV):
    """`DCSVMClassifier` with kernel, gamma, C and the scale of the columns chosen by cross-validation on all rows.

    What `GridSearchCV` computes again for every fold and cell is computed once: a fold is the problem of all rows with
    the held-out ones fixed at zero, so that all folds and Cs share the kernel matrix of a gamma; a solution starts the
    next C's; and held-out rows are not predicted, as their decision values are known. On many rows the cells are
    early machines, one for each cluster of rows.

    Parameters
    ----------
    Cs : "auto", int or list of float, default="auto"
        Values of C. "auto": wherever held-out scores rise. A number: so many, log-spaced from 0.1 to 1,000.
    gammas : "auto", int or list of float, default="auto"
        Values of gamma. "auto": from the mean distance of rows to that of near rows, and beyond where held-out scores
        rise. A number: so many, log-spaced from 1/16 to 16 times that of ``gamma="scale"``. Kernels without gamma
        (linear, cosine, additive_chi2, precomputed, callable) ignore it.
    kernels : "auto", str, callable or list of these, default="auto"
        Kernels of `DCSVMClassifier`. "auto" is "rbf" and "laplacian"; of sparse rows "rbf". And "linear" where
        `scoring` is a ranking or a class is rare (see Notes).
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn, but None means five stratified folds of rows in a random order: a number of folds takes them
        as they come, so that of a sorted file each is another part. Rows that belong together, or follow one another
        in time, need a splitter (`GroupKFold`, `TimeSeriesSplit`). Of many rows only some of the folds are used: as
        many as have 20,000 held-out rows.
    scoring : str, callable or None, default=None
        A scorer of labels or of decision values, as in scikit-learn; None means accuracy. A callable is given an
        estimator that predicts the held-out rows, and nothing else. Where a named scorer is one of a positive class,
        and no label is 1, that is the second of two classes.
    class_weight : "auto", dict, "balanced" or None, default="auto"
        Of `DCSVMClassifier`. "auto": None; where `scoring` is a ranking or a class is rare (see Notes), None or
        "balanced", whichever scores better.
    max_time : float or None, default=None
        Seconds for search and last machine. The best cell seen so far, on the most rows, is taken.
    n_jobs : int or None, default=None
        Threads: clusters, folds, or machines of pairs of classes are shared out. The result does not depend on it,
        unless the memory budget is small: then each thread takes some of it.

    Other Parameters
    ----------------
    search : {"auto", "exact", "early"}, default="auto"
        "exact": every cell of a grid is scored by exact machines. "early": cells are early machines of clusters of
        about 2,000 rows; up to 4,000 rows there is one cluster. "auto": "exact" for given grids of at most 4,000 rows,
        and for a kernel that is precomputed, a callable, cosine, chi2 or additive_chi2; else "early".
    relevance : "auto" or bool, default="auto"
        Whether columns are also scaled by the gradients of the best cell's machine, as `RelevanceScaler` does. The
        scaled rows are kept only where they score better. Not of sparse rows, and not of exact searches.
    refit : {True, "auto", "exact", "early", False}, default=True
        The machine that is trained on all rows with the best parameters. True and "auto": the exact one up to 50,000
        rows, else an early one of as few clusters as the time allows. Without it there are no predictions.
    exhaustive : bool, default=False
        Whether every cell of a grid is scored in every fold, by machines whose gap / primal objective is at most `tol`,
        as float64 finds it where `memory_budget` holds the rows in float64; their violations may be ten times `tol`, up
        to 0.1. Such a machine is the solution times a factor near 1, that of the least objective. Where the kernel has
        no such gap, violations are below `tol`. A search that is not exhaustive scores all cells of an exact search,
        from 2,000 rows on, on a quarter of the rows, and those are eliminated whose mean score is below the best one's
        with a confidence of 95 %, but for the best one's neighbours; again after two folds of all rows.
    degree, coef0, fit_intercept, decision_function_shape, break_ties, tol, max_iter
        Of `DCSVMClassifier`; `break_ties` is True here.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB"; None is the value of `widemargin.get_config`. If it holds the kernel matrix (4 n^2
        bytes), the folds and Cs of a gamma share that; otherwise fits compute the kernel rows that they need. A
        ValueError names the least that can be kept.
    verbose : int, default=0
        1 draws a progress bar when a search takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For folds (`cv` None), clusters, samples of the rows, and the machine. None is a fixed seed.

    Attributes
    ----------
    kernel_ : str or callable
    C_, gamma_ : float
        Of the best cell. Of equal ones that of the smallest C, then the smallest gamma. `gamma_` is that of the scaled
        columns.
    relevance_ : ndarray of shape (n_features,) or None
        Factors of the columns, the largest 1; None where the columns stay as they are.
    best_score_ : float
        Its mean score over the folds it was scored in; NaN if the search was stopped before any cell was scored.
    best_estimator_ : DCSVMClassifier, or Pipeline of RelevanceScaler and DCSVMClassifier
        Trained on all rows. Attributes of the machine (`classes_`, `support_`, `dual_gap_`, `early_level_`, ...) are
        this object's as well. Where it has scaled the columns, `support_vectors_` are scaled, and ``X[support_]`` not.
    Cs_, gammas_ : ndarray
        The values tried with the best kernel and scale of the columns, ascending.
    scores_ : ndarray of shape (n_folds, n_gammas, n_Cs), float64
        Of these; NaN where a cell was eliminated or not visited.
    cv_results_ : dict of ndarrays
        As of `GridSearchCV`, without times: ``params``, ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``. Of an early search also ``n_test_rows``: cells of more held-out rows
        rank first.
    oof_decision_function_ : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        The best cell's decision values of each row by the machine of the fold that held it out; the mean of several.
        NaN for rows that no fold held out, of weight 0, or that this fit has not scored the best cell on (of early
        searches: all but some 20,000).
    history_ : dict of ndarrays
        One entry a score: ``time`` in seconds, ``n_rows``, ``fold``, ``kernel`` (its number), ``gamma``, ``epsilon``,
        ``C``, ``score``; of an early search also ``scaling`` (its number) and ``balanced``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time` or Ctrl-C ended the search, with what was not seen. After Ctrl-C the machine is trained for at
        most 0.4 s, and the warning says how it can go on. Another `fit` with the same data and parameters goes on from
        there: it takes the scores in `history_` (but for those of scaled columns), and the machine where it was
        stopped.

    Notes
    -----
    A ranking is a scorer of decision values, such as "roc_auc" or "average_precision". A class is rare if it has less
    than 0.4 times the weight that it had if the classes were equal (20 % of two), and `scoring` is not the accuracy.
    Scores of few rare rows would then decide on chance. So the cells of an early search of more than 4,000 rows are
    scored on 4,000 drawn rows, in all folds: up to half as many of each class as if they were equal, and the others in
    proportion, with weights that make up for it. Up to four cells that are not below the best one with a confidence of
    95 % are scored again on up to 20,000 rows. A callable `scoring` that takes no ``sample_weight`` has the rows as
    they are. ``cv_results_["param_class_weight"]`` has the weights of the classes that were tried.

    Kernel entries of the search are float32. An exact search solves each dual to `tol`, an early one to 0.01;
    `best_estimator_` is what `DCSVMClassifier` returns for these parameters. ``gamma="scale"`` is that of all rows.

    For scikit-learn's callbacks (`set_callbacks`), every kernel matrix's cells are a task; True ends the search.

    Cost of an exact search: for each gamma the kernel matrix, and for each fold and C a fraction of a fit. Of an early
    one: some 30 gammas on clusters that have 3,000 held-out rows, and four cells on 20,000.

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models", Science 383, 2024 (the relevance of columns).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import DCSVMClassifierCV
    >>> model = DCSVMClassifierCV(Cs=4, gammas=3, kernels="rbf").fit(*load_iris(return_X_y=True))
    >>> model.scores_.shape
    (5, 3, 4)
    >>> print(f"C={model.C_:.3g}, accuracy {model.best_score_:.2f}")
    C=2.15, accuracy 0.97
    """

    _machine_type = DCSVMClassifier
    _names = ("C", "gamma")

    def __init__(
        self,
        Cs: Given = "auto",
        gammas: Given = "auto",
        *,
        kernels: Given = "auto",
        cv: Given = None,
        scoring: Given = None,
        class_weight: Given = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        search: str = "auto",
        relevance: Any = "auto",
        refit: Given = True,
        exhaustive: bool = False,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = True,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: Given = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.kernels = kernels
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.search = search
        self.relevance = relevance
        self.refit = refit
        self.exhaustive = exhaustive
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def _cv_problem(self, rows: TrainingRows) -> Classification:
        shape, break_ties = self.decision_function_shape, bool(self.break_ties)
        has_intercept = bool(self.fit_intercept)
        class_weight = None if is_auto(self.class_weight) else self.class_weight
        return Classification(rows.y, rows.classes, has_intercept, class_weight, shape, break_ties)

    def _prototype(self, **parameters: Any) -> DCSVMClassifier:
        machine: DCSVMClassifier = super()._prototype(**parameters)
        return machine.set_params(class_weight=None) if is_auto(machine.class_weight) else machine


class DCSVMRegressorCV(Regressor, SearchCV):
    """`DCSVMRegressor` with kernel, gamma, C, epsilon and the scale of the columns chosen, as `DCSVMClassifierCV`.

    Targets are scaled to unit spread inside: the user's units don't matter. The spread is the standard deviation of all
    targets but wild ones: up to 5 % of the rows that are ten times as far from the median as all others.

    Parameters
    ----------
    Cs, gammas
        Of `DCSVMClassifierCV`; `Cs` in units of the targets' spread.
    epsilons : "auto", int or list of float, default="auto"
        Values of epsilon >= 0 in units of the targets' spread. "auto": 0.1, and wherever
        held-out scores rise. A number: so many, log-spaced from 0.001 to 1.
    kernels : "auto", str, callable or list of these, default="auto"
        As of `DCSVMClassifierCV`; "auto" has "linear" up to 4,000 rows.
    cv, scoring, max_time, n_jobs
        Of `DCSVMClassifierCV`. `cv` None means five folds of rows in a random order. `scoring` None means the
        coefficient of determination on test rows without wild targets, or minus the mean pinball loss of the
        quantiles; where a fold has a single test row, minus the mean absolute error, with a warning.

    Other Parameters
    ----------------
    loss : {"epsilon_insensitive", "absolute", "quantile"}, default="epsilon_insensitive"
        Of `DCSVMRegressor`. The last two have no epsilon: `epsilon_` is 0.
    quantile
        Of `DCSVMRegressor`.
    search, relevance, refit, exhaustive
        Of `DCSVMClassifierCV`.
    degree, coef0, fit_intercept, tol, max_iter
        Of `DCSVMRegressor`; `tol` in units of the targets' spread.
    memory_budget, verbose, random_state
        Of `DCSVMClassifierCV`.

    Attributes
    ----------
    kernel_, C_, gamma_, epsilon_
        Of the best cell; `C_` and `epsilon_` in units of the targets' spread. ``best_estimator_``'s own are in the
        units of one target.
    relevance_, best_score_, best_estimator_, Cs_, gammas_, cv_results_, history_, n_features_in_, feature_names_in_
        Of `DCSVMClassifierCV`.
    oof_prediction_ : ndarray of shape (n_samples,), (n_samples, n_targets) or (n_samples, n_quantiles)
        As `oof_decision_function_` of `DCSVMClassifierCV`, in the units of y; also NaN for wild targets, which are
        not scored.
    epsilons_ : ndarray of shape (n_epsilons,)
    scores_ : ndarray of shape (n_folds, n_gammas, n_epsilons, n_Cs), float64
        NaN where a cell was eliminated or not visited.

    Warns
    -----
    ConvergenceWarning
        As `DCSVMClassifierCV`.
    UserWarning
        When there are wild targets: their rows are named.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DCSVMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=300)
    >>> model = DCSVMRegressorCV(Cs=[1, 10, 100], gammas=3, epsilons=[0.03, 0.1], kernels="rbf").fit(X, y)
    >>> model.scores_.shape
    (5, 3, 2, 3)
    """

    _machine_type = DCSVMRegressor
    _names = ("C", "epsilon", "gamma")

    def __init__(
        self,
        Cs: Given = "auto",
        gammas: Given = "auto",
        *,
        epsilons: Given = "auto",
        kernels: Given = "auto",
        cv: Given = None,
        scoring: Given = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        loss: str = "epsilon_insensitive",
        quantile: float | Sequence[float] = 0.5,
        search: str = "auto",
        relevance: Any = "auto",
        refit: Given = True,
        exhaustive: bool = False,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: Given = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.kernels = kernels
        self.cv = cv
        self.scoring = scoring
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.loss = loss
        self.quantile = quantile
        self.search = search
        self.relevance = relevance
        self.refit = refit
        self.exhaustive = exhaustive
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def _check_search(self) -> None:
        check_choice("loss", self.loss, tuple(loss for loss in LOSSES if not loss.startswith("squared")))
        super()._check_search()

    def _cv_problem(self, rows: TrainingRows) -> Regression:
        slopes, has_intercept = self._prototype()._slopes, bool(self.fit_intercept)
        return Regression.of_targets(rows.y, rows.weights, slopes, has_intercept=has_intercept)

    def _epsilon_values(self) -> Any:
        return self.epsilons if self.loss == "epsilon_insensitive" else (0.0,)

    def _train(
        self, X: Given, y: Given, sample_weight: Given, max_time: float | None, found: Found, **parameters: Any
    ) -> DCSVMRegressor:
        """Train on targets of unit spread; the model, its C and its epsilon are then in the user's units."""
        mean, spread = found.problem.mean, found.problem.spread
        if len(found.problem.slopes) > 1:  # several quantiles have the target in common
            mean, spread = np.ravel(mean)[0], np.ravel(spread)[0]
        targets = (np.asarray(y, np.float64) - mean) / spread
        machine: DCSVMRegressor = super()._train(X, targets, sample_weight, max_time, found, **parameters)
        return machine.rescale_targets(mean, spread)
