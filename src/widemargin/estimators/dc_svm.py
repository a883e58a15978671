"""The exact kernel support vector machine as a scikit-learn classifier."""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._config import resolve_memory_budget
from .._progress import Progress
from ..algorithms.dc_svm import Data, Machine, Settings, train, train_pairs
from ..kernels.functions import Kernel, make_kernel
from ..kernels.precision import refine
from ..kernels.samples import Samples, make_samples
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..solvers.result import DualResult, History
from ._callbacks import CallbackBridge, CallbackSupportMixin, with_callbacks
from ._clusters import clustered_model
from ._kernel import check_range, resolve_gamma, warn_of_scale
from ._pairs import certificate_attributes, machine_attributes, pair_coefficients
from ._parameters import check_parameters
from ._predictor import PairwisePredictor
from ._validation import all_or_nothing, check_weights, class_factors

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


class DCSVMClassifier(CallbackSupportMixin, ClassifierMixin, PairwisePredictor):
    """Exact kernel support vector machine, for data sets where `sklearn.svm.SVC` takes too long.

    It minimises ``1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i f(x_i))`` to a stated violation of the optimality conditions,
    and reports how far from the optimum it stopped.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight and by its class's weight.
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        "laplacian" is ``exp(-gamma |x - z|_1)``. For "precomputed", `fit` takes K(train, train) and `predict` takes
        K(test, train). A callable takes arrays of shapes (r, d) and (c, d) and returns (r, c).
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (n_features * X.var())``, ``1 / n_features`` or a number > 0. With sample weights the variance of "scale"
        is the weighted one, so that a weight of 2 is the same as a repeated row.
    degree : int, default=3
        Of the polynomial kernel ``(gamma <x, z> + coef0) ** degree``.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    fit_intercept : bool, default=False
        Whether the machine has an (unregularised) intercept, as `sklearn.svm.SVC` always has. Without one, training is
        faster and with a kernel such as the RBF the accuracy is usually the same.
    n_levels : int or "auto", default="auto"
        Levels of divide and conquer: n_levels, ..., 1, of ``branching ** level`` clusters each, are solved before the
        whole. 0 solves the whole directly. "auto" solves one level, with clusters of 500 to 2,000 rows, and none
        below 5,000 rows: further ones cost more than they save (docs/decisions/0005).
    branching : int, default=4
        Clusters of a level for each of the level above.
    n_sample : int, default=1000
        Rows that are clustered at each level; the others are assigned to the nearest centre.
    partition : {"auto", "kernel", "input", "random"}, default="auto"
        Clusters by kernel k-means, by k-means of the rows, or by chance. "auto" is "input", and "kernel" for
        precomputed kernels and callables.
    stop_level : int, default=0
        Above 0, the early machine of that level is the result: a local machine for each cluster.
    combine : {"early", "naive", "bcm"}, default="early"
        How an early machine predicts: by the local machine of the row's own cluster; by the sum of all; or by a
        Bayesian committee of all. The latter two exist to be compared with.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of the multiclass decision function: one column per class, or one per pair of classes.
    break_ties : bool, default=False
        With more than two classes, decide equal votes by the decision function (at its cost).
    warm_start : bool, default=False
        Go on from the fitted dual variables, an early machine's too, instead of solving levels. For two classes, the
        same rows, and ``stop_level=0``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end, in units of the decision function. A problem of at
        most 512 rows is solved to 1e-9 at no cost.
    max_iter : int, default=-1
        Largest number of working sets (of up to 512 samples) for each binary problem; -1 for no limit.
    max_time : float or None, default=None
        Seconds after which `fit` returns the best model so far.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that `fit` and `predict` may take beyond the data; None asks
        `widemargin.get_config`. Less memory means more kernel entries computed again, never another result.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" is inversely proportional to the classes' total sample weight.
    n_jobs : int or None, default=None
        Threads; None means all cores, and one inside a worker of joblib. The model does not depend on it.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For the samples that are clustered.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,), int
        Indices of the support vectors, grouped by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        In the dtype of the data. Empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV), float64
        Label times alpha, in scikit-learn's layout.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,), float64
        Zero without `fit_intercept`.
    objective_ : float
        Value of the primal problem at the returned machine; with several classes the sum over the pairs.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum (to the rounding of the kernel entries). An
        early machine's problem is that of the kernel between rows of one cluster alone (Lemma 1 of the paper).
    early_level_ : int
        0 for an exact machine, else the level of the early one; a fit that is stopped in a level returns that level's.
    levels_ : list of dict
        For each level solved: ``problem`` (pair of classes), ``level``, ``n_clusters``, ``n_support``,
        ``clustering_seconds``, ``seconds``, and ``objective``, the dual value of its parts together.
    converged_ : bool
        Whether every violation is below `tol`.
    n_iter_ : int
        Working sets solved.
    history_ : dict of ndarrays
        One entry a round: ``time`` in seconds, ``objective``, ``lower_bound``, ``violation``, ``n_support``, and
        ``problem``, the number of the pair of classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C or a callback ended the fit: with the violation and the gap. The model is
        the best so far. A second Ctrl-C within two seconds raises KeyboardInterrupt and leaves the estimator as it was.
    UserWarning
        When the kernel is nearly constant or nearly the identity on a probe of the rows: the features want scaling.

    Notes
    -----
    Cost: about n_SV x n kernel entries, 1 to 1.5 nanoseconds each on two cores with some tens of features, once if
    `memory_budget` holds the rows of those that are not at a bound. float32 data give float32 kernel entries, float64
    data float64 entries at half the speed; dual variables and decision values are float64. If float32 entries cannot
    reach `tol` (large C), the end is polished with float64 entries. Dense data of which three quarters are zeros are
    handled as sparse.

    Differences from `sklearn.svm.SVC`: no intercept by default; no `probability` (use
    `sklearn.calibration.CalibratedClassifierCV`); `shrinking` and `cache_size` are replaced by `memory_budget`.

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
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        n_levels: int | str = "auto",
        branching: int = 4,
        n_sample: int = 1000,
        partition: str = "auto",
        stop_level: int = 0,
        combine: str = "early",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        warm_start: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.n_levels = n_levels
        self.branching = branching
        self.n_sample = n_sample
        self.partition = partition
        self.stop_level = stop_level
        self.combine = combine
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Sparse input; pairwise for a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(train, train), of shape (n_samples, n_samples), for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels of any kind, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each sample, >= 0.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            check_parameters(self)
            X, labels = self._check_data(X, y)
            weights = check_weights(sample_weight, X)
            bridge = CallbackBridge(self, X, y)
            with Progress(
                max_time=self.max_time, verbose=self.verbose, title=type(self).__name__, callback=bridge
            ) as progress:
                self._fit(X, labels, weights, progress, bridge)
            bridge.close()
        return self

    def _check_data(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=False if self.kernel == "precomputed" else "csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )
        check_classification_targets(y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square kernel matrix for kernel='precomputed', got shape {X.shape}")
        return X, y

    def _fit(self, X: Any, labels: NDArray[Any], weights: Vector, progress: Progress, bridge: CallbackBridge) -> None:
        kept = np.flatnonzero(weights)  # a sample of weight 0 is one that is not there
        classes, y = np.unique(labels[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes with positive weight, got one class: {classes[0]!r}")
        X, weights = self._take_rows(X, kept), weights[kept]
        upper = self.C * weights * class_factors(self.class_weight, classes, y, weights)[y]
        gamma = resolve_gamma(self.gamma, X, weights, is_gram=self.kernel == "precomputed")
        kernel = make_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        samples = make_samples(X, kernel.wants)
        check_range(kernel, samples)
        warn_of_scale(kernel, samples)
        samples = refine(kernel, samples)
        bridge.attributes = partial(self._snapshot, progress, classes, y, kept, X, gamma)
        machines = self._train(kernel, samples, y, upper, kept, progress)
        rows = None if self.kernel == "precomputed" else X
        fitted = machine_attributes(classes, y, kept, rows, machines, self.combine)
        for name, value in {"_gamma": gamma, **fitted, **certificate_attributes(machines)}.items():
            setattr(self, name, value)
        self._model = self._make_model()
        self._warn_if_stopped(machines, progress)

    def _snapshot(
        self, progress: Progress, classes: NDArray[Any], y: Rows, kept: Rows, X: Any, gamma: float
    ) -> dict[str, Any] | None:
        """What a callback needs of the machine as it stands: of two classes, in the rounds of the whole problem."""
        if len(classes) > 2 or not isinstance(progress.candidate, tuple) or len(progress.candidate[0]) != len(y):
            return None
        beta, intercept = progress.candidate
        point = DualResult(beta, np.zeros_like(beta), intercept, 0.0, 0.0, 0.0, False, 0, 0, History())
        machine = Machine(point, None, np.array([intercept]), [])
        rows = None if self.kernel == "precomputed" else X
        stopped = copy.copy(self)
        stopped.__dict__.update(_gamma=gamma, **machine_attributes(classes, y, kept, rows, [machine], self.combine))
        return {**stopped.__dict__, "_model": stopped._make_model()}

    def _take_rows(self, X: Any, rows: NDArray[np.intp]) -> Any:
        if len(rows) == X.shape[0]:
            return X
        return X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]

    def _train(
        self, kernel: Kernel, samples: Samples, y: Rows, upper: Vector, kept: Rows, progress: Progress
    ) -> list[Machine]:
        settings = Settings(
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
            memory_budget=resolve_memory_budget(self.memory_budget),
            n_jobs=self.n_jobs,
            n_levels=self.n_levels,
            stop_level=self.stop_level,
            branching=self.branching,
            n_sample=self.n_sample,
            partition=self._resolve_partition(),
        )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        if y.max() > 1:
            return train_pairs(kernel, samples, y, upper, settings, progress, rng)
        data = Data(kernel, samples, np.where(y > 0, 1.0, -1.0), upper)
        return [train(data, settings, progress, rng, start=self._start(data, kept))]

    def _resolve_partition(self) -> str:
        """k-means of the rows where the kernel is a function of products or distances, else in feature space."""
        if self.partition != "auto":
            return self.partition
        return "kernel" if callable(self.kernel) or self.kernel == "precomputed" else "input"

    def _start(self, data: Data, kept: Rows) -> Vector | None:
        """The fitted machine's dual variables as a feasible point for this problem, with `warm_start`."""
        if (
            not self.warm_start
            or self.stop_level
            or len(getattr(self, "dual_coef_", ())) != 1
            or not len(self.support_)
        ):
            return None
        beta = np.zeros(max(int(kept[-1]), int(self.support_.max())) + 1)
        beta[self.support_] = self.dual_coef_[0]
        beta = np.clip(beta[kept], np.where(data.y > 0, 0, -data.upper), np.where(data.y > 0, data.upper, 0))
        return _balance(beta) if self.fit_intercept else beta

    def _warn_if_stopped(self, machines: list[Machine], progress: Progress) -> None:
        if self.converged_:
            return
        reason = progress.stopped_by or self._own_limit()
        violation = max(machine.result.violation for machine in machines)
        warnings.warn(
            f"{type(self).__name__} was stopped by {reason} before it converged: violation {violation:.3g} where "
            f"tol={self.tol:g}, duality gap {self.dual_gap_:.4g} "
            f"({self.dual_gap_ / max(self.objective_, 1e-300):.2%} of the objective). The model is the best so far.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _own_limit(self) -> str:
        """What stopped a fit that the progress object did not stop as a whole."""
        if self.max_iter >= 0:
            return "max_iter"
        return "max_time" if self.max_time is not None else "the precision of the kernel entries"

    def _make_model(self) -> KernelExpansion | ClusteredExpansion:
        kernel = make_kernel(self.kernel, gamma=self._gamma, degree=self.degree, coef0=self.coef0)
        points = self.support_ if self.kernel == "precomputed" else self.support_vectors_
        coef = pair_coefficients(self.dual_coef_, self.n_support_)
        if self._clusters is not None:
            return clustered_model(kernel, points, coef, self._clusters)
        return KernelExpansion(kernel, points, coef, self.intercept_)


def _balance(beta: Vector) -> Vector:
    """Shrink the heavier class's dual variables so that the sum is zero again."""
    up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if min(up, down) == 0:
        return np.zeros_like(beta)
    return np.asarray(np.where(beta > 0, beta * min(1.0, down / up), beta * min(1.0, up / down)))
