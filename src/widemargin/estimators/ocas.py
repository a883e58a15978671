"""The linear support vector machine by optimised cutting planes, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit, logsumexp

from .._memory import memory_plan
from .._native import smooth
from .._threads import ThreadTeam
from .._types import ClassWeight, Given, Labels, Matrix, Vector
from ..data import DesignMatrix, with_constant
from ..models.linear import LinearModel
from ..solvers.cutting_plane.crammer_singer import MulticlassHingeLoss
from ..solvers.cutting_plane.losses import HingeLoss, Loss, one_vs_rest_weights
from ..solvers.cutting_plane.optimal_intercept import InterceptHingeLoss
from ..solvers.cutting_plane.smooth_losses import SmoothLoss, SquaredHingeLoss
from ._fitted_state import FittedState
from ._linear_machine import LinearMachine, LinearProblem, ValidatedRows, check_objective_at_zero
from ._predictor import Classifier, ScorePredictor, lazy_on_dask
from ._row_function import Response
from ._training_warnings import warn_of_one_class_of_linear
from ._validation import check_choice, class_factors, number_classes

_SMOOTH: dict[str, Callable[..., SmoothLoss]] = {
    "squared_hinge": SquaredHingeLoss,
    "logistic": partial(SmoothLoss, smooth.Logistic()),
}


class OCASClassifier(Classifier, ScorePredictor, LinearMachine):
    r"""Linear support vector machine, for up to millions of rows, with a certificate.

    It minimises, by optimised cutting planes (OCAS),

    .. math:: \tfrac12 \|w\|^2 + C \sum_i s_i \max(0, 1 - y_i (\langle w, x_i \rangle + b)),

    or the same with another loss, and reports how far from the optimum it stopped. Take it for many rows, for a large
    C, and where the precision must be known.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0. For each sample it is multiplied by its weight and by its class's weight.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        Of a margin :math:`m = y (\langle w, x \rangle + b)`: :math:`\max(0, 1 - m)`, its square, or
        :math:`\log(1 + e^{-m})`, which has `predict_proba`.
    tol : float, default=1e-3
        Largest duality gap at the end, relative to the objective; of each class with several.
    fit_intercept : bool, default=True
        Whether the machine has an intercept. It is not regularised.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With more than two classes: one machine for each class against the rest, all in the same passes over the data;
        or Crammer and Singer's single problem, of hinges and for two classes too:
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
        ``seconds_active_rows`` (and Newton steps), ``seconds_dual_ascent``, ``seconds_decision_values``,
        ``seconds_line_search``, ``seconds_plane`` and ``seconds_master_problem``. Where no round was needed, one entry
        for the result.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, a callback or the precision of float64 (in 50 rounds the bound did not
        rise, nor the objective fall by `tol`) ended the fit: with the gap. The machine is the best so far. A second
        Ctrl-C within two seconds raises KeyboardInterrupt and leaves the estimator as it was.

    Notes
    -----
    Cost: a round reads X once, and once more its rows whose coefficient in the plane has changed; the number of rounds
    hardly depends on that of the rows. X is not copied as a whole: dense in C or Fortran order, a memory map, CSR with
    32- or 64-bit indices (converted are CSC, CSR whose entries are repeated or not sorted, and large dense arrays that
    have at most one non-zero in eight values), float32 or float64. A
    fit holds 90 to 112 bytes a row beside X, for each class, and 8 bytes x n_features a plane (16 with `warm_start`).
    Columns of a CSR without values cost nothing but their places in `coef_`, where it has fewer values than columns
    (and without `warm_start`). Decision values and planes are added up in float64. With the logistic, and mostly the
    squared loss a round begins with a Newton step: with the Hessian of up to 128 columns or of few rows, else by
    conjugate gradients, up to 100 pairs of passes for each class.

    :doc:`The accelerations </how/ocas>` are chosen by the loss and the shape of X; on dask there are Newton
    steps alone.

    With ``acceleration=None`` each master problem is solved to rounding, each step is the minimiser on its line, and
    planes stay while `memory_budget` allows. With ``fit_intercept=False`` and ``multi_class="ovr"`` this is the paper's
    Algorithm 1 line by line, whose first round, at w = 0, is not counted in `n_iter_`.

    Differences from the paper, beside :doc:`five others </how/ocas>`: (6) With an intercept, the line search, O(n)
    expected, interpolates b linearly between its optima at step 0 and at about the step. (7) Where `memory_budget` is
    reached, planes are merged, too. With "auto" also: (8) The accelerations. (9) Steps are at most 2, master problems
    are solved to 5 % of the gap, and planes are dropped after 20 rounds with multiplier 0.

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
        loss: str = "hinge",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        multi_class: str = "ovr",
        class_weight: ClassWeight = None,
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
        self.loss = loss
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

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, ("hinge", *_SMOOTH))
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        if self.multi_class == "crammer_singer" and self.loss != "hinge":
            raise ValueError(f"multi_class='crammer_singer' needs loss='hinge', got loss={self.loss!r}")
        super()._check_parameters()

    def _warn_of_machine(self, data: ValidatedRows) -> None:
        if isinstance(data.X, np.ndarray) or sp.issparse(data.X):
            model = LinearModel(self.coef_ if data.columns is None else self.coef_[:, data.columns], self.intercept_)
            warn_of_one_class_of_linear(
                model,
                data.X,
                lambda: number_classes(data.labels, data.weights)[1],
                self.classes_,
                memory_plan(self).budget,
                n_jobs=self.n_jobs,
            )

    def _make_problem(self, X: DesignMatrix, data: ValidatedRows, C: float, team: ThreadTeam) -> LinearProblem:
        weights = data.weights
        self.classes_, y = number_classes(data.labels, weights, team)
        k = len(self.classes_)
        ones = partial(np.ones, len(y))
        if self.class_weight is not None:
            weights = ones() if weights is None else weights
            weights = weights * class_factors(self.class_weight, self.classes_, y, weights)[y]
        total = float(k * (len(y) if weights is None else weights.sum()))
        check_objective_at_zero(C, total, f"{len(y)} rows of these weights")
        if self.multi_class == "ovr":
            return LinearProblem(X, self._binary_losses(y, k, weights, team), 1)
        s, numbers = ones() if weights is None else weights, y.astype(np.int64, copy=False)
        loss = partial(MulticlassHingeLoss, numbers, s, k, team)
        return LinearProblem(with_constant(X) if self.fit_intercept else X, [loss], k)

    def _binary_losses(self, y: Labels, n_classes: int, s: Vector | None, team: ThreadTeam) -> list[Callable[[], Loss]]:
        def make(c: int) -> Loss:
            if self.loss != "hinge":
                own = one_vs_rest_weights(y, c), np.ones(len(y)) if s is None else s
                return _SMOOTH[self.loss](*own, team, has_intercept=self.fit_intercept)
            weights = one_vs_rest_weights(y, c, s)
            return InterceptHingeLoss(weights, team) if self.fit_intercept else HingeLoss(weights, team)

        positive = range(1, 2) if n_classes == 2 else range(n_classes)  # of two classes the second
        return [partial(make, c) for c in positive]

    @property
    def predict_proba(self) -> Any:
        """Probabilities (n_samples, n_classes) of the classes, for rows X: of the logistic loss alone.

        With several classes each machine gives 1 / (1 + exp(-f_c(x))); these are divided by their sum.

        Raises
        ------
        AttributeError
            For other losses, with the code that gives probabilities.
        """
        return self._probabilities if self.loss == "logistic" else self._no_probabilities("predict_proba")

    @property
    def predict_log_proba(self) -> Any:
        """The logarithm of `predict_proba`."""
        return self._log_probabilities if self.loss == "logistic" else self._no_probabilities("predict_log_proba")

    @lazy_on_dask
    def _probabilities(self, X: Given) -> Matrix:
        return np.asarray(self._decision_values(X, lambda values: np.exp(_log_sigmoids(values))))

    @lazy_on_dask
    def _log_probabilities(self, X: Given) -> Matrix:
        return np.asarray(self._decision_values(X, _log_sigmoids))

    @property
    def _responses(self) -> dict[str, Response]:
        curves = {"predict_proba": lambda values: np.exp(_log_sigmoids(values))} if self.loss == "logistic" else {}
        return {**super()._responses, **curves}

    def _check_state(self, fitted: FittedState) -> None:
        d, k = fitted.integer("n_features_in_", 1), fitted.count_classes()
        q = 1 if k == 2 else k
        fitted.array("coef_", np.float64, q, d)
        self._check_linear_state(fitted, q)


def _log_sigmoids(values: Matrix) -> Matrix:
    """Logarithms of probabilities (n, n_classes) from decision values (n, n_functions), of two classes one function."""
    if values.shape[1] == 1:
        return np.column_stack([log_expit(-values[:, 0]), log_expit(values[:, 0])])
    logs = log_expit(values)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))
