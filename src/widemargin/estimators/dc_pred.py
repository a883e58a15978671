"""Kernel machines that predict at the cost of a few inner products, as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from .._memory import memory_plan
from .._progress import Progress
from .._types import ClassWeight, KernelParameter, RandomState
from ..algorithms.ocas import train_hinges
from ..data.labels import one_vs_rest_signs
from ..nystroem.leaf_problems import HingeProblem, RidgeProblem
from ._dc_pred_machine import DCPredMachine
from ._kernel_machine import TrainingRows
from ._predictor import Classifier, Regressor, ScorePredictor, ValuePredictor
from ._training_warnings import warn_of_one_class_on_probe, warn_of_squares
from ._validation import check_flag, check_number, shown, upper_bounds


class DCPredClassifier(Classifier, ScorePredictor, DCPredMachine):
    r"""A kernel SVM that predicts at the cost of a few inner products: a tree of small Nystroem machines (DC-Pred++).

    When to use: predictions must be fast or the model small. `compress` does the same to a machine that is fitted.
    More than two classes: one decision function for each against the rest, on landmarks that they share.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, > 0.
    kernel : {"rbf", "laplacian", "poly", "sigmoid", "linear"}, default="rbf"
        Neither precomputed nor a callable: landmarks are points between the rows, and predictions are compiled.
    gamma : float, "scale" or "auto", default="scale"
        As in `sklearn.svm.SVC`. With few landmarks a smaller gamma than the exact machine's is often better.
    prediction_cost : float or "auto", default="auto"
        About what a prediction may cost, in inner products of a row, the cost of a linear machine; at least 4. "auto"
        is 40 for one decision function, and as many leaves and landmarks for several, which costs more
        (`prediction_cost_`). The time of that many linear predictions is an upper bound: most of a linear prediction's
        time is spent on checking and reading rows.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class.
    max_time : float or None, default=None
        Seconds. With a limit, machines of at most 300 rows of each leaf come first, where there are several. Leaves for
        which no time is left keep these, or a constant. 0 gives a constant.
    n_jobs : int or None, default=None
        Threads. The model does not depend on it.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    n_clusters, n_landmarks, n_pseudo_landmarks : int or "auto", default="auto"
        Leaves of a tree; landmarks in each, and pseudo-landmarks. "auto" is what `prediction_cost` buys: at most a
        third of it goes into leaves of 400 rows or more. A leaf of no more rows than landmarks keeps its exact machine.
    pseudo : {"polynomial", "triangle"} or None, default="polynomial"
        Pseudo-landmarks are products of two landmarks' kernel values, or points whose distance is estimated by the
        triangle inequality (rbf and laplacian alone).
    linear_term : bool, default=True
        Whether a leaf has a linear function too, where it takes no more than a quarter of the cost.
    n_trees : int, default=1
        Trees of other clusters whose decision values are averaged; they share the cost.
    landmark_weights : {"auto", "alpha"} or None, default="auto"
        Whether landmarks are centroids of k-means weighted by the squared dual variables of the leaf's exact machine
        ("alpha"), or of plain k-means (None). "auto": in each leaf those of the two from which the exact machine's
        values are better estimated.
    damping : float, default=0.05
        Of the pseudo-inverse :math:`C^+` of the features C of r rows, which becomes
        :math:`(C^\top C + \delta^2 I)^{-1} C^\top`, :math:`\delta` = damping / r times the largest singular value of C,
        >= 0; the r rows are then beside sampled rows of the leaf its landmarks. Coordinates of samples unlike the
        training rows stay bounded by it. 0 is the pseudo-inverse itself, on the sampled rows.
    tol : float, default=1e-3
        Violation at which a leaf's machine is done.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", that `fit` and `predict` may take beyond the data; None is the value of
        `widemargin.get_config`. With less memory, fewer rows are clustered, and kernel matrices are of fewer rows. A
        ValueError names the least that can be kept.
    verbose : int, default=0
        1 draws a progress bar when a fit takes longer than a second.
    random_state : int, RandomState instance or None, default=None
        For clusters, landmarks and pseudo-landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,), float64
        Factor of C for each class, from `class_weight`.
    predictor_ : NystroemForest
        The model.
    prediction_cost_ : float
        What a dense row costs, in inner products: ``(md + ps + routing) / d`` with m landmarks and p pseudo-landmarks.
    leaves_ : dict of ndarrays
        For each leaf: ``tree``, ``n_rows``, ``n_landmarks``, ``objective``, ``gap``, ``time`` when it was done, and
        whether it ``converged``.
    objective_, dual_gap_ : float
        Of the leaves' own problems with the approximate kernel: sums, of one tree. The gap is proven, for the sigmoid
        kernel too: the approximate kernel is positive semidefinite, whatever the kernel is.
    relative_gap_ : float
        ``dual_gap_ / objective_``.
    converged_ : bool
    n_iter_ : int
        1.
    history_ : dict of ndarrays
        ``time``, ``objective`` and ``lower_bound``: cumulative, leaf by leaf; of several trees divided by their number.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When the fit was stopped. The model is the best so far.
    UserWarning
        When the features should be scaled. And when the machine predicts one class for all of up to 1,000 training
        rows, equally many of each class.

    Notes
    -----
    Training: k-means, then :math:`r^2` kernel entries for each leaf, of r rows, at most 3,000. Leaves are trained side
    by side. Prediction: routing, m distances and a few operations for each pseudo-landmark, fused and blocked.

    The paper's Algorithm 2 is ``linear_term=False, landmark_weights="alpha", damping=0``: each of these parameters
    switches :doc:`one difference </how/dc_pred>` off. What remains: with `landmark_weights`, points of the triangle
    rule are drawn in proportion to the squared dual variables, in the paper uniformly. Where the paper leaves a choice:
    a tree has at most two levels up to 144 leaves; W is estimated on the rows of the exact machine, at most 3,000,
    whose violation is at most 0.1; all pseudo-landmarks of a leaf take the same one of the two bounds; several classes
    share landmarks, weighted by the sum of their squared dual variables.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "Fast Prediction for Large-Scale Kernel Machines", NIPS 2014.

    Examples
    --------
    >>> from widemargin import DCPredClassifier
    >>> from widemargin.datasets import load_patches
    >>> X, y = load_patches(6_000)
    >>> model = DCPredClassifier(C=8, gamma=1.0, prediction_cost=20, random_state=0).fit(X[:4_000], y[:4_000])
    >>> model.score(X[4_000:], y[4_000:]) > 0.95, model.prediction_cost_ <= 22
    (True, True)
    >>> decide = model.as_function("decision_function")
    >>> bool(decide(X[0]) == model.decision_function(X[:1])[0])
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: KernelParameter = "rbf",
        *,
        gamma: float | str = "scale",
        prediction_cost: float | str = "auto",
        class_weight: ClassWeight = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        n_clusters: int | str = "auto",
        n_landmarks: int | str = "auto",
        n_pseudo_landmarks: int | str = "auto",
        pseudo: str | None = "polynomial",
        linear_term: bool = True,
        n_trees: int = 1,
        landmark_weights: str | None = "auto",
        damping: float = 0.05,
        tol: float = 1e-3,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.prediction_cost = prediction_cost
        self.class_weight = class_weight
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_pseudo_landmarks = n_pseudo_landmarks
        self.pseudo = pseudo
        self.linear_term = linear_term
        self.n_trees = n_trees
        self.landmark_weights = landmark_weights
        self.damping = damping
        self.tol = tol
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("tol", self.tol, above=0)
        super()._check_parameters()

    def _leaf_problem(self, rows: TrainingRows) -> HingeProblem:
        self.classes_ = rows.classes
        upper = upper_bounds(self.C, self._set_class_weight(rows.classes, rows.y, rows.weights))
        return HingeProblem(one_vs_rest_signs(rows.y, len(rows.classes)), upper, float(self.tol), train_hinges)

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        super()._train(rows, progress)
        if not progress.stopped_by:
            how = {"n_jobs": self.n_jobs, "memory": memory_plan(self)}
            warn_of_one_class_on_probe(self._model, rows.X, rows.y, rows.classes, **how)


class DCPredRegressor(Regressor, ValuePredictor, DCPredMachine):
    r"""Kernel ridge regression that predicts at the cost of a few inner products: a tree of small Nystroem machines.

    When to use: `sklearn.kernel_ridge.KernelRidge` fits, but the data are too many for it, or predictions too slow.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the squared norm, >= 0: the paper's :math:`\lambda`, as in `KernelRidge`. 0, least squares, is an
        error where the kernel matrix of a leaf is singular, unless ``landmark_weights=None``.
    kernel, gamma, prediction_cost
        As in `DCPredClassifier`.
    fit_intercept : bool, default=False
        Whether each leaf has an intercept that is not regularised. Without it there is that of the linear term alone,
        which the norm counts: centre y then.
    max_time, n_jobs
        As in `DCPredClassifier`.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    n_clusters, n_landmarks, n_pseudo_landmarks, pseudo, linear_term, n_trees
        As in `DCPredClassifier`.
    landmark_weights, damping, memory_budget, verbose, random_state
        As in `DCPredClassifier`.

    Attributes
    ----------
    predictor_, prediction_cost_, leaves_, history_
        As in `DCPredClassifier`.
    objective_, dual_gap_ : float
        Of the leaves' own problems with the approximate kernel: sums, of one tree. The gap is 0, as
        leaves are solved directly.
    relative_gap_ : float
        ``dual_gap_ / objective_``: 0.
    converged_ : bool
    n_iter_ : int
        1.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When the fit was stopped. The model is the best so far.
    UserWarning
        When a few targets are ten times as far from the median as all others, which squared losses follow: these rows
        are named.

    Notes
    -----
    Several targets, y of shape (n_samples, n_targets), share clusters, landmarks and matrices. Landmarks are weighted
    by the sum of the targets' squared dual variables.

    Cost and differences from the paper: see `DCPredClassifier`. Samples may have weights.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "Fast Prediction for Large-Scale Kernel Machines", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DCPredRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(2_000, 3))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = DCPredRegressor(alpha=1e-3, gamma=0.3, prediction_cost=30, random_state=0).fit(X[:1_500], y[:1_500])
    >>> model.score(X[1_500:], y[1_500:]) > 0.95
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: KernelParameter = "rbf",
        *,
        gamma: float | str = "scale",
        prediction_cost: float | str = "auto",
        fit_intercept: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        n_clusters: int | str = "auto",
        n_landmarks: int | str = "auto",
        n_pseudo_landmarks: int | str = "auto",
        pseudo: str | None = "polynomial",
        linear_term: bool = True,
        n_trees: int = 1,
        landmark_weights: str | None = "auto",
        damping: float = 0.05,
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.prediction_cost = prediction_cost
        self.fit_intercept = fit_intercept
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_pseudo_landmarks = n_pseudo_landmarks
        self.pseudo = pseudo
        self.linear_term = linear_term
        self.n_trees = n_trees
        self.landmark_weights = landmark_weights
        self.damping = damping
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, least=0)
        check_flag(fit_intercept=self.fit_intercept)
        super()._check_parameters()

    def _leaf_problem(self, rows: TrainingRows) -> RidgeProblem:
        targets = np.ascontiguousarray(rows.y.reshape(len(rows.y), -1).T)
        return RidgeProblem(targets, float(self.alpha), rows.weights, has_intercept=bool(self.fit_intercept))

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        try:
            super()._train(rows, progress)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "alpha must be larger for this kernel, whose matrix is singular to the precision of float64 in a leaf, "
                f"got {shown(self.alpha)}"
            ) from error
        if not progress.stopped_by:
            warn_of_squares(rows.y, rows.kept, "DCSVMRegressor or OCASRegressor(loss='absolute')")
