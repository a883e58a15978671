"""Fitted kernel machines, ours and scikit-learn's, read as kernel expansions for `compress`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._types import Labels, Matrix, Model, Rows, Vector
from ..estimators._dual_attributes import pair_coefficients
from ..estimators.bsgd import BSGDClassifier
from ..estimators.dc_one_class_svm import DCOneClassSVM
from ..estimators.dc_svm import DCSVMClassifier
from ..estimators.dc_svm_regressor import DCSVMRegressor
from ..interchange.fitted import kernel_parameters, machine_of_libsvm, rows_of
from ..interchange.machines import ImportedMachine, ImportedVotes
from ..kernels.functions import KERNELS, ArgumentKernel, make_kernel
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion


@dataclass
class Source:
    """The kernel expansion of a fitted estimator: q decision functions, as of `KernelExpansion`.

    Attributes
    ----------
    decision_values : callable
        Of rows (n, d), `n_jobs` and `memory`: decision values of shape (n, q).
    points : ndarray or CSR array of shape (n_points, d)
    coef : ndarray of shape (q, n_points)
    kernel : ArgumentKernel
    parameters : dict
        `kernel`, `gamma`, `degree` and `coef0`, gamma a number.
    is_one_vs_one : bool
        Whether there is a function for each pair of more than two classes, which vote.
    n_used : float
        Points, of all, and centres that a prediction needs in the mean: of an early machine those of a cluster.
    n_clusters : int
        Of an early machine; 1 of other ones, whose decision function is the sum over all points.
    nbytes : int
        Of the pickled model.
    classes : ndarray of shape (n_points,), int, or None
        The class that each point was given in training, where the model has it.
    keeps_column : bool
        Whether predictions by a single function have the shape (n, 1).
    """

    decision_values: Callable[..., Matrix]
    points: Rows
    coef: Matrix
    kernel: ArgumentKernel
    parameters: dict[str, Any]
    is_one_vs_one: bool
    n_used: float
    n_clusters: int
    nbytes: int
    classes: Labels | None
    keeps_column: bool = False

    @property
    def n_outputs(self) -> int:
        """Number of functions q."""
        return len(self.coef)

    @property
    def landmark_weights(self) -> Vector:
        """Squared coefficients (n_points,), summed over the q functions."""
        return np.asarray(np.square(self.coef).sum(axis=0))


def read_model(model: Model) -> Source:
    """Read a fitted estimator as a kernel expansion.

    Raises
    ------
    ValueError
        Naming the estimator or its kernel, where its decision function is no kernel expansion that can be compressed.
    """
    check_is_fitted(model)
    reader = next((reader for kinds, reader in _readers() if isinstance(model, kinds)), None)
    if reader is None:
        raise ValueError(
            f"model must be a fitted kernel machine (DCSVMClassifier, DCSVMRegressor, DCOneClassSVM, BSGDClassifier, "
            f"SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelRidge), a pipeline that ends in one, a "
            f"CalibratedClassifierCV around one, or a search over these with refit=True, got {type(model).__name__}"
        )
    if (kernel := getattr(model, "_own_kernel", vars(model))["kernel"]) not in KERNELS:
        raise ValueError(f"model has kernel={kernel!r}: compress takes the kernels {', '.join(KERNELS)} alone")
    source = reader(model)
    if not source.points.shape[0]:
        raise ValueError("model has no support vectors: its decision function is constant")
    return source


def _read_expansion(model: Model, machine: Model = None) -> Source:
    """Of a machine of ours, or of the one that is equal to the model."""
    machine = model if machine is None else machine
    coef, is_one_vs_one = machine._model.coef, False
    if isinstance(machine, DCSVMClassifier | ImportedVotes):
        coef, is_one_vs_one = pair_coefficients(machine.dual_coef_, machine.n_support_), len(machine.classes_) > 2
    elif isinstance(machine, DCSVMRegressor | DCOneClassSVM):
        coef = machine.dual_coef_
    parameters = kernel_parameters(machine._own_kernel, machine._gamma)
    values, points = machine._model.decision_values, rows_of(machine.support_vectors_)
    return _make_source(model, values, points, coef, parameters, is_one_vs_one=is_one_vs_one)


def _read_libsvm(model: Model) -> Source:
    return _read_expansion(model, machine_of_libsvm(model))


def _read_kernel_ridge(model: Model) -> Source:
    points = rows_of(model.X_fit_)
    gamma = 1.0 / points.shape[1] if model.gamma is None else model.gamma
    parameters = kernel_parameters(vars(model), gamma)
    coef = np.asarray(model.dual_coef_, np.float64).reshape(len(model.dual_coef_), -1).T
    expansion = KernelExpansion(make_kernel(**parameters), points, coef, np.zeros(len(coef)))
    source = _make_source(model, expansion.decision_values, points, coef, parameters, is_one_vs_one=False)
    source.keeps_column = np.ndim(model.dual_coef_) == 2
    return source


def _make_source(
    model: Model,
    decision_values: Callable[..., Matrix],
    points: Rows,
    coef: Matrix,
    parameters: dict[str, Any],
    *,
    is_one_vs_one: bool,
) -> Source:
    kernel: Any = make_kernel(**parameters)
    n_used, n_clusters = _points_used(getattr(model, "_model", None), points.shape[0])
    return Source(
        decision_values,
        points,
        coef,
        kernel,
        parameters,
        is_one_vs_one,
        n_used,
        n_clusters,
        _pickled_bytes(model),
        point_classes(model, coef),
    )


def _points_used(machine: Any, n_points: int) -> tuple[float, int]:
    """Points and centres that a prediction needs, and the number of clusters: see `Source`.

    Rows are assumed to fall into clusters in proportion to the clusters' numbers of points.
    """
    if not isinstance(machine, ClusteredExpansion):
        return n_points, 1
    router, sizes = machine.router, np.diff(machine.starts)
    n_routing = len(router.points) if router.name == "kernel" else router.n_clusters
    return n_routing + float(np.square(sizes).sum() / max(1, sizes.sum())), router.n_clusters


class _ByteCount:
    """A file that counts what is written to it."""

    n = 0

    def write(self, data: Any) -> int:
        """Count the bytes."""
        self.n += memoryview(data).nbytes
        return memoryview(data).nbytes


def _pickled_bytes(model: Model) -> int:
    """Bytes of a pickled model, without holding them."""
    count = _ByteCount()
    pickle.dump(model, count)
    return count.n


def point_classes(model: Model, coef: Vector) -> Labels | None:
    """The class in training of each point: of two classes by the sign of its coefficient, of more by the order."""
    counts = getattr(model, "n_support_", None)  # of classes; of a BSGDClassifier of machines
    if counts is None or not is_classifier(model) or isinstance(model, BSGDClassifier):
        return None
    if len(coef) == 1:  # scikit-learn-intelex has the points of two classes in the order of the rows
        return np.asarray(coef[0] > 0.0, dtype=np.intp)
    return np.repeat(np.arange(len(counts)), counts)


def _readers() -> list[tuple[Any, Callable[[Any], Source]]]:
    from sklearn.kernel_ridge import KernelRidge  # imported here, as fits do not need it
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

    libsvm = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
    return [
        ((DCSVMClassifier, DCSVMRegressor, DCOneClassSVM, BSGDClassifier, ImportedMachine), _read_expansion),
        (libsvm, _read_libsvm),
        (KernelRidge, _read_kernel_ridge),
    ]
