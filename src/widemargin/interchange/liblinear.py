"""LIBLINEAR's text models."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from .lines import Header, Lines
from .machines import ImportedClassifier, ImportedOutlierDetector, ImportedRegressor, name_labels

_LOGISTIC = ("L2R_LR", "L1R_LR", "L2R_LR_DUAL")
_CLASSIFIERS = (
    *("L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "L1R_L2LOSS_SVC"),
    *_LOGISTIC,
)
_REGRESSORS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
_SOLVERS = {name: name for name in (*_CLASSIFIERS, *_REGRESSORS, "ONECLASS_SVM")}
_KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")


def read_liblinear(lines: Lines, classes: Any) -> Any:
    """Read a model of LIBLINEAR, of any solver."""
    header = Header(lines, _KEYS, "w")
    solver, d, bias = header.choice("solver_type", _SOLVERS), header.integer("nr_feature", 1), header.number("bias")
    k = header.integer("nr_class", 1)  # 2 of other solvers
    labels = header.labels(k) if solver in _CLASSIFIERS else np.empty(0)
    q = k if k > 2 or solver == "MCSVM_CS" else 1
    weights = array("d")
    for feature in range(d + (bias >= 0)):
        weights.frombytes(lines.numbers(lines.next(f"row {feature + 1} of w"), "a row of w", q).tobytes())
    lines.finish()
    w = np.frombuffer(weights).reshape(-1, q).T
    intercept = bias * w[:, d] if bias >= 0 else np.zeros(q)
    w = w[:, :d].copy()
    if solver in _REGRESSORS:
        return ImportedRegressor("linear").take(w, np.eye(1), intercept, laplace_scale_=None)
    if solver == "ONECLASS_SVM":
        rho = header.number("rho")
        return ImportedOutlierDetector("linear").take(w, np.eye(1), intercept - rho, density_marks_=None)
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
