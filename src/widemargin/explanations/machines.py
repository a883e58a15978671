"""A fitted model as sums over points: which of its machines decides on a row, and what that machine adds up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._threads import ThreadTeam
from .._types import Given, Labels, Matrix, Model, RowIndices, Rows, Vector
from ..data.rows import group_by_label
from ..estimators._predictor import pair_incidence
from ..estimators._row_function import column_operations
from ..estimators._validation import FLOATS, validate_rows
from ..export.parts import decision_functions, split
from ..interchange.fitted import adopt, is_libsvm, machine_of_libsvm
from ..kernels.functions import Linear
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..models.linear import LinearModel
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..nystroem.landmarks import dense_rows


class Sum(NamedTuple):
    """coef (q, r), dense or CSC, times kernel values of a row and points (r, d), or products of two: (r, 2 d)."""

    points: Rows
    coef: Any


class LocalFunctions(NamedTuple):
    """What decides on some rows, or has a share in it: f(x) = the sums + slopes x + intercept, of q functions."""

    rows: RowIndices
    share: float
    sums: list[Sum]
    slopes: Matrix | None  # (q, d)
    intercept: Vector  # (q,)

    def combined(self, signs: Matrix | None) -> LocalFunctions:
        """The functions signs @ f, or f itself without signs, with dense coefficients."""
        if signs is None:
            return self._replace(sums=[part._replace(coef=dense_rows(part.coef)) for part in self.sums])
        sums = [part._replace(coef=signs @ part.coef) for part in self.sums]
        slopes = None if self.slopes is None else signs @ self.slopes
        return self._replace(sums=sums, slopes=slopes, intercept=signs @ self.intercept)


class Explained(NamedTuple):
    """The machine of a fitted model, and what comes before it.

    Of more than two classes whose pairs vote, the function of a class is the sum of its pairs' decision values for it,
    which orders classes of equal votes.
    """

    steps: list[Model]  # transformers, none of which mixes columns
    machine: Model
    functions: Any  # LinearModel, KernelExpansion, ClusteredExpansion or NystroemForest
    signs: Matrix | None  # (k, n_pairs), of the pairs in the functions of classes

    @property
    def n_functions(self) -> int:
        """Number of decision functions q."""
        functions = self.functions
        return functions.n_outputs if isinstance(functions, NystroemForest) else len(functions.intercept)

    def rows_of(self, X: Given) -> Rows:
        """The rows of X as the machine takes them: an array or a CSR array of its dtype."""
        for step in self.steps:
            X = step.transform(X)
        form: dict[str, Any] = {"accept_sparse": "csr", "sums_repeated": True, "order": "C"}
        return validate_rows(self.machine, X, reset=False, dtype=getattr(self.machine, "_dtype", FLOATS), **form)

    def local_functions(self, X: Rows, team: ThreadTeam) -> Iterator[LocalFunctions]:
        """The functions that decide on the rows of X."""
        if isinstance(self.functions, NystroemForest):
            trees = self.functions.trees
            for tree in trees:
                for leaf, rows in _groups(tree.tree.route(X)):
                    yield _functions_of_leaf(tree, leaf, rows, 1.0 / len(trees))
        elif isinstance(self.functions, ClusteredExpansion):
            for c, rows, share in clusters_and_rows(self.functions, X, team):
                yield _functions_of(self.functions.machines[c], rows, share)
        else:
            yield _functions_of(self.functions, np.arange(X.shape[0]), 1.0)


def read_explained(model: Model) -> Explained:
    """The machine of a fitted model, and the steps before it.

    Raises
    ------
    NotFittedError
    ValueError
        Naming the step, the transformer of targets or the model that cannot be explained.
    """
    steps, machine, of_target = split(adopt(model))
    check_is_fitted(machine)
    mixing = [step for step in steps if column_operations(step) is None]
    if mixing:
        raise ValueError(
            f"model has the step {' '.join(repr(mixing[0]).split())}, which may mix columns: explain its last step, "
            "model[-1], with X = model[:-1].transform(X)"
        )
    if of_target:
        raise ValueError("model transforms its target: explain model.regressor_, whose values are not transformed back")
    if is_libsvm(machine):
        machine = machine_of_libsvm(machine)
    functions = decision_functions(machine)
    if functions is None:
        inside = ": explain the machine inside, model.calibrated_classifiers_[0].estimator"
        raise ValueError(
            "model must be a fitted kernel machine or linear machine of this package, SVC, NuSVC, SVR, NuSVR or "
            "OneClassSVM, also as the last step of a pipeline or in a search, got "
            f"{type(machine).__name__}{inside if hasattr(machine, 'calibrated_classifiers_') else ''}"
        )
    signs = None
    if hasattr(machine, "break_ties") and len(machine.classes_) > 2:
        for_first, for_second = pair_incidence(len(machine.classes_))
        signs = np.asarray((for_first - for_second).T, np.float64)
    return Explained(steps, machine, functions, signs)


def clusters_and_rows(model: ClusteredExpansion, X: Rows, team: ThreadTeam) -> Iterator[tuple[int, RowIndices, float]]:
    """Each cluster, the rows whose value its machine has a share in, and the share: 1, or 1/2 between two clusters."""
    labels, others, _ = model.clusters_of(X, team)
    alone, between = np.flatnonzero(labels == others), np.flatnonzero(labels != others)
    for chosen, clusters, share in ((alone, labels, 1.0), (between, labels, 0.5), (between, others, 0.5)):
        for c, rows in _groups(clusters[chosen]):
            yield c, chosen[rows], share


def _groups(labels: Labels) -> list[tuple[int, RowIndices]]:
    """The labels that occur, and the rows of each."""
    groups = group_by_label(labels, int(labels.max(initial=-1)) + 1)
    return [(c, rows) for c, rows in enumerate(groups) if len(rows)]


def _functions_of(model: LinearModel | KernelExpansion, rows: RowIndices, share: float) -> LocalFunctions:
    if isinstance(model, KernelExpansion) and isinstance(model.kernel, Linear):
        model = model.linear_model
    if isinstance(model, LinearModel):
        return LocalFunctions(rows, share, [], model.coef, model.intercept)
    return LocalFunctions(rows, share, [Sum(model.points, model.coef)], None, model.intercept)


def _functions_of_leaf(tree: NystroemTree, leaf: int, rows: RowIndices, share: float) -> LocalFunctions:
    """The kernel values with the landmarks, products of two of them, and a linear term."""
    landmarks, coef, products = tree.features.landmarks[leaf], tree.coef[leaf], tree.products[leaf]
    slopes = np.zeros((len(coef), landmarks.shape[1]))
    if tree.slopes.shape[1]:
        slopes += tree.slopes[leaf]
    if isinstance(tree.features.kernel, Linear):
        return LocalFunctions(rows, share, [], slopes + coef @ landmarks, tree.intercept[leaf])
    sums = [Sum(landmarks, coef)]
    if products.shape[1]:
        first, second = np.tril_indices(len(landmarks))
        sums.append(Sum(np.hstack([landmarks[first], landmarks[second]]), products[:, first, second]))
    return LocalFunctions(rows, share, sums, slopes, tree.intercept[leaf])
