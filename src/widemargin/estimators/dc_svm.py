"""The exact kernel support vector machine as a scikit-learn classifier."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from .._types import ClassWeight, KernelParameter, RandomState
from ..algorithms.dc_svm_levels import Problems
from ..algorithms.trained_machines import TrainedMachines
from ..solvers.dual.problem import PairProblems, svm_problem
from ._dual_attributes import class_coefficients, compact_pair_coefficients
from ._dual_machine import DualMachine
from ._fitted_state import FittedState
from ._kernel_machine import TrainingRows
from ._predictor import Classifier, OneVsOnePredictor
from ._training_warnings import predicted_classes, warn_of_one_class
from ._validation import check_choice, check_flag, check_number, upper_bounds


class DCSVMClassifier(Classifier, OneVsOnePredictor, DualMachine):
    r"""Exact kernel support vector machine, for data sets where `sklearn.svm.SVC` takes too long.

    It minimises, to a stated violation of the optimality conditions,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i \max(0, 1 - y_i f(x_i)),

    and reports how far from the optimum it stopped.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight and by its class's weight.
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        "laplacian" is :math:`\exp(-\gamma \|x - z\|_1)`. For "precomputed", `fit` takes K(train, train) and `predict`
        takes K(test, train). A callable takes arrays of shapes (r, d) and (c, d) and returns (r, c). Also "cosine",
        "chi2" (of `gamma`) and "additive_chi2", by scikit-learn's functions: slower than the others.
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (n_features * X.var())``, ``1 / n_features`` or a number > 0. With sample weights the variance of "scale"
        is the weighted one, so that a weight of 2 is the same as a repeated row.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" is inversely proportional to the classes' total sample weight.
    stop_level : int or "auto", default=0
        Above 0, the early machine of that level is the result: a machine for each of its clusters. "auto": the level of
        clusters of 500 to 2,000 rows; up to 2,000 rows the exact machine; above half a million rows about 500 clusters.
    max_time : float or None, default=None
        Seconds after which `fit` returns the best model so far; 0 gives a constant one.
    n_jobs : int or None, default=None
        Threads; None means all cores, and one inside a worker of joblib. The model does not depend on it, save where
        `memory_budget` is too small for the kernel matrices of all threads: models then agree to `tol`.

    Other Parameters
    ----------------
    degree : int, default=3
        Of the polynomial kernel :math:`(\gamma \langle x, z \rangle + \mathrm{coef0})^{\mathrm{degree}}`.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    fit_intercept : bool, default=True
        Whether the machine has an (unregularised) intercept, as `sklearn.svm.SVC` always has. False: the problem of the
        paper; with the RBF kernel its accuracy is usually :doc:`the same </decisions/0019-intercept>`.
    n_levels : int or "auto", default="auto"
        Levels of divide and conquer: n_levels, ..., 1, of ``branching ** level`` clusters each, are solved before the
        whole. 0 solves the whole directly. "auto" solves one level, with clusters of 500 to 2,000 rows (about 500
        clusters of more than a million rows), and those of larger clusters while the support vectors' kernel matrix
        exceeds ``memory_budget``; none below 5,000 rows, for sparse rows unless most kernel values between rows round
        to nothing, or where fewer support vectors than rows of a cluster are expected: such levels
        :doc:`cost more than they save </decisions/0005-levels>`.
    branching : int, default=4
        Clusters of a level for each of the level above; a level has about 500 at most.
    n_sample : int, default=1000
        Rows that are clustered at each level, at least 10 for each cluster and at most 5,000; the others are assigned
        to the nearest centre.
    partition : {"auto", "kernel", "input"}, default="auto"
        Clusters by kernel k-means, or by k-means of the rows, which needs features. "auto" is "input", and "kernel" for
        precomputed kernels, callables, "cosine", "chi2" and "additive_chi2".
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of the multiclass decision function: one column per class, or one per pair of classes.
    break_ties : bool, default=False
        With more than two classes, whether the decision function breaks ties of votes (at its cost).
    warm_start : bool, default=False
        Go on from the fitted model: after a stop (`max_time`, Ctrl-C, `max_iter`) where that fit was stopped, also once
        the model has been saved and loaded. On the same data the objective is never larger than before. On other data
        of the same classes, or with other parameters, the fit begins with the coefficients of rows that are still
        there. Holds 16 bytes a row (times classes - 1) after the fit.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end, in units of the decision function. An exact machine
        of at most 512 rows is solved to 1e-9, or to the rounding of its decision values.
    max_iter : int, default=-1
        Largest number of working sets (of up to 512 samples) for each binary problem, and for each cluster of a level;
        -1 for no limit.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that `fit` and `predict` may use beside the data; None is the value of
        `widemargin.get_config`. With less memory more kernel entries are computed again, for the same result.
        A ValueError names the least that can be kept.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For the samples that are clustered. None is a fixed seed: fitted again, an estimator gives the same machine.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,), float64
        Factor of C for each class, from `class_weight`.
    support_ : ndarray of shape (n_SV,), int
        Indices of the support vectors, grouped by class. Where most rows of an array are copies of others, equal rows
        of a class are trained as one: the first of them is the support vector, with the sum of their coefficients.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        In the dtype of the data. Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV), float64
        Label times alpha, in scikit-learn's layout.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,), float64
        Zero without `fit_intercept`.
    coef_ : ndarray or CSR array of shape (n_classes * (n_classes - 1) / 2, n_features), float64
        For the linear kernel: ``decision = X @ coef_.T + intercept_``.
    objective_ : float
        Value of the primal problem at the returned machine; with several classes the sum over the pairs.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum (to the rounding of the kernel entries). An
        early machine's problem is that of the kernel between rows of one cluster alone (Lemma 1 of the paper). NaN for
        the kernels "sigmoid", "additive_chi2" and, with a negative `coef0`, "poly": they are not positive semidefinite,
        and the dual of such a problem is no bound. A precomputed or callable kernel is taken for one, unless a part
        of the given matrix, or the machine, refutes it (with a warning).
    relative_gap_ : float
        ``dual_gap_ / objective_``: how far the machine is from the optimum at most, as a share of its own objective.
    early_level_ : int
        0 for an exact machine, else the level of the early one; a fit that is stopped in a level returns that level's.
    levels_ : list of dict
        For each level solved: ``problem`` (pair of classes), ``level``, ``n_clusters``, ``n_support``,
        ``clustering_seconds``, ``seconds``, and ``objective`` and ``lower_bound``, as in `history_`, of the problem
        with the kernel between rows of one cluster alone.
    converged_ : bool
        Whether every violation is below `tol`, and the gap at most 5 % of the objective; of several classes, in every
        pair. Where the gap is larger at `tol` (large C), the fit goes on to a smaller violation. False also where
        rounding errors of float64 kernel entries, which the gap then includes, could hide a violation of `tol`.
    n_iter_ : int
        Working sets solved. An exact model does not count the working sets of its levels.
    history_ : dict of ndarrays
        One entry a round: ``time`` in seconds, ``objective``, ``lower_bound``, ``violation``, ``n_support``, and
        ``problem``, the number of the pair of classes.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, a callback or the precision of float64 (extreme C, weights or scales of X)
        ended the fit: with the violation and the gap. The model is the best so far. A second Ctrl-C within two seconds
        raises KeyboardInterrupt and leaves the estimator as it was.
    UserWarning
        When the features should be scaled, on a probe of the rows: the kernel is nearly constant or nearly the
        identity; or one column spreads 100 times as far as the others' median, and nearest neighbours hardly share
        their labels. And when the machine predicts one class for all training rows.

    Notes
    -----
    Cost: about n_SV x n kernel entries, 0.4 to 1.3 nanoseconds each on one core with up to a hundred features, once if
    `memory_budget` holds the rows of those that are not at a bound. float32 data give float32 kernel entries, float64
    data float64 entries at half the speed; dual variables and decision values are float64. If float32 entries cannot
    reach `tol` (large C), the end is corrected with float64 entries. Dense data of 32 columns or more, of
    which three quarters are zeros, are handled as sparse.

    Differences from `sklearn.svm.SVC`: no `probability` (see `calibrate`); `shrinking` and `cache_size` are replaced by
    `memory_budget`.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014.
    R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working Set Selection Using Second Order Information for Training Support Vector
    Machines", JMLR 6, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import DCSVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DCSVMClassifier(C=10, gamma=0.001).fit(X[::2], y[::2])
    >>> print(f"{model.score(X[1::2], y[1::2]):.2f}")
    0.99
    >>> model.converged_, bool(model.dual_gap_ < 0.01 * model.objective_)
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: KernelParameter = "rbf",
        *,
        gamma: float | str = "scale",
        class_weight: ClassWeight = None,
        stop_level: int | str = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        n_levels: int | str = "auto",
        branching: int = 4,
        n_sample: int = 1000,
        partition: str = "auto",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        warm_start: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.stop_level = stop_level
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.n_levels = n_levels
        self.branching = branching
        self.n_sample = n_sample
        self.partition = partition
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        super()._check_parameters()
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_flag(break_ties=self.break_ties)

    def _problems(self, rows: TrainingRows) -> Problems:
        upper = upper_bounds(self.C, self._set_class_weight(rows.classes, rows.y, rows.weights))
        has_intercept = bool(self.fit_intercept)
        if len(rows.classes) > 2:
            return PairProblems(rows.y, upper, has_intercept=has_intercept)
        y = np.where(rows.y > 0, 1.0, -1.0)
        return [lambda: (np.arange(len(upper)), svm_problem(y, upper, has_intercept=has_intercept))]

    def _warn_of_machines(self, rows: TrainingRows, machines: TrainedMachines) -> None:
        warn_of_one_class(rows.classes, predicted_classes(machines, len(rows.classes)))

    def _machine_sizes(self, rows: TrainingRows) -> list[int]:
        return [a + b for a, b in combinations(np.bincount(rows.y).tolist(), 2)]

    def _set_machines(self, rows: TrainingRows, machines: TrainedMachines) -> None:
        support = self._set_support(rows, machines, rows.y)
        self.classes_ = rows.classes
        self.n_support_ = np.bincount(rows.y[support], minlength=len(rows.classes))
        self.dual_coef_ = class_coefficients(machines, rows.y, support)

    def _coefficients(self) -> Any:
        return compact_pair_coefficients(self.dual_coef_, self.n_support_)

    def _check_coefficients(self, fitted: FittedState, n: int) -> int:
        k = fitted.count_classes()
        if fitted.array("n_support_", np.integer, k, least=0, below=n + 1).sum() != n:
            raise ValueError(f"n_support_ must have the sum {n}, got {self.n_support_}")
        fitted.array("dual_coef_", np.float64, k - 1, n)
        return k * (k - 1) // 2
