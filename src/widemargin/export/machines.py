"""Decision functions as nodes of a graph: the sums of `models`."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import nystroem
from .._types import AnyArray
from ..kernels.functions import Linear
from ..models.expansion import KernelExpansion
from ..models.linear import LinearModel
from ..models.nystroem_coordinates import NystroemCoordinates
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..nystroem.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy
from .graph import Graph, Value
from .kernels import check_written, dense, prepare, scaled, write_argument, write_kernel


def write_linear(graph: Graph, model: LinearModel) -> str:
    """Decision values <w, x> + b of q linear functions: (rows, q)."""
    return graph("Add", graph("MatMul", graph.x, model.coef.T), model.intercept)


def write_expansion(graph: Graph, model: KernelExpansion) -> str:
    """Decision values sum_j coef_j k(x, z_j) + b of q kernel expansions: (rows, q)."""
    check_written(model.kernel)
    if isinstance(model.kernel, Linear):
        return write_linear(graph, model.linear_model)
    if not model.coef.shape[1]:
        zeros = np.zeros((len(model.intercept), model.points.shape[1]))
        return write_linear(graph, LinearModel(zeros, model.intercept))

    def write() -> str:
        x, points = prepare(graph, graph.x, dense(graph, model.points), model.kernel)
        K = write_kernel(graph, model.kernel, write_argument(graph, x, points, model.kernel))
        is_sparse = sp.issparse(model.coef)
        products = _write_sparse_product(graph, K, model.coef) if is_sparse else graph("MatMul", K, model.coef.T)
        return graph("Add", products, model.intercept)

    # float64 where float32 distances are too inexact
    return graph.computing_in(model.pair_with(model.points[:1])[0].precision, write)


def _write_sparse_product(graph: Graph, K: str, coef: Any) -> str:
    """K coef' of kernel values K (rows, points) and coefficients (q, points), a CSC array: (rows, q).

    It is computed without the zeros: points of one class have coefficients in the same functions.

    The classes' products, side by side, contain each function's parts: two for a pair of classes.
    """
    ends, functions = coef.indptr, np.split(coef.indices, coef.indptr[1:-1])
    is_first = [not j or not np.array_equal(functions[j], functions[j - 1]) for j in range(len(functions))]
    starts = np.flatnonzero(is_first)
    groups = [slice(*pair) for pair in pairwise([*starts.tolist(), len(functions)])]
    parts = [
        graph("MatMul", columns, coef.data[ends[group.start] : ends[group.stop]].reshape(group.stop - group.start, -1))
        for group, columns in zip(groups, graph.split(K, [group.stop - group.start for group in groups]), strict=True)
    ]
    of_part = np.concatenate([functions[start] for start in starts])
    order = np.argsort(of_part, kind="stable")
    counts = np.bincount(of_part, minlength=coef.shape[0])
    place = np.full((coef.shape[0], counts.max()), len(of_part))  # without a part: the zero at the end
    place[np.arange(place.shape[1]) < counts[:, None]] = order
    products = graph.with_zero(graph("Concat", *parts, axis=1))
    return graph.reduce("Sum", graph("Gather", products, place, axis=1), 2)


def write_coordinates(graph: Graph, model: NystroemCoordinates) -> str:
    """Coordinates c(x) F of features c(x) and a factor F: (rows, rank)."""
    features, kernel = model.features, model.features.kernel
    if not features.pseudo_distances.shape[2]:
        write = partial(_write_argument, graph, features.landmarks[0], kernel)
        argument = graph.computing_in(model.precision, write)
    else:  # bounds need distances without cancellation
        argument = _write_leaf_argument(graph, features.landmarks[0], kernel)
        bounds = _write_bounds(graph, features, argument, lambda table: table[0])
        argument = graph("Concat", argument, bounds, axis=1)
    values = write_kernel(graph, kernel, argument)
    if features.pairs.shape[2]:
        first, second = (graph("Gather", values, numbers.astype(np.int64), axis=1) for numbers in features.pairs[0])
        values = graph("Concat", values, graph("Mul", first, second), axis=1)
    return graph("MatMul", values, model.factor)


def _write_argument(graph: Graph, points: AnyArray, kernel: Any) -> str:
    """Kernel arguments of all rows and points (m, d): (rows, m)."""
    return write_argument(graph, *prepare(graph, graph.x, dense(graph, points), kernel), kernel)


def write_forest(graph: Graph, model: NystroemForest) -> str:
    """Decision values, the mean of those of the trees, at the projected samples: (rows, q)."""
    if model.projection is not None:
        graph.x = graph("MatMul", graph.x, model.projection)
    return graph.mean([_write_tree(graph, tree) for tree in model.trees])


def _write_tree(graph: Graph, tree: NystroemTree) -> str:
    """Decision values of each row by the machines of its leaf: (rows, q)."""
    leaf = _write_routing(graph, tree.tree)

    def of_leaf(table: AnyArray) -> Value:
        """The entry of each row's leaf; of a single leaf its entry, for all rows."""
        return table[0] if leaf is None else graph.rows_of(table, leaf)

    kernel = tree.features.kernel
    to_landmarks = argument = _write_leaf_argument(graph, of_leaf(scaled(kernel, tree.features.landmarks)), kernel)
    if tree.features.pseudo_distances.shape[2]:
        argument = graph("Concat", to_landmarks, _write_bounds(graph, tree.features, to_landmarks, of_leaf), axis=1)
    values = write_kernel(graph, kernel, argument)
    total = graph("Add", _inner(graph, of_leaf(tree.coef), values), of_leaf(tree.intercept))
    if tree.products.shape[2]:
        # <f, P f> of kernel values f (rows, m) and the lower triangles P of the products
        f = write_kernel(graph, kernel, to_landmarks)
        Pf = graph.squeeze(graph("MatMul", of_leaf(tree.products), graph.unsqueeze(f, 1, 3)), 3)
        total = graph("Add", total, _inner(graph, Pf, f))
    if tree.slopes.shape[1]:
        total = graph("Add", total, _inner(graph, of_leaf(tree.slopes), graph.x))
    return total


def _inner(graph: Graph, matrices: Value, vectors: str) -> str:
    """A matrix (q, r) of each row, or one (q, r) for all rows, times the row's vector (r,): (rows, q)."""
    return graph.squeeze(graph("MatMul", matrices, graph.unsqueeze(vectors, 2)), 2)


def _write_leaf_argument(graph: Graph, points: Value, kernel: Any) -> str:
    """Kernel arguments, inner products or distances, of each row and the m points of its leaf: (rows, m)."""
    if kernel.argument == "inner_product":
        return _inner(graph, points, graph.x)
    difference = graph("Sub", graph.unsqueeze(graph.x, 1), points)
    return graph.reduce("SumSquare" if kernel.argument == "squared_distance" else "L1", difference, 2)


def _write_bounds(graph: Graph, features: LandmarkFeatures, to_landmarks: str, of_leaf: Any) -> str:
    """Kernel arguments of each row and the pseudo-landmarks: bounds of the distance by the triangle inequality."""
    is_square, bounds = features.kernel.argument == "squared_distance", features.bounds
    distances = graph.unsqueeze(graph("Sqrt", to_landmarks) if is_square else to_landmarks, 2)
    pseudo_distances = of_leaf(features.pseudo_distances)
    lower = graph.reduce("Max", graph("Abs", graph("Sub", distances, pseudo_distances)), 1)
    upper = graph.reduce("Min", graph("Add", distances, pseudo_distances), 1)
    is_lower = graph("Greater", of_leaf((bounds == nystroem.LOWER)[:, None].astype(float)), np.array(0.0))
    bound = graph("Where", is_lower, lower, upper)
    return graph("Mul", bound, bound) if is_square else bound


def _write_routing(graph: Graph, tree: Hierarchy) -> str | None:
    """The leaf of each row, by routing it level by level: (rows,); None if there is only one leaf."""
    if not len(tree.children):
        return None
    node = _write_step(graph, tree, None)
    for _ in range(1, tree.depth):
        # a negative node is a leaf, and stays
        node = graph("Where", graph("Less", node, np.array(0, np.int64)), node, _write_step(graph, tree, node))
    return graph("Sub", np.array(-1, np.int64), node)


def _write_step(graph: Graph, tree: Hierarchy, node: str | None) -> str:
    """The child with the nearest centre, of each row's node (rows,) or, without `node`, of the root: (rows,)."""
    x, branching = graph.unsqueeze(graph.x, 1), tree.children.shape[1]
    # what a node lacks repeats its first child, which is nearer than none
    is_missing = np.arange(branching) >= tree.sizes[:, None]
    centres = np.where(is_missing[..., None], tree.centres[:, :1], tree.centres)
    children = np.where(is_missing, tree.children[:, :1], tree.children).astype(np.int64)
    if node is None:
        distances = graph.reduce("SumSquare", graph("Sub", x, centres[0, : tree.sizes[0]]), 2)
        return graph.rows_of(children[0], graph("ArgMin", distances, axis=1, keepdims=0))
    inner = graph("Max", node, np.array(0, np.int64))
    distances = graph.reduce("SumSquare", graph("Sub", x, graph.rows_of(centres, inner)), 2)
    best = graph("ArgMin", distances, axis=1, keepdims=0)
    place = graph("Add", graph("Mul", inner, np.array(branching, np.int64)), best)
    return graph.rows_of(children.ravel(), place)
