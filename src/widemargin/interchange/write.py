"""`write_libsvm`: our machines as text models that LIBSVM and LIBLINEAR read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.utils.validation import check_is_fitted

from .._output_files import replacing
from .._types import AnyArray, Labels, Matrix, Model, Rows, Vector
from ..data.labels import class_pairs
from ..datasets.files import PathLike
from ..estimators._predictor import OneVsOnePredictor
from ..estimators._wrapped import unwrap
from ..models.expansion import KernelExpansion
from ..models.nystroem_tree import NystroemForest
from .fitted import adopt, is_libsvm, kernel_parameters, machine_of_libsvm
from .machines import ImportedClassifier, class_blocks, in_order

_KERNELS = {"linear": "linear", "poly": "polynomial", "polynomial": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}
_PARAMETERS = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}


def write_libsvm(model: Model, path: PathLike) -> None:
    """Write a fitted machine as a text model of LIBSVM, or a linear one as a text model of LIBLINEAR.

    When to use: a program has LIBSVM or LIBLINEAR built in, and should predict with a machine of ours.

    Parameters
    ----------
    model : estimator
        Fitted: exact kernel machines (`DCSVMClassifier`, `DCSVMRegressor`, `DCOneClassSVM`, `BSGDClassifier`, what
        `read_machine` returns, `SVC` and its kin) with the kernels linear, poly, rbf or sigmoid, and what `compress`
        makes of them with ``n_clusters=1, pseudo=None, linear_term=False``, as LIBSVM's text; `OCASClassifier` and
        `OCASRegressor` as LIBLINEAR's. Of a fitted search its ``best_estimator_``.
    path : path-like
        A file that is there is replaced, as a whole or not at all.

    Raises
    ------
    ValueError
        Naming what the format cannot hold: early machines, compressed ones with other parts than landmarks, other
        kernels, several targets, pipelines (write their last step; the program must scale the rows itself).

    Notes
    -----
    Numbers have 17 digits, so nothing is lost. Labels that are no whole numbers of 32 bits are written as their numbers
    in ``classes_``, from 0: ``read_machine(path, classes=model.classes_)`` has them again.

    LIBSVM knows pairs of classes alone: for classes that each have a function f, the pair of i and j gets f_i - f_j,
    whose votes the largest f wins, and the support vectors are written once for each class.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import DCSVMClassifier, read_machine, write_libsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DCSVMClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm(model, os.path.join(folder, "irises.model"))
    ...     again = read_machine(os.path.join(folder, "irises.model"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    model = adopt(unwrap(model))
    check_is_fitted(model)
    model = machine_of_libsvm(model) if is_libsvm(model) else model
    is_linear = isinstance(model, ImportedClassifier) or not hasattr(model, "_gamma")
    lines = _linear_lines(model) if is_linear else _kernel_lines(model)
    with replacing(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def _refusal(model: Model, reason: str) -> ValueError:
    return ValueError(f"model cannot be written for LIBSVM or LIBLINEAR: {type(model).__name__} {reason}")


def _numbers(values: Iterable[float]) -> str:
    return " ".join([f"{value:.17g}" for value in values])


def _labels(classes: AnyArray) -> NDArray[np.int64]:
    """The labels as whole numbers of 32 bits; others by their numbers."""
    if classes.dtype.kind in "iufb" and (classes == np.rint(classes)).all() and (np.abs(classes) < 2**31).all():
        return classes.astype(np.int64)
    return np.arange(len(classes))


def _file_order(model: Model) -> Labels:
    """The numbers of the classes in the order of the file: that of the program they come from, which breaks ties by it.

    Of our own models of two classes the larger label is first: positive values mean it, and 0 the other one.
    """
    k = len(model.classes_)
    return np.asarray(getattr(model, "label_order_", np.arange(k) if k > 2 else np.array([1, 0])))


def _linear_lines(model: Model) -> Iterator[str]:
    """LIBLINEAR's text. Of two classes the function is positive for the label that is named first."""
    if not hasattr(model, "coef_") or not (is_classifier(model) or is_regressor(model)):
        raise _refusal(model, "is no kernel machine, linear classifier or linear regressor")
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    solver = "L2R_L1LOSS_SVC_DUAL" if is_classifier(model) else "L2R_L1LOSS_SVR_DUAL"
    if hasattr(model, "predict_proba"):
        solver = "L2R_LR"
    if is_regressor(model) and len(coef) > 1:
        raise _refusal(model, f"has {len(coef)} targets")
    yield f"solver_type {solver}\nnr_class {len(model.classes_) if is_classifier(model) else 2}"
    if is_classifier(model):
        order = _file_order(model)
        yield "label " + " ".join(map(str, _labels(model.classes_)[order]))
        if len(order) > 2:
            coef, intercept = coef[order], intercept[order]
        elif order[0] == 0:
            coef, intercept = -coef, -intercept
    has_bias = bool(intercept.any())
    yield f"nr_feature {coef.shape[1]}\nbias {1 if has_bias else -1}\nw"
    for column in coef.T.tolist():
        yield _numbers(column) + " "
    if has_bias:
        yield _numbers(intercept) + " "


def _kernel_lines(model: Model) -> Iterator[str]:
    """LIBSVM's text."""
    parameters = kernel_parameters(model._own_kernel, model._gamma)
    if (kernel := _KERNELS.get(parameters["kernel"])) is None:
        raise _refusal(model, f"has the kernel {parameters['kernel']!r}: LIBSVM knows {', '.join(_KERNELS)}")
    points, coef, intercept = _expansion(model)
    header, n_support, platt = [], None, getattr(model, "platt_", None)
    if is_classifier(model):
        kind, order = "c_svc", _file_order(model)
        points, coef, rho, n_support = _votes(model, points, coef, intercept)
        places, coef, n_support, rho, platt = in_order(order, coef, n_support, rho, platt)
        points, header = points[places], ["label " + " ".join(map(str, _labels(model.classes_)[order]))]
    else:
        kind = "one_class" if is_outlier_detector(model) else "epsilon_svr"
        if len(coef) > 1:
            raise _refusal(model, f"has {len(coef)} targets")
        rho = -intercept
    curves = [] if platt is None else list(zip(("probA", "probB"), platt, strict=True))
    curves += [("probA", getattr(model, "laplace_scale_", None))]
    curves += [("prob_density_marks", getattr(model, "density_marks_", None))]
    header += [f"{key} {_numbers(np.atleast_1d(values))}" for key, values in curves if values is not None]
    yield f"svm_type {kind}\nkernel_type {kernel}"
    yield from (f"{name} {parameters[name]:.17g}" for name in _PARAMETERS.get(kernel, ()))
    yield f"nr_class {len(model.classes_) if is_classifier(model) else 2}\ntotal_sv {points.shape[0]}"
    yield f"rho {_numbers(rho)}"
    yield from header
    if n_support is not None:
        yield "nr_sv " + " ".join(map(str, n_support))
    yield "SV"
    rows, d = sp.csr_array(points), points.shape[1]
    for i, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        columns, values = rows.indices[start:end].tolist(), rows.data[start:end].tolist()
        entries = [f"{column + 1}:{value:.17g}" for column, value in sorted(zip(columns, values, strict=True))]
        if i == 0 and (not columns or max(columns) < d - 1):
            entries.append(f"{d}:0")  # says how many columns there are
        yield f"{_numbers(coef[:, i])} {' '.join(entries)}"


def _expansion(model: Model) -> tuple[Any, Any, Vector]:
    """Points (n, d), coefficients (q, n) and intercepts (q,) of a machine's decision functions."""
    machine = model._model
    if isinstance(machine, KernelExpansion):
        return machine.points, machine.coef, machine.intercept
    if not isinstance(machine, NystroemForest):
        raise _refusal(model, "has a machine for each cluster: fit it with stop_level=0, or compress it")
    tree = machine.trees[0]
    parts = {
        "trees": len(machine.trees) > 1,
        "leaves": len(tree.coef) > 1,
        "a projection": machine.projection is not None,
        "pseudo-landmarks": tree.features.pseudo_distances.shape[2] > 0,
        "products": tree.products.shape[2] > 0,
        "a linear term": tree.slopes.shape[1] > 0,
    }
    if any(parts.values()):
        found = ", ".join(name for name, is_there in parts.items() if is_there)
        remedy = "compress with n_clusters=1, pseudo=None, linear_term=False"
        raise _refusal(model, f"has {found} beside landmarks and their coefficients: {remedy}")
    return tree.features.landmarks[0], tree.coef[0], tree.intercept[0]


def _votes(model: Model, points: Rows, coef: Any, intercept: Vector) -> tuple[Any, Matrix, Vector, Labels]:
    """Points, coefficients, rho and counts of a classifier in LIBSVM's layout, with the classes in our order."""
    k = len(model.classes_)
    if k == 2:  # our positive values mean the second class, LIBSVM's the first
        is_second = coef[0] >= 0
        places = np.argsort(is_second, kind="stable")
        return points[places], -coef[:, places], intercept, np.bincount(is_second, minlength=2)
    first, second = class_pairs(k)
    is_voting = isinstance(model, OneVsOnePredictor)
    rho = -intercept if is_voting else intercept[second] - intercept[first]
    if is_voting and hasattr(model, "n_support_"):
        return points, model.dual_coef_, rho, model.n_support_
    if is_voting:
        places, blocks, counts = class_blocks(coef.toarray() if sp.issparse(coef) else coef, k)
        return points[places], blocks, rho, counts
    # f_i is added in the pairs in which i is the first class, and subtracted in the others
    blocks = np.hstack([np.where(np.arange(k - 1)[:, None] >= i, coef[i], -coef[i]) for i in range(k)])
    return points[np.tile(np.arange(coef.shape[1]), k)], blocks, rho, np.full(k, coef.shape[1])
