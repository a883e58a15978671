"""Kernel machines that predict at the cost of a few inner products, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state

from .._config import resolve_memory_budget
from .._progress import Progress
from ..algorithms.dc_pred import train
from ..models.nystrom import NystromForest
from ..solvers.local import HingeTask, RidgeTask, Task
from ._cost import check_cost, spend
from ._kernel import make_checked_samples
from ._kernel_machine import KernelMachine, TrainingRows
from ._nystrom_files import describe_trees, forest_of
from ._parameters import check_kernel, check_limits, check_pseudo
from ._predictor import OneAgainstRestPredictor
from ._training import describe_gap, warn_of_stop
from ._validation import check_choice, check_number, check_seed, weigh_classes

Vector = NDArray[np.float64]


class LocalMachine(KernelMachine):
    """What `DCPredClassifier` and `DCPredRegressor` share."""

    prediction_cost: float | str
    n_clusters: int | str
    n_landmarks: int | str
    n_pseudo_landmarks: int | str
    pseudo: str | None
    linear_term: bool
    n_trees: int
    landmark_weights: str | None
    max_time: float | None
    random_state: Any
    predictor_: NystromForest

    def _check_parameters(self) -> None:
        check_kernel(self)
        check_cost(self)
        check_pseudo(self)
        check_choice("landmark_weights", self.landmark_weights or "none", ("alpha", "none"))
        check_seed(self.random_state)
        check_limits(self)

    def _train(self, rows: TrainingRows, task: Task, progress: Progress) -> None:
        kernel: Any = self._resolve_kernel(rows.X, rows.weights)
        make_checked_samples(kernel, rows.X)
        n, d = rows.X.shape
        settings = spend(self, n, d, task.n_outputs)
        settings = settings._replace(
            by_alpha=self.landmark_weights == "alpha", memory_budget=resolve_memory_budget(self.memory_budget)
        )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        machine = train(kernel, rows.X, task, settings, progress, rng)
        leaves = machine.leaves
        order = np.argsort(leaves["time"], kind="stable")
        self.leaves_ = leaves
        self.objective_ = float(leaves["objective"].sum()) / settings.n_trees
        self.dual_gap_ = float(leaves["gap"].sum()) / settings.n_trees
        self.converged_ = machine.converged
        self.n_iter_ = 1
        self.history_ = {
            "time": leaves["time"][order],
            "objective": np.cumsum(leaves["objective"][order]),
            "lower_bound": np.cumsum((leaves["objective"] - leaves["gap"])[order]),
        }
        self._trees = describe_trees(machine.model)
        self._model = self._make_model()
        self.prediction_cost_ = self._model.n_operations
        if not self.converged_:
            reason = progress.stopped_by or "the precision of the kernel entries"
            warn_of_stop(self, reason, f"before it converged: {describe_gap(self)}. The model is the best so far.")

    def _make_model(self) -> NystromForest:
        self.predictor_ = forest_of(self._make_kernel(), self._trees)
        return self.predictor_

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and the arrays, without what prediction makes of them."""
        return {name: value for name, value in super().__getstate__().items() if name != "predictor_"}


class DCPredClassifier(ClassifierMixin, OneAgainstRestPredictor, LocalMachine):
    """To be described."""

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        prediction_cost: float | str = "auto",
        n_clusters: int | str = "auto",
        n_landmarks: int | str = "auto",
        n_pseudo_landmarks: int | str = "auto",
        pseudo: str | None = "polynomial",
        linear_term: bool = True,
        n_trees: int = 1,
        landmark_weights: str | None = "alpha",
        tol: float = 1e-3,
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
        self.prediction_cost = prediction_cost
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_pseudo_landmarks = n_pseudo_landmarks
        self.pseudo = pseudo
        self.linear_term = linear_term
        self.n_trees = n_trees
        self.landmark_weights = landmark_weights
        self.tol = tol
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("tol", self.tol, above=0)
        super()._check_parameters()

    def _fit(self, rows: TrainingRows, progress: Progress) -> None:
        upper = self.C * weigh_classes(self.class_weight, rows.classes, rows.y, rows.weights)
        numbers = [1] if len(rows.classes) == 2 else range(len(rows.classes))
        signs = np.array([np.where(rows.y == number, 1.0, -1.0) for number in numbers])
        self._train(rows, HingeTask(signs, upper, self.tol), progress)
        self.classes_ = rows.classes


class DCPredRegressor(RegressorMixin, LocalMachine):
    """To be described."""

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        prediction_cost: float | str = "auto",
        n_clusters: int | str = "auto",
        n_landmarks: int | str = "auto",
        n_pseudo_landmarks: int | str = "auto",
        pseudo: str | None = "polynomial",
        linear_term: bool = True,
        n_trees: int = 1,
        landmark_weights: str | None = "alpha",
        max_time: float | None = None,
        memory_budget: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.prediction_cost = prediction_cost
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_pseudo_landmarks = n_pseudo_landmarks
        self.pseudo = pseudo
        self.linear_term = linear_term
        self.n_trees = n_trees
        self.landmark_weights = landmark_weights
        self.max_time = max_time
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, above=0)
        super()._check_parameters()

    def _fit(self, rows: TrainingRows, progress: Progress) -> None:
        self._train(rows, RidgeTask(rows.y[None].astype(np.float64), self.alpha, rows.weights), progress)

    def predict(self, X: ArrayLike) -> Vector:
        """The value of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._decide(X)[:, 0]
