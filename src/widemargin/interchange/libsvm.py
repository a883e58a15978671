"""LIBSVM's text models, which ThunderSVM, Orfeo ToolBox, libsvm-js and e1071's `write.svm` have too."""

from __future__ import annotations

from typing import Any

import numpy as np

from .lines import Header, Lines
from .machines import ImportedOutlierDetector, ImportedRegressor, dense_if_full, make_votes, name_labels

_TYPES = {name: name for name in ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")}
_KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid", "precomputed": "precomputed"}
_KEYS = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB"),
    *("prob_density_marks", "nr_sv"),
)


def read_libsvm(lines: Lines, classes: Any) -> Any:
    """Read a model of LIBSVM, of any type, with any kernel but a precomputed one."""
    header = Header(lines, _KEYS, "SV")
    kind, kernel = header.choice("svm_type", _TYPES), _read_kernel(header)
    n = header.integer("total_sv", int(kind.endswith("svc")))
    k = header.integer("nr_class", 1)
    if not kind.endswith("svc"):
        return _read_function(lines, header, kind, kernel, n)
    labels, n_support = header.labels(k), header.integers("nr_sv", k, 0)
    if n_support.sum() != n:
        raise header.error("nr_sv", f"must have the sum {n} of total_sv, got {n_support.sum()}")
    rho = header.numbers("rho", n_pairs := k * (k - 1) // 2)
    platt = np.array([header.numbers(key, n_pairs) for key in ("probA", "probB")]) if "probA" in header else None
    coef, rows = lines.rows(n, k - 1, "a support vector")
    lines.finish()
    return make_votes(kernel, name_labels(labels, classes), dense_if_full(rows), coef, n_support, rho, platt)


def _read_kernel(header: Header) -> dict[str, Any]:
    """The parameters of the kernel."""
    kernel = header.choice("kernel_type", _KERNELS)
    if kernel == "precomputed":
        raise header.error("kernel_type", "is precomputed: the file has row numbers in place of support vectors")
    gamma = 1.0 if kernel == "linear" else header.number("gamma")
    if gamma <= 0:
        raise header.error("gamma", f"must be above 0, got {gamma:g}")
    degree = header.integer("degree", 0) if kernel == "poly" else 3
    return {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": header.number("coef0", 0.0)}


def _read_function(lines: Lines, header: Header, kind: str, kernel: dict[str, Any], n: int) -> Any:
    """A regressor or a one-class machine."""
    rho = header.numbers("rho", 1)
    for key in filter(header.__contains__, ("label", "nr_sv")):  # R's files have them
        header.integers(key, 2)
    further: dict[str, Any]
    if kind == "one_class":
        marks = header.numbers("prob_density_marks", 10) if "prob_density_marks" in header else None
        machine, further = ImportedOutlierDetector(**kernel), {"density_marks_": marks}
    else:
        machine = ImportedRegressor(**kernel)
        further = {"laplace_scale_": header.number("probA") if "probA" in header else None}
    coef, rows = lines.rows(n, 1, "a support vector")
    lines.finish()
    return machine.take(dense_if_full(rows), coef, -rho, **further)
