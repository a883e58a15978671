"""`to_c`: a fitted machine as one C99 header, which predicts row by row without allocation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from string import Template
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from .._native import nystroem
from .._types import AnyArray, Model
from ..estimators._row_function import Operations
from ..estimators._validation import check_choice
from ..kernels.functions import ExponentialKernel, Linear
from ..models.clustered import BETWEEN, UNCERTAIN, ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..models.linear import LinearModel
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..nystroem.landmarks import dense_rows
from ..partition.routing import InputRouter, KernelRouter, Router
from . import c_templates as templates
from .kernels import check_written
from .parts import Parts, find_writer, split

_SCALED = {"points", "weights", "products", "projection"}  # tables with nearly all of a model's numbers
_LARGEST = 2**15 - 1  # number of 16 bits


def to_c(model: Model, *, name: str = "model", bits: int = 32) -> str:
    """Export a fitted machine as one C99 header, which predicts without an operating system.

    Parameters
    ----------
    model : estimator
        As of `to_onnx`, but for pipelines with `LandmarkNystroem` and for calibrated classifiers.
    name : str, default="model"
        An identifier of C, with which all names in the header begin.
    bits : {16, 32}, default=32
        Of each number in points, weights and projections, nearly all of a model. 32 is float; with 16 they are
        integers, with one scale for each table: half of the memory, and scores that differ in the fourth digit. Compare
        the labels on your rows.

    Returns
    -------
    str
        ``NAME_predict(row, scores)`` takes ``NAME_N_FEATURES`` floats and writes ``NAME_N_SCORES`` floats, what
        ``decision_function`` returns, or ``predict`` of a regressor. For classifiers and outlier detectors it returns
        the number of the row's label in ``NAME_labels``.

    Raises
    ------
    ValueError
        Naming the estimator, step, kernel, label or number that is not written, or `name` or `bits`.

    Notes
    -----
    All functions are static, allocate nothing, and call functions of math.h alone, such as expf. All is computed in
    float: a sum of n terms is off by at most 6e-8 n times the sum of their absolute values. So is a kernel value of the
    kernels rbf and laplacian, of n features, by 6e-8 (n + 8); mostly both are off by far less. A row that is so near to
    a border between two classes, or two clusters, may be assigned to the other one.

    The stack holds a scaled row, if there are scalings, and some floats for each score and each landmark of a leaf.
    Never compile with ``-ffast-math``: NaN and infinity are not what they are, and in a shared object it makes small
    numbers zero in the whole process.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import OCASClassifier, to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> header = to_c(OCASClassifier().fit(X, y), name="iris")
    >>> [line for line in header.splitlines() if "iris_predict" in line]
    ['static inline int iris_predict(const float *row, float *scores)']
    """
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"name must be an identifier of C, got {name!r}")
    check_choice("bits", bits, (16, 32))
    parts = split(model)
    machine, write = find_writer(_WRITERS, parts.machine)
    header = _Header(name, bits)
    return header.finish(parts, _write_outputs(header, parts, write(header, machine)))


class _Header:
    """Tables and functions of a header, in the order in which they are added."""

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits, self.n_bytes = name, bits, 0
        self.blocks: list[str] = []

    def add(self, template: str, **values: Any) -> None:
        """Add functions, with numbers as literals, and strings as they are."""
        own = {key: value if isinstance(value, str) else _literal(value) for key, value in values.items()}
        text = Template(Template(template).safe_substitute(own)).substitute(own)  # templates may hold templates
        self.blocks.append(re.sub(r"@(?=\w)", f"{self.name}_", text).strip("\n"))

    def table(self, label: str, array: Any) -> None:
        """Add constants, which a function `@label(i)` gives: of a float array floats, or integers times a scale."""
        values = np.asarray(array).ravel()
        values = values if len(values) else np.zeros(1, values.dtype)  # in C no array is empty
        kind, factor = "int", ""
        result = kind if values.dtype.kind == "i" else "float"
        if result == "float":
            kind, values = "float", values.astype(np.float64)
            if self.bits == 16 and label.rstrip("0123456789") in _SCALED:
                kind, scale = "short", float(np.abs(values).max(initial=1e-30)) / _LARGEST
                values, factor = np.rint(values / scale).astype(int), f"{_literal(scale)} * (float)"
        self.n_bytes += len(values) * (2 if kind == "short" else 4)
        numbers = textwrap.fill(", ".join(map(_literal, values.tolist())), 118, break_on_hyphens=False)
        self.add(
            f"static const {kind} @{label}_table[{len(values)}] = {{\n{numbers}\n}};\n"
            f"static inline {result} @{label}(int i) {{ return {factor}@{label}_table[i]; }}"
        )

    def finish(self, parts: Parts, n_scores: int) -> str:
        """The header of a machine."""
        upper, functions = self.name.upper(), "\n\n".join(self.blocks)
        return (
            f"/* {type(parts.machine).__name__}, written by widemargin: C99, {self.n_bytes:,} bytes of constants */\n"
            f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <math.h>\n\n"
            f"enum {{ {upper}_N_FEATURES = {parts.n_features}, {upper}_N_SCORES = {n_scores} }};\n\n"
            f"{functions}\n\n#endif\n"
        )


def _literal(value: Any) -> str:
    """A number as C has it: floats as float32, with a point or an exponent before the f, without which it is no C."""
    if not isinstance(value, float):
        return str(value)
    if not abs(value) <= float(np.finfo(np.float32).max):
        raise ValueError(f"model has the number {value:.3g}, which to_c cannot write: float32 does not hold it")
    return f"{np.float32(value)!s}f"


# ------------------------------------------------- decision functions: each writes `@values(x, values)`, and returns q


def _write_linear(header: _Header, model: LinearModel) -> int:
    q, d = (int(size) for size in model.coef.shape)
    header.table("weights", model.coef)
    header.table("intercept", model.intercept)
    header.add(templates.LINEAR, Q=q, D=d)
    return q


def _write_expansion(header: _Header, model: KernelExpansion) -> int:
    if isinstance(model.kernel, Linear) or not model.coef.shape[1]:
        return _write_linear(header, model.linear_model)
    q, n = (int(size) for size in model.coef.shape)
    _write_kernel(header, model.kernel, dense_rows(model.points))
    header.table("coef", dense_rows(model.coef).T)
    header.table("intercept", model.intercept)
    header.add(templates.SUM + templates.EXPANSION, Q=q, N=n)
    return q


def _write_kernel(header: _Header, kernel: Any, points: AnyArray) -> None:
    """The points (n, d), `@argument(x, i)` of a row and point i, and `@transform(g)`, its kernel value."""
    check_written(kernel)
    term, value = templates.KERNELS[kernel.name]
    gamma, coef0 = (float(getattr(kernel, name, 0.0)) for name in ("gamma", "coef0"))
    degree = getattr(kernel, "degree", 0)
    header.table("points", points)
    header.add(templates.SUM_OF_TERMS, NAME="argument", TERM=term, D=points.shape[1])
    header.add(templates.TRANSFORM, VALUE=value, GAMMA=gamma, COEF0=coef0, DEGREE=degree)


def _write_square(header: _Header, d: int) -> None:
    """`@square(x, i)`, the squared distance to a centre, which is stored as point i."""
    header.add(templates.SUM_OF_TERMS, NAME="square", TERM=templates.SQUARE, D=d)


def _write_clustered(header: _Header, model: ClusteredExpansion) -> int:
    q, k = (int(size) for size in model.intercept.shape)
    points, coef, starts = dense_rows(model.points), dense_rows(model.coef), model.starts
    if isinstance(model.kernel, Linear):  # the weights of a cluster are its points, one for each function
        points = np.concatenate([machine.linear_model.coef for machine in model.machines])
        coef, starts = np.tile(np.eye(q), k), np.arange(k + 1) * q
    centres, n = _routing_points(model.router), coef.shape[1]
    _write_kernel(header, model.kernel, np.vstack([points[:n], centres]))
    _write_distance(header, model.router, n)
    header.table("coef", coef.T)
    header.table("starts", starts)
    header.table("intercept", model.intercept.T)
    header.add(
        templates.SUM + templates.CLUSTERED,
        Q=q,
        K=k,
        UNCERTAIN=UNCERTAIN,
        BETWEEN=BETWEEN,
        AVERAGES=int(model.averages and k > 1),
    )
    return q


def _routing_points(router: Router) -> AnyArray:
    """The centres of a router in input space, (k, d), or its points in the order of their clusters, (m, d)."""
    if isinstance(router, InputRouter):
        samples = router.centres
    else:
        samples = router.points.take(np.argsort(router.labels, kind="stable"))
    points = dense_rows(samples.stored())
    return points if router.points.shift is None else points + router.points.shift


def _write_distance(header: _Header, router: Router, n: int) -> None:
    """`@distance(x, c)`, the squared distance to a centre; n points stand before those of the router."""
    d = router.points.stored().shape[1]
    if isinstance(router, KernelRouter):
        header.table("sizes", np.concatenate([[0], np.bincount(router.labels).cumsum()]))
        header.table("norms", router.squared_centre_norms)
        header.add(templates.KERNEL_DISTANCE, N=n, D=d, IS_ONE=int(isinstance(router.kernel, ExponentialKernel)))
    else:
        _write_square(header, d)
        header.add(templates.INPUT_DISTANCE, N=n)


def _write_forest(header: _Header, forest: NystroemForest) -> int:
    points = [[tree.tree.centres, tree.features.landmarks] for tree in forest.trees]
    d, q, n_trees = points[0][0].shape[2], forest.n_outputs, len(points)
    rows = [[part.reshape(-1, d) for part in parts] for parts in points]
    _write_kernel(header, forest.trees[0].features.kernel, np.concatenate([part for own in rows for part in own]))
    if any(len(centres) for centres, _ in rows):
        _write_square(header, d)
    start = 0
    for number, (tree, (centres, landmarks)) in enumerate(zip(forest.trees, rows, strict=True)):
        _write_tree(header, tree, number, start)
        start += len(centres) + len(landmarks)
    project, x = "", "row"
    if forest.projection is not None:
        header.table("projection", forest.projection.T)
        project, x = templates.PROJECT, "x"
    calls = "\n    ".join(f"@add_tree{number}({x}, values);" for number in range(n_trees))
    width = 0 if forest.projection is None else len(forest.projection)
    header.add(templates.FOREST, Q=q, N=float(n_trees), D=d, WIDTH=width, PROJECT=project, TREES=calls)
    return q


def _write_tree(header: _Header, tree: NystroemTree, number: int, start: int) -> None:
    """`@add_tree0(x, values)`, whose centres and landmarks begin at point `start`."""
    features, arrays, (n_nodes, branching, d) = tree.features, tree.arrays, tree.tree.centres.shape
    _, m, p = features.pseudo_distances.shape
    tables: dict[str, Any] = {"coef": tree.coef, "leaf_intercept": tree.intercept, "products": arrays["products"]}
    tables |= {"size": tree.tree.sizes, "child": tree.tree.children, "weights": tree.slopes}
    if p:
        tables |= {"pseudo": features.pseudo_distances, "is_lower": (features.bounds == nystroem.LOWER).astype(int)}
    for label, array in tables.items():
        if array.size:
            header.table(f"{label}{number}", array)
    is_square = features.kernel.argument == "squared_distance"
    header.add(
        templates.TREE,
        ROUTE=templates.ROUTE if n_nodes else "",
        PSEUDO=templates.PSEUDO if p else "",
        PRODUCTS=templates.PRODUCTS if tree.products.size else "",
        SLOPES=templates.SLOPES if tree.slopes.size else "",
        DISTANCE="sqrtf(g[i])" if is_square else "g[i]",
        BOUND="bound * bound" if is_square else "bound",
        START=start,
        LANDMARKS=start + n_nodes * branching,
        **dict(zip("TBMPQD", (number, branching, m, p, tree.coef.shape[1], d), strict=True)),
    )


_WRITERS: dict[type, Callable[[_Header, Any], int]] = {
    NystroemForest: _write_forest,
    KernelExpansion: _write_expansion,
    ClusteredExpansion: _write_clustered,
    LinearModel: _write_linear,
}


# ------------------------------------------------------------------------------------------------------------ outputs

_OPERATORS = {"Sub": "v - {}", "Add": "v + {}", "Mul": "v * {}", "Div": "v / {}", "Exp": "expf(v)"}
_OPERATORS |= {"Max": "v > {0} ? v : {0}", "Min": "v < {0} ? v : {0}", "Where": "v == v ? v : {}"}


def _write_operations(header: _Header, label: str, operations: Operations, n: int) -> None:
    """`@label(from, to)`: operations on each of n columns, one after the other."""
    lines = []
    for number, (operator, operand) in enumerate(operations):
        if operand.ndim:
            header.table(f"{label}{number}", operand)
        own = f"@{label}{number}(j)" if operand.ndim else _literal(float(operand))
        lines.append(f"v = {_OPERATORS[operator].format(own)};")
    header.add(templates.OPERATIONS, LABEL=label, N=n, LINES="\n        ".join(lines))


def _write_outputs(header: _Header, parts: Parts, q: int) -> int:
    """`@predict`, from q decision values, and `@labels`; returns the number of scores."""
    model, body, x, kind, n_scores = parts.machine, [], "row", "int", q
    if operations := parts.operations:
        _write_operations(header, "scale", operations, parts.n_features)
        body, x = [f"float x[{parts.n_features}];", "@scale(row, x);"], "x"
    compute, largest = f"@values({x}, scores);", {}
    if is_outlier_detector(model):
        _write_labels(header, np.array([-1, 1]))
        body += [compute, "return scores[0] >= 0.0f;"]
    elif not is_classifier(model):
        kind, body = "void", [*body, compute]
        if parts.of_target:
            _write_operations(header, "target", parts.of_target, q)
            body.append("@target(scores, scores);")
    else:
        _write_labels(header, model.classes_)
        k, order = len(model.classes_), getattr(model, "label_order_", None)
        is_voting = hasattr(model, "break_ties")
        largest = {"K": k, "FIRST": "0", "CLASS": "c", "RANKS": "votes" if is_voting else "scores"}
        if is_voting and model.break_ties:
            order, largest["RANKS"] = None, "scores"
        if order is not None and k > 2:
            header.table("order", order)
            largest |= {"FIRST": "@order(0)", "CLASS": "@order(c)"}
        if k == 2:
            body += [compute, f"return scores[0] {'>' if order is None or order[1] == 0 else '>='} 0.0f;"]
        elif not is_voting:
            body += [compute, templates.LARGEST]
        else:
            header.add(templates.VOTE, LARGEST=templates.LARGEST, **largest)
            if model.decision_function_shape == "ovr":
                n_scores = k
                body += [f"float values[{q}];", f"@values({x}, values);", "return @vote(values, scores);"]
            else:
                body += [f"float votes[{k}];", compute, "return @vote(scores, votes);"]
    header.add(templates.PREDICT, KIND=kind, BODY="\n    ".join(body), **largest)
    return n_scores


def _write_labels(header: _Header, classes: AnyArray) -> None:
    """`@labels`: numbers, or strings in UTF-8."""
    kind = {"b": "int", "i": "long long", "u": "unsigned long long", "f": "double"}.get(
        classes.dtype.kind, "char *const"
    )
    suffix = {"long long": "LL", "unsigned long long": "ULL"}.get(kind, "")
    labels = [_string(label) if kind.startswith("char") else f"{+label!r}{suffix}" for label in classes.tolist()]
    header.add(f"static const {kind} @labels[{len(labels)}] = {{$LABELS}};", LABELS=", ".join(labels))


def _string(label: Any) -> str:
    if not isinstance(label, str):
        raise ValueError(f"classes_ must be numbers or strings to be written, got {label!r}")
    plain = (chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}" for byte in label.encode())
    return f'"{"".join(plain)}"'
