"""Linear regression by optimised cutting planes: robust, quantile and squared losses."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from .._memory import memory_plan
from .._native import smooth
from .._threads import ThreadTeam
from ..data import DesignMatrix, take_rows
from ..data.rows import spread_rows
from ..models.linear import LinearModel
from ..solvers.cutting_plane.optimal_intercept import double_rows, two_hinges
from ..solvers.cutting_plane.smooth_losses import SmoothLoss
from ._linear_machine import LinearProblem, SingleFunction, ValidatedRows, check_objective_at_zero
from ._predictor import Regressor, ValuePredictor
from ._regression_loss import RegressionLoss
from ._training_warnings import PROBE_ROWS, warn_of_squares


class OCASRegressor(Regressor, ValuePredictor, RegressionLoss, SingleFunction):
    r"""Linear regression with a robust, a quantile or a squared loss, for up to millions of rows, with a certificate.

    It minimises, by optimised cutting planes, as `OCASClassifier` does,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i L(y_i, \langle w, x_i \rangle + b),

    and reports how far from the optimum it stopped.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "quantile"}, default="epsilon_insensitive"
        Of a residual r = y - f(x): ``max(0, |r| - epsilon)``, its square, ``|r|``, or the pinball loss
        ``max(quantile r, (quantile - 1) r)``.
    epsilon : float, default=0.0
        In units of y, >= 0: residuals up to it are free, with the two losses named after it.
    quantile : float, default=0.5
        In (0, 1): the share of targets below the prediction, with the loss named after it.
    tol, fit_intercept, max_time, n_jobs
        As in `OCASClassifier`.

    Other Parameters
    ----------------
    mu, acceleration, max_iter, memory_budget, warm_start, verbose
        As in `OCASClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
    intercept_ : ndarray of shape (1,), float64
    objective_, dual_gap_, relative_gap_, converged_, n_iter_, history_
        As in `OCASClassifier`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C or a callback ended the fit: with the gap. The machine is the best so far.
    UserWarning
        When C is too small for the units of y, or epsilon too large. With squared losses also where a few targets are
        ten times as far from the median as all others: these rows are named.

    Notes
    -----
    All losses but the squared one are two hinges a row: exact line searches, active rows and Newton's method on
    smoothed hinges are those of `OCASClassifier`, on twice as many rows; fits of few rows or columns that take
    long end by an interior-point method. The squared loss has Newton steps, and the start from a sample. Targets of
    large units make C small: scale y.

    References
    ----------
    V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008,
    https://doi.org/10.1145/1390156.1390197.
    R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OCASRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2_000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.exponential(size=2_000)
    >>> model = OCASRegressor(loss="quantile", quantile=0.9).fit(X, y)
    >>> print(f"{np.mean(y <= model.predict(X)):.2f}")
    0.90
    >>> model.converged_
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        quantile: float = 0.5,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        max_time: float | None = None,
        n_jobs: int | None = None,
        mu: float = 0.1,
        acceleration: str | None = "auto",
        max_iter: int = 1000,
        memory_budget: int | str | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.mu = mu
        self.acceleration = acceleration
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        self._check_loss()
        super()._check_parameters()

    def _warn_of_machine(self, data: ValidatedRows) -> None:
        y = np.asarray(data.labels, np.float64)
        s = np.ones(len(y)) if data.weights is None else data.weights
        if self._is_squared:
            warn_of_squares(y[s > 0], np.flatnonzero(s > 0), "loss='absolute'")
        elif isinstance(data.X, np.ndarray) or sp.issparse(data.X):
            w = self.coef_ if data.columns is None else self.coef_[data.columns]
            model = LinearModel(w[None], np.zeros(1))
            few = take_rows(data.X, spread_rows(len(y), PROBE_ROWS), memory_plan(self).budget)
            decision = model.decision_values(few, n_jobs=self.n_jobs)
            self._warn_of_target(y, s, self._slopes[0], decision, float(np.square(self.coef_).sum()), self.objective_)

    def _make_problem(self, X: DesignMatrix, data: ValidatedRows, C: float, team: ThreadTeam) -> LinearProblem:
        y = data.labels
        s = np.ones(len(y)) if data.weights is None else data.weights
        largest = max(1.0, float(np.abs(y).max()))
        at_zero = float(s.sum()) * (largest**2 if self._is_squared else largest)
        check_objective_at_zero(C, at_zero, f"{len(y)} rows of these targets")
        has_intercept = bool(self.fit_intercept)
        if self._is_squared:
            function = smooth.SquaredEpsilonInsensitive(float(self.epsilon))
            return LinearProblem(X, [partial(SmoothLoss, function, y, s, team, has_intercept=has_intercept)], 1)
        above, below = self._slopes[0]
        doubled = double_rows(X, y - self._tube, y + self._tube)
        loss = partial(two_hinges, above * s, below * s, doubled.shift, team, has_intercept=has_intercept)
        return LinearProblem(doubled, [loss], 1)
