"""Decision functions as nodes of a graph: the sums of `models`, accumulated in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import nystroem
from ..kernels.functions import RBF, Laplacian, Linear, Polynomial, Sigmoid
from ..models.expansion import KernelExpansion
from ..models.linear import LinearModel
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..partition.hierarchy import Hierarchy
from .graph import Graph, Value


def write_linear(graph: Graph, model: LinearModel) -> str:
    """<w, x> + b of q functions: (rows, q) numbers."""
    x = graph.cast(graph.x, np.float64)
    return graph("Add", graph("MatMul", x, model.coef.T), model.intercept)


def write_expansion(graph: Graph, model: KernelExpansion) -> str:
    """sum_i c_i k(x_i, x) + b: (rows, q) numbers."""
    points = model.points.toarray() if sp.issparse(model.points) else model.points
    exact = model.pair_with(model.points[:1])[0].precision  # float64 where float32 distances are too inexact
    x = graph.x if exact == graph.dtype else graph.cast(graph.x, exact)
    measured = _measure_points(graph, x, _scaled(model.kernel, points.astype(exact)), model.kernel)
    K = transform(graph, model.kernel, measured if exact == graph.dtype else graph.cast(measured, graph.dtype))
    coef = model.coef.toarray() if sp.issparse(model.coef) else model.coef
    return graph("Add", graph("MatMul", graph.cast(K, np.float64), coef.T), model.intercept)


def _measure_points(graph: Graph, x: str, points: NDArray[Any], kernel: Any) -> str:
    """Inner products or distances of all rows and all points: (rows, points)."""
    if isinstance(kernel, Laplacian):
        return graph.reduce("L1", graph("Sub", graph.unsqueeze(x, 1), points), 2)
    if not isinstance(kernel, RBF):
        return graph("MatMul", x, points.T)
    centre = points.mean(axis=0)  # distances stay as they are, with less rounding error
    x, points = graph("Sub", x, centre), points - centre
    products = graph("MatMul", x, -2.0 * points.T)
    squares = graph("Add", graph.reduce("SumSquare", x, 1, keep=True), np.square(points).sum(axis=1))
    return graph("Relu", graph("Add", products, squares))


def transform(graph: Graph, kernel: Any, measured: str) -> str:
    """Kernel values from inner products with `_scaled` points, or from distances.

    Raises
    ------
    ValueError
        Naming a kernel that is not a function of these.
    """
    if isinstance(kernel, RBF | Laplacian):
        return graph("Exp", graph("Mul", measured, graph.number(-kernel.gamma)))
    if isinstance(kernel, Linear):
        return measured
    if isinstance(kernel, Polynomial | Sigmoid):
        inner = graph("Add", measured, graph.number(kernel.coef0))
        return graph("Tanh", inner) if isinstance(kernel, Sigmoid) else graph("Pow", inner, np.array(kernel.degree))
    raise ValueError(
        f"model has a {type(kernel).__name__} kernel: to_onnx writes rbf, laplacian, poly, sigmoid, linear"
    )


def _scaled(kernel: Any, points: NDArray[Any]) -> NDArray[Any]:
    """Points times gamma, for kernels of inner products; for kernels of distances the points.

    As a factor of the inner products, onnxruntime would round gamma to float32 when it fuses the two.
    """
    return points * points.dtype.type(kernel.gamma) if isinstance(kernel, Polynomial | Sigmoid) else points


def write_forest(graph: Graph, model: NystroemForest) -> str:
    """Mean of the trees' decision functions at the projected samples: (rows, q) numbers."""
    if model.projection is not None:
        graph.x = graph("MatMul", graph.x, model.projection)
    return graph.mean([_write_tree(graph, tree) for tree in model.trees])


def _write_tree(graph: Graph, tree: NystroemTree) -> str:
    leaf = _write_routing(graph, tree.tree)

    def of_leaf(table: NDArray[Any]) -> Value:
        """The entry of each row's leaf; of a single leaf its entry, for all rows."""
        return table[0] if leaf is None else graph.rows_of(table, leaf)

    kernel = tree.features.kernel
    to_landmarks = measured = _measure_leaf_points(graph, of_leaf(_scaled(kernel, tree.features.landmarks)), kernel)
    if tree.features.pseudo_distances.shape[2]:
        measured = graph("Concat", to_landmarks, _write_bounds(graph, tree, to_landmarks, of_leaf), axis=1)
    F = graph.cast(transform(graph, kernel, measured), np.float64)
    total = graph("Add", _inner(graph, of_leaf(tree.coef), F), of_leaf(tree.intercept))
    if tree.products.shape[2]:
        total = graph(
            "Add", total, _write_products(graph, transform(graph, kernel, to_landmarks), of_leaf(tree.products))
        )
    if tree.slopes.shape[1]:
        total = graph("Add", total, graph.cast(_inner(graph, of_leaf(tree.slopes), graph.x), np.float64))
    return total


def _inner(graph: Graph, tables: Value, rows: str) -> str:
    """Matrix (q, r) of each row, or one for all, times its vector (r,): (rows, q) numbers."""
    return graph.squeeze(graph("MatMul", tables, graph.unsqueeze(rows, 2)), 2)


def _measure_leaf_points(graph: Graph, points: Value, kernel: Any) -> str:
    """Inner products or distances of each row and the m points of its leaf: (rows, m) numbers."""
    if kernel.argument == "inner_product":
        return _inner(graph, points, graph.x)
    difference = graph("Sub", graph.unsqueeze(graph.x, 1), points)
    return graph.reduce("SumSquare" if kernel.argument == "squared_distance" else "L1", difference, 2)


def _write_bounds(graph: Graph, tree: NystroemTree, to_landmarks: str, of_leaf: Any) -> str:
    """Triangle inequality: a bound of the distance to each pseudo-landmark, from those to the landmarks."""
    is_square, bounds = tree.features.kernel.argument == "squared_distance", tree.features.bounds
    distances = graph.unsqueeze(graph("Sqrt", to_landmarks) if is_square else to_landmarks, 2)
    pseudo_distances = of_leaf(tree.features.pseudo_distances)
    lower = graph.reduce("Max", graph("Abs", graph("Sub", distances, pseudo_distances)), 1)
    upper = graph.reduce("Min", graph("Add", distances, pseudo_distances), 1)
    bound = graph("Where", of_leaf((bounds == nystroem.LOWER)[:, None]), lower, upper)
    return graph("Mul", bound, bound) if is_square else bound


def _write_products(graph: Graph, values: str, products: Value) -> str:
    """f' P f for the kernel values f of the landmarks: (rows, q) numbers."""
    partial = graph.squeeze(graph("MatMul", products, graph.unsqueeze(values, 1, 3)), 3)
    return _inner(graph, graph.cast(partial, np.float64), graph.cast(values, np.float64))


def _write_routing(graph: Graph, tree: Hierarchy) -> str | None:
    """Routing level by level: the leaf of each row; None if there is only one."""
    if not len(tree.children):
        return None
    node = _write_descent(graph, tree, None)
    for _ in range(1, tree.depth):
        # a negative node is a leaf, and stays
        node = graph("Where", graph("Less", node, np.array(0, np.int64)), node, _write_descent(graph, tree, node))
    return graph("Sub", np.array(-1, np.int64), node)


def _write_descent(graph: Graph, tree: Hierarchy, node: str | None) -> str:
    """The child of each row's node whose centre is nearest; of the root without `node`."""
    x, children = graph.unsqueeze(graph.x, 1), tree.children.astype(np.int64)
    branching = children.shape[1]
    if node is None:
        size = tree.sizes[0]
        distances = graph.reduce("SumSquare", graph("Sub", x, tree.centres[0, :size]), 2)
        return graph.rows_of(children[0], graph("ArgMin", distances, axis=1, keepdims=0))
    inner = graph("Max", node, np.array(0, np.int64))
    distances = graph.reduce("SumSquare", graph("Sub", x, graph.rows_of(tree.centres, inner)), 2)
    missing = np.where(np.arange(branching) < tree.sizes[:, None], 0, np.inf).astype(graph.dtype)
    best = graph("ArgMin", graph("Add", distances, graph.rows_of(missing, inner)), axis=1, keepdims=0)
    place = graph("Add", graph("Mul", inner, np.array(branching, np.int64)), best)
    return graph.rows_of(children.ravel(), place)
