"""Kernel values of rows and points as nodes of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._types import AnyArray, Rows
from ..kernels.functions import RBF, ExponentialKernel, Laplacian, Linear, Polynomial, Sigmoid
from .graph import Graph, Value

_MAX_BYTES = 2**31 - 2**26  # of an ONNX file, less what a graph has beside its points
_WRITTEN = RBF, Laplacian, Linear, Polynomial, Sigmoid


class Points(NamedTuple):
    """Points as columns (d, m) as `write_argument` takes them, and for the RBF kernel their squared norms (m,)."""

    columns: Value
    squares: Value


def check_written(kernel: Any) -> None:
    """Raise a ValueError that names a kernel which is not written."""
    if not isinstance(kernel, _WRITTEN):
        raise ValueError(
            f"model has a {type(kernel).__name__} kernel; to_onnx and to_c write rbf, laplacian, poly, sigmoid, linear"
        )


def dense(graph: Graph, points: Rows) -> AnyArray:
    """Points (m, d) as a dense array of the graph's dtype; a ValueError if an ONNX file cannot have so many bytes."""
    n_bytes = points.shape[0] * points.shape[1] * graph.dtype.itemsize
    if n_bytes > _MAX_BYTES:
        raise ValueError(
            f"model has {points.shape[0]:,} points of {points.shape[1]:,} features, {n_bytes / 1e9:.1f} GB, and an "
            "ONNX file at most 2 GB: compress it first"
        )
    return np.asarray(points.toarray() if sp.issparse(points) else points, graph.dtype)


def prepare(graph: Graph, x: str, points: AnyArray, kernel: Any) -> tuple[str, Points]:
    """Rows x (rows, d) and points (m, d) for `write_argument`: of the RBF kernel both less the points' mean."""
    if not isinstance(kernel, RBF):
        return x, Points(scaled(kernel, points).T, points[:, :0].sum(axis=1))
    # so large an entry has no kernel value, but the sum of the squares, which must not overflow, has one
    largest = np.sqrt(np.finfo(graph.dtype).max / (16 * points.shape[1]))
    x = graph("Clip", x, np.array(-largest), np.array(largest))
    centre = points.mean(axis=0)  # shifting both leaves distances as they are, with less rounding error
    points = points - centre
    return graph("Sub", x, centre), Points(-2.0 * points.T, np.square(points).sum(axis=1))


def write_argument(graph: Graph, x: str, points: Points, kernel: Any) -> str:
    """Kernel arguments, inner products or distances, of all rows and all points: (rows, m)."""
    if isinstance(kernel, Laplacian):
        return graph.reduce("L1", graph("Sub", graph.unsqueeze(x, 2), points.columns), 1)
    products = graph("MatMul", x, points.columns)
    if not isinstance(kernel, RBF):
        return products
    squares = graph("Add", points.squares, graph.reduce("SumSquare", x, 1, keep=True))
    return graph("Relu", graph("Add", products, squares))


def write_kernel(graph: Graph, kernel: Any, argument: str) -> str:
    """Kernel values from kernel arguments: inner products with `scaled` points, or distances."""
    check_written(kernel)
    if isinstance(kernel, ExponentialKernel):
        return graph("Exp", graph("Mul", argument, np.array(-kernel.gamma)))
    if isinstance(kernel, Linear):
        return argument
    inner = graph("Add", argument, np.array(kernel.coef0))
    return graph("Tanh", inner) if isinstance(kernel, Sigmoid) else graph("Pow", inner, np.array(kernel.degree))


def scaled(kernel: Any, points: AnyArray) -> AnyArray:
    """Points, for kernels of inner products with gamma times gamma.

    If gamma were a factor of the inner products, onnxruntime would fuse the two and round gamma to float32.
    """
    return points * points.dtype.type(kernel.gamma) if isinstance(kernel, Polynomial | Sigmoid) else points
