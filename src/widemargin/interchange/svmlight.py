"""SVMlight's own models, as `svm_learn` writes them: a value and its meaning a line, then the support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .lines import Lines
from .machines import dense_if_full, make_votes, name_labels

_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_LABELS = np.array([1, -1])


def read_svmlight_model(lines: Lines, classes: Any) -> Any:
    """Read a model of SVMlight, as a classifier with the labels -1 and 1.

    The file does not say what it was trained for: of a regression or a ranking `decision_function` is the prediction.
    """
    lines.next("SVM-light Version")
    kind = _value(lines, "kernel type")
    if kind not in range(len(_KERNELS)):
        raise lines.error(f"the kernel type must be 0 (linear), 1 (polynomial), 2 (rbf) or 3 (sigmoid), got {kind:g}")
    kernel = _KERNELS[int(kind)]
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
    coef, rows = lines.rows(int(n), 1, "a support vector")
    lines.finish()
    if rows.shape[1] > d:
        raise lines.error(f"the highest feature index is {d:g}, but a support vector has the index {rows.shape[1]}")
    parameters = {"kernel": kernel, "gamma": gamma, "degree": int(degree), "coef0": coef0}
    order = np.argsort(coef[0] < 0, kind="stable")
    n_support = np.bincount(coef[0] < 0, minlength=2)
    rho = np.array([threshold])
    labels = name_labels(_LABELS, classes)
    machine = make_votes(parameters, labels, dense_if_full(rows[order]), coef[:, order], n_support, rho)
    machine.widen(int(d))
    return machine


def _value(lines: Lines, meaning: str) -> float:
    """The number before ``# meaning``."""
    text, _, found = lines.next(f"a number and # {meaning}").partition(b"#")
    if found.strip().decode("ascii", "replace") != meaning:
        raise lines.error(f"the line must end with # {meaning}")
    return float(lines.numbers(text, meaning, 1)[0])
