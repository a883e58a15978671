"""`DCPredMachine`, the base of `DCPredClassifier` and `DCPredRegressor`: parameters, training, files."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._memory import memory_plan
from .._progress import Progress
from .._types import AnyArray, Array, RandomState
from ..algorithms.dc_pred_leaves import TrainedForest, needed_bytes, train_forest
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..nystroem.leaf_problems import LeafProblem
from ._cost import allocate_automatic_cost, check_cost
from ._estimator import describe_gap, relative_gap, warn_unconverged
from ._fitted_state import FittedState
from ._kernel_machine import KernelMachine, TrainingRows
from ._scale import check_scale
from ._validation import check_choice, check_kernel, check_number, check_pseudo, check_resources, check_seed, make_rng

Arrays = dict[str, AnyArray]


class DCPredMachine(KernelMachine):
    """An estimator whose model is a `NystroemForest` trained by DC-Pred++."""

    _memory_kinds = ("tree of landmarks",)
    prediction_cost: float | str
    n_clusters: int | str
    n_landmarks: int | str
    n_pseudo_landmarks: int | str
    pseudo: str | None
    linear_term: bool
    n_trees: int
    landmark_weights: str | None
    damping: float
    max_time: float | None
    random_state: RandomState
    _model: NystroemForest
    _trees: list[Arrays]

    def _check_parameters(self) -> None:
        check_kernel(self)
        check_cost(self)
        check_pseudo(self)
        if self.landmark_weights is not None:
            check_choice("landmark_weights", self.landmark_weights, ("auto", "alpha"))
        check_number("damping", self.damping, least=0)
        check_seed(self.random_state)
        check_resources(self)

    def _leaf_problem(self, rows: TrainingRows) -> LeafProblem:
        """What a leaf solves for its part of these rows."""
        raise NotImplementedError

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        problem = self._leaf_problem(rows)
        kernel: Any = self._resolve_kernel(rows.X, rows.weights)
        check_scale(kernel, rows.X, rows.first_target)
        n, d = rows.X.shape
        settings = allocate_automatic_cost(self, n, d, problem.n_outputs)
        settings = settings._replace(
            landmark_weights=self.landmark_weights, damping=float(self.damping), memory=memory_plan(self)
        )
        needed = needed_bytes(settings, rows.X, problem.n_outputs)
        what = f"{n} rows in {settings.n_clusters} leaves of {settings.n_landmarks} landmarks"
        settings.memory.require(needed, what)
        machine = train_forest(kernel, rows.X, problem, settings, progress, make_rng(self.random_state))
        self._trees = tree_arrays(machine.model)
        self._model = self._make_model()
        self.prediction_cost_ = self._model.n_operations
        self._set_certificate(machine)
        warn_unconverged(self, progress.stopped_by or "the precision of float64", describe_gap(self))

    def _set_certificate(self, machine: TrainedForest) -> None:
        """Set the attributes of the leaves, and the sums of their objectives and gaps for one tree."""
        self.leaves_ = leaves = machine.leaves
        order, n_trees = np.argsort(leaves["time"], kind="stable"), len(machine.model.trees)
        self.objective_ = float(leaves["objective"].sum()) / n_trees
        self.dual_gap_ = float(leaves["gap"].sum()) / n_trees
        self.relative_gap_ = relative_gap(self.objective_, self.dual_gap_)
        self.converged_ = machine.converged
        self.n_iter_ = 1
        self.history_ = {
            "time": leaves["time"][order],
            "objective": np.cumsum(leaves["objective"][order]) / n_trees,
            "lower_bound": np.cumsum((leaves["objective"] - leaves["gap"])[order]) / n_trees,
        }

    @property
    def _n_functions(self) -> int:
        return int(self._trees[0]["intercept"].shape[1])

    def _make_model(self) -> NystroemForest:
        return make_forest(self._make_kernel(), self._trees)

    @property
    def predictor_(self) -> NystroemForest:
        """The forest of Nyström machines."""
        return self._model

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        self._check_dtype_and_weights(fitted)
        fitted.check_certificate()
        k = fitted.count_classes() if is_classifier(self) else None
        check_trees(fitted, self.n_features_in_, 1 if k == 2 else k)


def tree_arrays(forest: NystroemForest) -> list[Arrays]:
    """The arrays of each tree, by name."""
    return [tree.arrays for tree in forest.trees]


def check_trees(fitted: FittedState, d: int, q: int | None) -> None:
    """Raise a ValueError that names the first array of `_trees` that does not fit the others.

    They are of rows of d features, after the projection, and of q decision functions, of any number for None.
    """
    dtype = fitted.choice("_dtype", ("float32", "float64"))
    for tree in fitted.nested_list("_trees", ...):
        k, q = tree.array("intercept", np.float64, ..., ... if q is None else q).shape
        n_nodes = len(tree.array("sizes", np.int32, None))
        branching = tree.array("children", np.int32, n_nodes, ... if n_nodes else 0).shape[1]
        tree.array("centres", dtype, n_nodes, branching, d)
        m = tree.array("landmarks", dtype, k, ..., d).shape[1]
        p = tree.array("pseudo_distances", dtype, k, m, None).shape[2]
        tree.array("bounds", np.int64, k, least=0, below=2)
        tree.array("coef", np.float64, k, q, m + p)
        tree.array("products", dtype, k, q, None)
        tree.array("slopes", dtype, k, None, d)


def make_forest(kernel: Any, trees: list[Arrays], projection: Array | None = None) -> NystroemForest:
    """The forest of the arrays that `tree_arrays` gave, with its projection."""
    return NystroemForest([NystroemTree.from_arrays(kernel, arrays) for arrays in trees], projection)
