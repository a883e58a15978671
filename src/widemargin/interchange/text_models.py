"""Text models: of LIBSVM, also in ThunderSVM, Orfeo ToolBox, libsvm-js and e1071; of LIBLINEAR; of SVMlight."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from .._types import Given, Model
from .lines import Header, Lines
from .machines import (
    ImportedClassifier,
    ImportedOutlierDetector,
    ImportedRegressor,
    dense_if_full,
    make_votes,
    name_labels,
)

_LIBSVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
_LIBSVM_KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
_LIBSVM_KERNELS |= {"precomputed": "precomputed"}
_LIBSVM_KEYS = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB"),
    *("prob_density_marks", "nr_sv"),
)


def read_libsvm(lines: Lines, classes: Given) -> Model:
    """Read a model of LIBSVM, of any type, with any kernel but a precomputed one."""
    header = Header(lines, _LIBSVM_KEYS, "SV")
    kind, kernel = header.choice("svm_type", _LIBSVM_TYPES), header.kernel("kernel_type", _LIBSVM_KERNELS)
    n = header.integer("total_sv", int(kind.endswith("svc")))
    k = header.count_classes("nr_class")
    if not kind.endswith("svc"):
        return _read_function(lines, header, kind, kernel, n)
    labels, n_support = header.labels("label", k), header.integers("nr_sv", k, 0)
    if n_support.sum() != n:
        raise header.error("nr_sv", f"must have the sum {n} of total_sv, got {n_support.sum()}")
    rho = header.numbers("rho", n_pairs := k * (k - 1) // 2)
    platt = np.array([header.numbers(key, n_pairs) for key in ("probA", "probB")]) if "probA" in header else None
    coef, rows = lines.rows(n, k - 1)
    lines.finish()
    return make_votes(kernel, name_labels(labels, classes), dense_if_full(rows), coef, n_support, rho, platt)


def _read_function(lines: Lines, header: Header, kind: str, kernel: dict[str, Any], n: int) -> Model:
    """A regressor or a one-class machine."""
    rho = header.numbers("rho", 1)
    for key in filter(header.__contains__, ("label", "nr_sv")):  # R's files have them
        header.integers(key, 2)
    machine: Model = ImportedOutlierDetector(**kernel) if kind == "one_class" else ImportedRegressor(**kernel)
    if "prob_density_marks" in header:
        machine.density_marks_ = header.numbers("prob_density_marks", 10)
    if "probA" in header:
        machine.laplace_scale_ = header.number("probA")
    coef, rows = lines.rows(n, 1)
    lines.finish()
    return machine.take(dense_if_full(rows), coef, -rho)


# LIBLINEAR

_LOGISTIC = ("L2R_LR", "L1R_LR", "L2R_LR_DUAL")
_CLASSIFIERS = (
    *("L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "L1R_L2LOSS_SVC"),
    *_LOGISTIC,
)
_REGRESSORS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
_SOLVERS = (*_CLASSIFIERS, *_REGRESSORS, "ONECLASS_SVM")
_LIBLINEAR_KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")


def read_liblinear(lines: Lines, classes: Given) -> Model:
    """Read a model of LIBLINEAR, of any solver."""
    header = Header(lines, _LIBLINEAR_KEYS, "w")
    solver, d, bias = header.choice("solver_type", _SOLVERS), header.integer("nr_feature", 1), header.number("bias")
    k = header.count_classes("nr_class")  # 2 of other solvers
    labels = header.labels("label", k) if solver in _CLASSIFIERS else np.empty(0)
    q = k if k > 2 or solver == "MCSVM_CS" else 1
    weights = array("d")
    for feature in range(d + (bias >= 0)):
        weights.frombytes(lines.numbers(lines.next(f"row {feature + 1} of w"), "a row of w", q).tobytes())
    lines.finish()
    w = np.frombuffer(weights).reshape(-1, q).T
    intercept = bias * w[:, d] if bias >= 0 else np.zeros(q)
    w = w[:, :d].copy()
    if solver in _REGRESSORS:
        return ImportedRegressor("linear").take(w, np.eye(1), intercept)
    if solver == "ONECLASS_SVM":
        return ImportedOutlierDetector("linear").take(w, np.eye(1), intercept - header.number("rho"))
    names = name_labels(labels, classes)
    by_label = np.argsort(names, kind="stable")
    number = np.argsort(by_label)
    if k > 2:
        w, intercept = w[by_label], intercept[by_label]
    else:  # LIBLINEAR takes the first function alone, of two of `MCSVM_CS` too; ours is positive for the larger label
        sign = 1.0 if number[0] else -1.0
        w, intercept = sign * w[:1], sign * intercept[:1]
    machine = ImportedClassifier("linear")
    further = {"classes_": names[by_label], "label_order_": number, "_has_probabilities": solver in _LOGISTIC}
    return machine.take(w, np.eye(len(w)), intercept, **further)


# SVMlight

_SVMLIGHT_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_SVMLIGHT_LABELS = np.array([1, -1])


def read_svmlight_model(lines: Lines, classes: Given) -> Model:
    """Read a model of SVMlight, as a classifier with the labels -1 and 1.

    The file does not say what it was trained for: of a regression or a ranking `decision_function` is the prediction.
    """
    lines.next("SVM-light Version")
    kind = _value(lines, "kernel type")
    if kind not in range(len(_SVMLIGHT_KERNELS)):
        raise lines.error(f"the kernel type must be 0 (linear), 1 (polynomial), 2 (rbf) or 3 (sigmoid), got {kind:g}")
    kernel = _SVMLIGHT_KERNELS[int(kind)]
    degree, gamma = _value(lines, "kernel parameter -d"), _value(lines, "kernel parameter -g")
    slope, coef0 = _value(lines, "kernel parameter -s"), _value(lines, "kernel parameter -r")
    if not lines.next("kernel parameter -u").endswith(b"# kernel parameter -u"):
        raise lines.error("the line must end with # kernel parameter -u")
    d = _value(lines, "highest feature index")
    _value(lines, "number of training documents")
    n = _value(lines, "number of support vectors plus 1") - 1
    threshold = _value(lines, "threshold b, each following line is a SV (starting with alpha*y)")
    gamma = {"linear": 1.0, "rbf": gamma}.get(kernel, slope)
    if gamma <= 0 or degree != int(degree) or min(d, n) < 1:
        raise lines.error("the kernel's factor must be above 0, its degree whole, and there must be support vectors")
    coef, rows = lines.rows(int(n), 1)
    lines.finish()
    if rows.shape[1] > d:
        raise lines.error(f"the highest feature index is {d:g}, but a support vector has the index {rows.shape[1]}")
    parameters = {"kernel": kernel, "gamma": gamma, "degree": int(degree), "coef0": coef0}
    order = np.argsort(coef[0] < 0, kind="stable")
    n_support = np.bincount(coef[0] < 0, minlength=2)
    rho = np.array([threshold])
    labels = name_labels(_SVMLIGHT_LABELS, classes)
    machine = make_votes(parameters, labels, dense_if_full(rows[order]), coef[:, order], n_support, rho)
    machine.widen(int(d))
    return machine


def _value(lines: Lines, meaning: str) -> float:
    """The number before ``# meaning``."""
    text, _, found = lines.next(f"a number and # {meaning}").partition(b"#")
    if found.strip().decode("ascii", "replace") != meaning:
        raise lines.error(f"the line must end with # {meaning}")
    return float(lines.numbers(text, meaning, 1)[0])
