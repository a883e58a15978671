"""Exact kernel machines that choose C and gamma by cross-validation on kernel rows that all their fits share."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from .._types import Vector
from ..estimators._kernel_machine import TrainingRows
from ..estimators.dc_svm import DCSVMClassifier
from ..estimators.dc_svm_regressor import DCSVMRegressor
from ._best_estimator import BestClassifier
from ._cv_problem import Classification, Regression
from ._grid import LARGEST_EPSILON, LEAST_EPSILON, make_values
from ._search_cv import SearchCV


class DCSVMClassifierCV(BestClassifier, SearchCV):
    """`DCSVMClassifier` with C and gamma chosen by cross-validation, for little more than some fits.

    What `GridSearchCV` computes again for every fold and cell is computed once: a fold is the problem of all rows with
    the held-out ones fixed at zero, so that all folds and Cs share the kernel rows of a gamma; a solution is the start
    of the next C's; and held-out rows are not predicted, as their decision values are known. Cells that cannot win are
    eliminated.

    Parameters
    ----------
    Cs : int or list of float, default=10
        Values of C, or how many, log-spaced from 0.1 to 1,000.
    gammas : int or list of float, default=5
        Values of gamma, or how many, log-spaced from 1/16 to 16 times that of ``gamma="scale"``. Kernels without
        gamma (linear, precomputed, callable) ignore it.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn; None means five stratified folds.
    scoring : str, callable or None, default=None
        A scorer of labels or of decision values, as in scikit-learn; None means accuracy. A callable is given an
        estimator that predicts the held-out rows, and nothing else.
    refit : bool, default=True
        Whether a machine with the best parameters is trained on all rows. Without it there are no predictions.
    exhaustive : bool, default=False
        Whether every cell is scored in every fold. Otherwise, from 2,000 rows on, all cells are scored on a quarter
        of the rows, and those are eliminated whose mean score is below the best one's with a confidence of 95 %, but
        for the best one's neighbours; again after two folds of all rows.
    kernel, degree, coef0, fit_intercept, decision_function_shape, break_ties, tol, max_iter, class_weight
        Of `DCSVMClassifier`.
    max_time : float or None, default=None
        Seconds for the whole search; a fifth of them are for the machine that is trained on all rows. The best cell
        seen so far is taken.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB"; None is the value of `widemargin.get_config`. If it holds the kernel matrix (4 n^2
        bytes), that is computed once for each gamma; otherwise each fit computes the kernel rows that it needs. A
        ValueError names the least that can be kept.
    n_jobs : int or None, default=None
        Threads: folds, or machines of pairs of classes, are shared out. The result does not depend on it.
    verbose : int, default=0
        1 draws a progress bar when a search takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For the sample of the rows, and for the machine. None is a fixed seed.

    Attributes
    ----------
    C_, gamma_ : float
        Of the best cell. Of equal ones that of the smallest C, then the smallest gamma.
    best_score_ : float
        Its mean score over the folds; NaN if the search was stopped before any cell was scored on all rows.
    best_estimator_ : DCSVMClassifier
        Trained on all rows. Its attributes (`classes_`, `support_`, `dual_gap_`, ...) are this object's as well.
    Cs_, gammas_ : ndarray
        The values tried, ascending.
    scores_ : ndarray of shape (n_folds, n_gammas, n_Cs), float64
        NaN where a cell was eliminated.
    cv_results_ : dict of ndarrays
        As of `GridSearchCV`, without times: ``params``, ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``.
    history_ : dict of ndarrays
        One entry a score: ``time`` in seconds, ``n_rows``, ``fold``, ``gamma``, ``epsilon``, ``C``, ``score``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time` or Ctrl-C ended the search, with the number of scores not seen. After Ctrl-C the machine is
        trained for at most 0.4 s, and can go on: ``best_estimator_.set_params(warm_start=True).fit(X, y)``.

    Notes
    -----
    Kernel entries of the search are float32, and each dual is solved to `tol`; `best_estimator_` is what
    `DCSVMClassifier` returns for these parameters. ``gamma="scale"`` is that of all rows.

    For scikit-learn's callbacks (`set_callbacks`), every fold's path of C is a task; True ends the search.

    Cost: for each gamma the kernel matrix, and for each fold and C a fraction of a fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import DCSVMClassifierCV
    >>> model = DCSVMClassifierCV(Cs=4, gammas=3).fit(*load_iris(return_X_y=True))
    >>> model.scores_.shape
    (5, 3, 4)
    >>> print(f"C={model.C_:.3g}, accuracy {model.best_score_:.2f}")
    C=2.15, accuracy 0.98
    """

    _machine_type = DCSVMClassifier
    _names = ("C", "gamma")

    def __init__(
        self,
        Cs: Any = 10,
        gammas: Any = 5,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        exhaustive: bool = False,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.exhaustive = exhaustive
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _cv_problem(self, rows: TrainingRows) -> Classification:
        shape, break_ties = self.decision_function_shape, bool(self.break_ties)
        has_intercept = bool(self.fit_intercept)
        return Classification(rows.y, rows.classes, has_intercept, self.class_weight, shape, break_ties)


class DCSVMRegressorCV(RegressorMixin, SearchCV):
    """`DCSVMRegressor` with C, gamma and epsilon chosen by cross-validation, as `DCSVMClassifierCV`.

    Parameters
    ----------
    Cs, gammas, cv, scoring, refit, exhaustive, max_time, memory_budget, n_jobs, verbose, random_state
        Of `DCSVMClassifierCV`. `cv` None means five folds; `scoring` None means the coefficient of determination.
    epsilons : int or list of float, default=(0.1,)
        Values of epsilon >= 0, or how many, log-spaced from 0.001 to 1. Targets of another scale need other values.
    kernel, degree, coef0, fit_intercept, tol, max_iter
        Of `DCSVMRegressor`.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        Of the best cell.
    best_score_, best_estimator_, Cs_, gammas_, cv_results_, history_, n_features_in_, feature_names_in_
        Of `DCSVMClassifierCV`.
    epsilons_ : ndarray of shape (n_epsilons,)
    scores_ : ndarray of shape (n_folds, n_gammas, n_epsilons, n_Cs), float64
        NaN where a cell was eliminated.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DCSVMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=300)
    >>> model = DCSVMRegressorCV(Cs=[1, 10, 100], gammas=3, epsilons=[0.03, 0.1]).fit(X, y)
    >>> model.scores_.shape
    (5, 3, 2, 3)
    """

    _machine_type = DCSVMRegressor
    _names = ("C", "epsilon", "gamma")

    def __init__(
        self,
        Cs: Any = 10,
        gammas: Any = 5,
        *,
        epsilons: Any = (0.1,),
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        exhaustive: bool = False,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.exhaustive = exhaustive
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _cv_problem(self, rows: TrainingRows) -> Regression:
        return Regression(rows.y, bool(self.fit_intercept))

    def _epsilons(self) -> Vector:
        return make_values("epsilons", self.epsilons, LEAST_EPSILON, LARGEST_EPSILON, middle=0.1)
