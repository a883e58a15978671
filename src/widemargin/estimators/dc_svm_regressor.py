"""Exact support vector regression as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from .._types import AnyArray, KernelParameter, Matrix, RandomState, RowIndices, Vector
from ..algorithms.dc_svm_levels import Problems
from ..algorithms.trained_machines import TrainedMachines
from ..solvers.dual.problem import DualProblem, regression_problem
from ._dual_machine import DualMachine
from ._estimator import warn_user
from ._kernel_machine import TrainingRows
from ._predictor import Regressor, ValuePredictor
from ._regression_loss import RegressionLoss, targets_and_slopes
from ._training_warnings import decision_values, warn_of_squares
from ._validation import LARGEST_ENTRY, LARGEST_TARGET, check_number, shown, upper_bounds


class DCSVMRegressor(Regressor, ValuePredictor, RegressionLoss, DualMachine):
    r"""Exact support vector regression, for data sets where `sklearn.svm.SVR` takes too long; also of quantiles.

    It minimises, to a stated violation of the optimality conditions,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i L(y_i - f(x_i)),

    and reports how far from the optimum it stopped. With squared losses and ``epsilon=0`` it is kernel ridge
    regression, of ``alpha = 1 / (2 C)``, exactly.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight.
    kernel, gamma
        As in `DCSVMClassifier`.
    epsilon : float, default=0.1
        Half the width of the tube around f in which errors cost nothing, >= 0, in the units of y, with the two losses
        named after it.
    stop_level, max_time, n_jobs
        As in `DCSVMClassifier`.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "quantile"}, default="epsilon_insensitive"
        L of a residual r, as of `OCASRegressor`: ``max(0, |r| - epsilon)``, its square, ``|r|``, or the pinball loss
        ``max(quantile r, (quantile - 1) r)``. Where epsilon is 0, or there is none, nearly all rows are support
        vectors; with squared losses a fit then takes memory and time like :math:`n^2` at least.
    quantile : float or list of float, default=0.5
        In (0, 1): the share of targets below the prediction, with the loss named after it. Of several quantiles
        `predict` has a column each, and the kernel matrix is shared as for several targets.
    fit_intercept : bool, default=True
        Whether the machine has an (unregularised) intercept.
    n_levels, branching, n_sample, partition
        Divide and conquer, as in `DCSVMClassifier`; with squared losses "auto" is no level.
    warm_start : bool, default=False
        As in `DCSVMClassifier`. Holds 16 bytes a row and target after the fit.
    tol : float, default=1e-3
        As in `DCSVMClassifier`, in the units of y.
    max_iter, memory_budget, verbose, random_state
        As in `DCSVMClassifier`; working sets are counted for each target.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,), int
        Indices of the support vectors, ascending: rows on or outside the tube, of any target.
    support_vectors_, shape_fit_
        As in `DCSVMClassifier`.
    n_support_ : ndarray of shape (1,), int
    dual_coef_ : ndarray of shape (n_targets, n_SV), float64
        :math:`\beta = \alpha - \alpha^*`: ``predict(X) = K(X, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of shape (n_targets,), float64
    coef_ : ndarray or CSR array of shape (n_targets, n_features), float64
        For the linear kernel.
    objective_ : float
        Value of the primal problem at the returned machine; the sum over the targets.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum. NaN for kernels that are not positive
        semidefinite, as in `DCSVMClassifier`.
    relative_gap_, early_level_, levels_, converged_, n_iter_, history_
        As in `DCSVMClassifier`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, a callback or the precision of float64 ended the fit: with the violation
        and the gap. The model is the best so far.
    UserWarning
        When the features should be scaled. When `epsilon` is at least half of y's spread, or `C` so small that the
        model is nearly constant: with values that would make sense. And when quantiles cross: in how many rows.

    Notes
    -----
    The dual is solved in the n variables beta, with the 1-norm in the objective:
    :math:`\min \tfrac12 \beta^\top K \beta - y^\top \beta + \varepsilon \|\beta\|_1` over
    :math:`|\beta_i| \le C s_i` and, with an intercept, :math:`\sum_i \beta_i = 0`. The bounds of a quantile q are
    :math:`(q - 1) C s_i` and :math:`q C s_i`. Squared losses add :math:`\sum_i \beta_i^2 / (4 C s_i)` instead of
    them. Each working set holds its coordinates on one side of
    zero. Cost as in `DCSVMClassifier`: about n_SV x n kernel entries for each target. Several targets share the
    clusters of each level and, where it takes at most half of `memory_budget`, the kernel matrix: :math:`n^2` entries
    for all.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014.
    A. J. Smola, B. Schoelkopf, "A tutorial on support vector regression", Statistics and Computing 14, 2004.
    I. Takeuchi, Q. V. Le, T. D. Sears, A. J. Smola, "Nonparametric Quantile Estimation", JMLR 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DCSVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(1_000, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=1_000)
    >>> model = DCSVMRegressor(C=10, epsilon=0.1).fit(X[:800], y[:800])
    >>> print(f"{model.score(X[800:], y[800:]):.2f}")
    0.98
    >>> model.converged_, bool(model.relative_gap_ < 0.01)
    (True, True)
    >>> interval = DCSVMRegressor(C=10, loss="quantile", quantile=[0.1, 0.9]).fit(X[:800], y[:800])
    >>> interval.predict(X[800:]).shape
    (200, 2)
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: KernelParameter = "rbf",
        *,
        gamma: float | str = "scale",
        epsilon: float = 0.1,
        stop_level: int | str = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "epsilon_insensitive",
        quantile: float | Sequence[float] = 0.5,
        fit_intercept: bool = True,
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
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.epsilon = epsilon
        self.stop_level = stop_level
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.quantile = quantile
        self.fit_intercept = fit_intercept
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

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        self._check_loss()
        super()._check_parameters()

    def _named_quantiles(self) -> list[tuple[str, Any]]:
        if not isinstance(self.quantile, list | tuple | np.ndarray) or not np.shape(self.quantile):
            return super()._named_quantiles()
        if not len(self.quantile):
            raise ValueError(f"quantile must have at least one value, got {shown(self.quantile)}")
        return [(f"quantile[{k}]", value) for k, value in enumerate(self.quantile)]

    def _number_targets(self, targets: AnyArray, weights: Vector) -> tuple[AnyArray, AnyArray]:
        """No classes, and the targets; of several quantiles a column for each."""
        if len(self._slopes) > 1:
            if targets.ndim > 1 and targets.shape[1] > 1:
                raise ValueError(f"y must have one column with several quantiles, got shape {targets.shape}")
            targets = np.repeat(targets.reshape(len(targets), 1), len(self._slopes), axis=1)
        return super()._number_targets(targets, weights)

    def _problems(self, rows: TrainingRows) -> Problems:
        all_rows, upper = np.arange(len(rows.y)), upper_bounds(self.C, rows.weights)
        how = {"has_intercept": bool(self.fit_intercept), "is_squared": self._is_squared}

        def problem_of(target: Vector, slopes: tuple[float, float]) -> tuple[RowIndices, DualProblem]:
            problem = regression_problem(target, upper, self._tube, slopes, **how)
            if self._is_squared and not problem.hi.max(initial=0.0) <= LARGEST_ENTRY:
                what = "with squared losses of y of this size, whose sum times C must have a finite square"
                raise ValueError(f"C must be smaller {what}, got C={shown(self.C)}")
            return all_rows, problem

        return [partial(problem_of, target, slopes) for target, slopes in targets_and_slopes(rows.y, self._slopes)]

    def _warn_of_machines(self, rows: TrainingRows, machines: TrainedMachines) -> None:
        if self._is_squared:
            warn_of_squares(rows.y, rows.kept, "loss='epsilon_insensitive'")
        for (y, slopes), machine in zip(targets_and_slopes(rows.y, self._slopes), machines, strict=True):
            beta, decision, objective = machine.result.beta, machine.result.decision, machine.result.objective
            if self._warn_of_target(y, rows.weights, slopes, decision, float(beta @ decision), objective):
                break
        if len(self._slopes) > 1:
            self._warn_of_crossings(decision_values(machines).reshape(len(machines), -1))

    def _warn_of_crossings(self, values: Matrix) -> None:
        """Warn of the training rows where the values (n_quantiles, n) of a quantile are below those of a smaller one.

        Values that are equal to `tol` do not count.
        """
        ordered = values[np.argsort(self.quantile, kind="stable")]
        n_crossings = np.count_nonzero((np.diff(ordered, axis=0) < -self.tol).any(axis=0))
        if n_crossings:
            warn_user(
                f"quantiles cross in {n_crossings} of {values.shape[1]} training rows: "
                "np.sort(model.predict(X), axis=1) puts them in order",
                UserWarning,
            )

    def rescale_targets(self, mean: Any, spread: Any) -> Self:
        """Turn a machine of targets (y - mean) / spread into that of y: f becomes mean + spread f.

        Parameters
        ----------
        mean, spread : ndarray of shape () or (n_targets,)
            `spread` > 0, and at most 1e100: its square must be finite.

        Notes
        -----
        It solves the problem of y with spread C (C itself, of squared losses) and spread epsilon, whose objective is
        spread^2 times as large. Several targets have no common C and epsilon: these and the certificate stay in units
        of the spreads.
        """
        spreads = np.atleast_1d(np.asarray(spread, np.float64))
        if not ((spreads > 0) & (spreads <= LARGEST_TARGET)).all():
            raise ValueError(f"spread must be greater than 0 and at most {LARGEST_TARGET:g}, got {shown(spread)}")
        self.dual_coef_ = self.dual_coef_ * spreads[:, None]
        self.intercept_ = self.intercept_ * spreads + np.atleast_1d(mean)
        if self._clusters is not None:
            intercepts = self._clusters["intercepts"] * spreads[:, None] + np.atleast_1d(mean)[:, None]
            self._clusters = {**self._clusters, "intercepts": intercepts}
        if len(spreads) == 1:
            self.C *= 1.0 if self._is_squared else float(spreads[0])
            self.epsilon *= float(spreads[0])
            self._rescale_certificate(float(spreads[0]))
        self._resumed = None  # it is of the targets before
        self._model = self._make_model()
        return self

    def _rescale_certificate(self, spread: float) -> None:
        """Multiply objectives by spread^2, violations by spread."""
        factors = dict.fromkeys(("objective", "lower_bound"), spread**2) | {"violation": spread}
        self.objective_ *= spread**2
        self.dual_gap_ *= spread**2
        self.history_ = {name: column * factors.get(name, 1.0) for name, column in self.history_.items()}
        self.levels_ = [{k: v * factors.get(k, 1) for k, v in level.items()} for level in self.levels_]
