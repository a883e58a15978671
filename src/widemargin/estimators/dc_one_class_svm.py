"""The exact one-class support vector machine as a scikit-learn outlier detector."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin

from .._progress import Progress
from .._types import AnyArray, Given, KernelParameter, Matrix, RandomState, Rows, Vector
from ..algorithms.dc_svm_levels import KernelProblem, Problems, train_machine
from ..algorithms.pairs_and_targets import take_samples
from ..algorithms.trained_machines import TrainedMachine, TrainedMachines
from ..data.remote.remote_rows import RemoteRows, count_rows
from ..data.samples import Samples
from ..kernels.functions import DISTANCE_KERNELS, Kernel
from ..solvers.dual.problem import one_class_problem
from ._dual_machine import DualMachine
from ._kernel_machine import TrainingRows
from ._near_gamma import near_gamma
from ._predictor import OutlierPredictor, lazy_on_dask
from ._scale import resolve_gamma
from ._validation import LARGEST_TARGET, check_number, make_rng, shown


class DCOneClassSVM(OutlierMixin, OutlierPredictor, DualMachine):
    r"""Exact one-class support vector machine, for data sets where `sklearn.svm.OneClassSVM` takes too long.

    It estimates the region that holds a fraction :math:`1 - \nu` of the data: with :math:`S = \sum_i s_i` it minimises

    .. math:: \tfrac12 \|w\|^2 - \nu S \rho + \sum_i s_i \max(0, \rho - \langle w, \phi(x_i) \rangle);

    rows with :math:`\langle w, \phi(x) \rangle < \rho` are outliers.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: at most that fraction of the training weight is outside, and at least that fraction of it belongs to
        support vectors.
    kernel
        As in `DCSVMClassifier`.
    gamma : {"near", "scale", "auto"} or float, default="near"
        "near": of the kernels "rbf" and "laplacian" 1 / the median over the rows of the distance (squared Euclidean, or
        L1) within which a tenth of the other rows lie, on up to 1,000 rows; of other kernels that of "scale". The
        others as in `DCSVMClassifier`.
    stop_level
        As in `DCSVMClassifier`. Each cluster of an early machine has a :math:`\rho` of its own.
    max_time : float or None, default=None
        Seconds after which `fit` returns the best model so far; where there was no time for one on all rows, that of a
        sample of 300.
    n_jobs
        As in `DCSVMClassifier`.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    n_levels, branching, n_sample, partition
        Divide and conquer, as in `DCSVMClassifier`, but "auto" takes a level whatever number of support vectors is
        expected.
    warm_start, tol, max_iter, memory_budget, verbose, random_state
        As in `DCSVMClassifier`; `warm_start` also for another `nu` or other weights.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,), int
        Indices of the support vectors, ascending.
    support_vectors_, shape_fit_
        As in `DCSVMClassifier`.
    n_support_ : ndarray of shape (1,), int
    dual_coef_ : ndarray of shape (1, n_SV), float64
        :math:`\alpha`, of the sum :math:`\nu S`, as `sklearn.svm.OneClassSVM` scales it.
    intercept_ : ndarray of shape (1,), float64
        :math:`-\rho`.
    offset_ : float
        :math:`\rho`: ``decision_function = score_samples - offset_``.
    coef_ : ndarray or CSR array of shape (1, n_features), float64
        For the linear kernel.
    objective_ : float
        Value of the primal problem at the returned machine; negative.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum; infinite for a machine of a sample.
    relative_gap_ : float
        ``dual_gap_ / |objective_|``.
    early_level_, levels_, converged_, n_iter_, history_
        As in `DCSVMClassifier`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, a callback or the precision of float64 ended the fit: with the violation
        and the gap. The model is the best so far.

    Notes
    -----
    A fraction :math:`\nu` of the rows, and more, are support vectors: cost is about n_SV x n kernel entries.

    References
    ----------
    B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, "Estimating the Support of a
    High-Dimensional Distribution", Neural Computation 13, 2001.
    C.-J. Hsieh, S. Si, I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DCOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> model = DCOneClassSVM(nu=0.2).fit(X)
    >>> print(f"{np.mean(model.predict(X) == -1):.2f}")
    0.18
    >>> model.predict([[1.0, 0.5, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    fit_intercept = True  # rho
    _may_centre = False  # the sum of the coefficients is not zero
    _gamma_names = ("near", "scale", "auto")

    def __init__(
        self,
        nu: float = 0.5,
        kernel: KernelParameter = "rbf",
        *,
        gamma: float | str = "near",
        stop_level: int | str = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        n_levels: int | str = "auto",
        branching: int = 4,
        n_sample: int = 1000,
        partition: str = "auto",
        warm_start: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.stop_level = stop_level
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.n_levels = n_levels
        self.branching = branching
        self.n_sample = n_sample
        self.partition = partition
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    @property
    def offset_(self) -> float:
        """rho, from which on a row is inside."""
        return -float(self.intercept_[0])

    def fit(self, X: ArrayLike, y: Given = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the region of the data.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(train, train), of shape (n_samples, n_samples), for a precomputed kernel; or a dask array or data
            frame, whose rows stay on the workers.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of each sample's loss, >= 0.
        """
        return super().fit(X, None, sample_weight)

    def _check_parameters(self) -> None:
        check_number("nu", self.nu, above=0)
        if self.nu > 1:
            raise ValueError(f"nu must be at most 1, got {shown(self.nu)}")
        super()._check_parameters()

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> TrainingRows:
        rows = super()._check_data(X, y, sample_weight)
        # the coefficients have nu times this sum, whose square must be finite
        if (total := float(rows.weights.sum())) > LARGEST_TARGET:
            raise ValueError(f"sample_weight must have a sum of at most {LARGEST_TARGET:g}, got {total:g}")
        return rows

    def _resolve_gamma(self, X: Rows, weights: Vector) -> float:
        near = None
        if self.gamma == "near" and self.kernel in DISTANCE_KERNELS:
            near = near_gamma(self.kernel, X, weights)
        gamma = "scale" if self.gamma == "near" else self.gamma
        return resolve_gamma(gamma, X, weights, is_gram=self._is_gram) if near is None else near

    def _problems(self, rows: TrainingRows) -> Problems:
        return [lambda: (np.arange(len(rows.weights)), one_class_problem(rows.weights, float(self.nu)))]

    def _finish_machines(
        self, kernel: Kernel, samples: Samples | RemoteRows, rows: TrainingRows, machines: TrainedMachines
    ) -> TrainedMachines:
        (machine,) = machines
        if machine.result.has_certificate or machine.intercepts.any():  # or it is the model that the fit was given
            machine = self._with_border_inside(machine, rows)
        else:
            machine = self._sample_machine(kernel, samples, rows.weights)
        return super()._finish_machines(kernel, samples, rows, TrainedMachines.join([machine]))

    def _with_border_inside(self, machine: TrainedMachine, rows: TrainingRows) -> TrainedMachine:
        """The machine, its rho reduced by the error of its decision values: free support vectors are then inside.

        Their exact decision value is zero, so that otherwise rounding would decide on their label.
        """
        result, b = machine.result, machine.intercepts
        if not result.converged:
            return machine
        # a decision value has 8 times the relative rounding error of a kernel entry
        b = b + result.violation + 8.0 * float(np.finfo(self._dtype).eps) * np.abs(b)
        b_of_row = b if machine.division is None else b[machine.division.labels]
        score, weights = result.decision + b_of_row, rows.weights
        loss = weights @ np.maximum(0.0, -score) + self.nu * np.sum(weights * b_of_row)
        objective = float(0.5 * result.beta @ result.decision + loss)
        gap = max(0.0, objective - result.lower_bound)
        result = replace(result, intercept=float(b.mean()), objective=objective, gap=gap)
        return replace(machine, result=result, intercepts=b)

    def _sample_machine(self, kernel: Kernel, samples: Samples | RemoteRows, weights: Vector) -> TrainedMachine:
        """The machine of at most 300 rows, without a bound; its coefficients have the sum that all rows require."""
        n, rng = len(samples), make_rng(self.random_state, seed_of_none=0)
        chosen = np.sort(rng.choice(n, min(n, 300), replace=False))  # of a fit that has no time for all
        scaled = weights[chosen] * (weights.sum() / weights[chosen].sum())
        settings = replace(self._settings(kernel, n), n_levels=0, stop_level=0)
        data = KernelProblem(kernel, take_samples(kernel, samples, chosen), one_class_problem(scaled, float(self.nu)))
        with Progress() as progress:
            machine = train_machine(data, settings, progress, rng)
        beta = np.zeros(n)
        beta[chosen] = machine.result.beta
        machine.result = replace(
            machine.result, beta=beta, decision=np.zeros(n), gap=np.inf, violation=np.inf, converged=False
        )
        return machine

    def _collection_targets(self, X: Given, y: Given) -> AnyArray:
        return np.zeros(count_rows(X))

    def _targets_for_checks(self, rows: TrainingRows) -> None:
        return None

    def _scores(self, values: Matrix) -> Vector:
        return np.asarray(self._ordinariness(values) - self.offset_)

    def _ordinariness(self, values: Matrix) -> Vector:
        return np.asarray(values[:, 0] + self.offset_)

    @lazy_on_dask
    def score_samples(self, X: ArrayLike) -> Vector:
        r""":math:`\langle w, \phi(x) \rangle` of each row: the larger, the more ordinary.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._ordinariness(self._decision_values(X))
