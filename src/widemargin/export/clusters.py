"""Early machines as nodes of a graph: routing, and a loop over the clusters that rows are in."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..kernels.functions import ExponentialKernel, Linear
from ..models.clustered import BETWEEN, UNCERTAIN, ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..nystroem.landmarks import dense_rows
from ..partition.routing import InputRouter, KernelRouter, Router
from .graph import Graph
from .kernels import Points, check_written, dense, prepare, write_argument, write_kernel
from .machines import write_expansion


class _Nearest(NamedTuple):
    """The nearest clusters (rows,), the next ones, and the ratios of the squared distances to these two.

    Without a second cluster the last two are None.
    """

    first: str
    second: str | None
    ratio: str | None


def write_clustered(graph: Graph, model: ClusteredExpansion) -> str:
    """Decision values of q early machines: (rows, q)."""
    check_written(model.kernel)
    precision = model.router.points.pair_with(model.points[:1])[1].precision
    return graph.computing_in(precision, partial(_write_clustered, graph, model))


def _write_clustered(graph: Graph, model: ClusteredExpansion) -> str:
    nearest = _write_nearest(graph, model.router)
    if not model.points.shape[0]:  # of clusters that have constants
        return graph.rows_of(model.intercept.T, nearest.first)
    rows = dense(graph, model.points[:1] if isinstance(model.kernel, Linear) else model.points)
    x, points = prepare(graph, graph.x, rows, model.kernel)
    if not model.averages or nearest.second is None:
        return _write_values(graph, model, points, x, nearest.first)
    return _write_averages(graph, model, points, x, nearest)


def _write_averages(graph: Graph, model: ClusteredExpansion, points: Points, x: str, nearest: _Nearest) -> str:
    """Values by the nearest clusters, and the mean with the next ones' for uncertain rows between the two: (rows, q).

    A loop of two steps, so that the graph has the support vectors once: step t is for some rows the mean of their
    values by t + 1 machines.
    """

    def average(step: str, states: list[str]) -> list[str]:
        x, second, ratio, rows, labels, values = states
        known = graph.rows_of(values, rows)
        change = graph("Sub", _write_values(graph, model, points, graph.rows_of(x, rows), labels), known)
        n_machines = graph("Add", graph.cast(step, graph.dtype), np.array(1.0))
        mean = graph("Add", known, graph("Div", change, n_machines))
        values = graph("ScatterND", values, graph.unsqueeze(rows, 1), mean)
        is_uncertain = graph("Less", graph.reduce("Min", graph("Abs", values), 1), np.array(UNCERTAIN))
        is_between = graph("And", is_uncertain, graph("Greater", ratio, np.array(BETWEEN)))
        rows = _places_of(graph, is_between)
        return [x, second, ratio, rows, graph.rows_of(second, rows), values]

    int64, own = np.int64, graph.dtype
    everything = _places_of(graph, graph.for_each_row(np.array(1), x))
    start = graph.rows_of(model.intercept.T, nearest.first)
    states: list[Any] = [(x, own), (nearest.second, int64), (nearest.ratio, own)]
    states += [(everything, int64), (nearest.first, int64), (start, own)]
    return graph.loop(np.array(2), states, average)[-1]


def _places_of(graph: Graph, mask: str) -> str:
    """The places of the entries of a vector that are not zero."""
    return graph.squeeze(graph("NonZero", mask), 0)


def _write_nearest(graph: Graph, router: Router) -> _Nearest:
    """The two nearest clusters of each row."""
    if router.n_clusters == 1:
        return _Nearest(graph.for_each_row(np.array(0), graph.x), None, None)
    if isinstance(router, InputRouter):
        distances, square = _write_input_distances(graph, router)
    else:
        assert isinstance(router, KernelRouter)
        distances, square = _write_kernel_distances(graph, router)
    first, near = graph.smallest(distances)
    is_first = graph("Equal", graph.unsqueeze(first, 1), np.arange(router.n_clusters))
    second, far = graph.smallest(graph("Where", is_first, np.array(np.inf), distances))
    near = graph("Relu", graph("Add", near, square))
    far = graph("Max", graph("Add", far, square), near)
    is_zero = graph("Equal", far, np.array(0.0))
    return _Nearest(first, second, graph("Where", is_zero, np.array(1.0), graph("Div", near, far)))


def _write_input_distances(graph: Graph, router: InputRouter) -> tuple[str, str]:
    """Squared distances (rows, k) to the centres, less |x|^2, and |x|^2 (rows,)."""
    shift, centres = router.points.shift, router.centres.toarray()
    x = graph.x if shift is None else graph("Sub", graph.x, shift)
    distances = graph("Add", graph("MatMul", x, -2.0 * centres.T), np.square(centres).sum(axis=1))
    return distances, graph.reduce("SumSquare", x, 1)


def _write_kernel_distances(graph: Graph, router: KernelRouter) -> tuple[str, str]:
    """Squared distances (rows, k) to the centres in feature space, less k(x, x), and k(x, x) (rows,)."""
    points, shift = dense(graph, router.points.stored()), router.points.shift
    points = points if shift is None else points + shift
    weights = np.zeros((router.n_clusters, len(points)))
    weights[router.labels, np.arange(len(points))] = 1.0
    weights *= -2.0 / weights.sum(axis=1, keepdims=True)
    machine = KernelExpansion(router.kernel, points, weights, router.squared_centre_norms)
    distances = write_expansion(graph, machine)
    if isinstance(router.kernel, ExponentialKernel):
        return distances, graph.for_each_row(np.array(1.0), graph.x)
    square, gamma = graph.reduce("SumSquare", graph.x, 1), getattr(router.kernel, "gamma", 1.0)
    return distances, write_kernel(graph, router.kernel, graph("Mul", square, np.array(gamma)))


def _write_values(graph: Graph, model: ClusteredExpansion, points: Points, x: str, labels: str) -> str:
    """Decision values of rows x by the machines of clusters `labels` (rows,): (rows, q)."""
    values = graph.rows_of(model.intercept.T, labels)
    if isinstance(model.kernel, Linear):
        weights = np.array([machine.linear_model.coef for machine in model.machines])
        products = graph("MatMul", graph.rows_of(weights, labels), graph.unsqueeze(x, 2))
        return graph("Add", values, graph.squeeze(products, 2))
    return _write_sums(graph, model, points, x, labels, values)


def _write_sums(graph: Graph, model: ClusteredExpansion, points: Points, x: str, labels: str, values: str) -> str:
    """Add the sums over the support vectors of each row's cluster: one product for each cluster with rows."""
    sizes = np.diff(model.starts)
    coef = dense_rows(model.coef).T

    def add_cluster(step: str, states: list[str]) -> list[str]:
        x, labels, present, values = states
        cluster = graph.rows_of(present, step)
        rows = _places_of(graph, graph("Equal", labels, cluster))
        bounds = [graph.unsqueeze(graph.rows_of(ends, cluster), 0) for ends in (model.starts[:-1], model.starts[1:])]
        squares, own_coef = (graph("Slice", part, *bounds, np.array([0])) for part in (points.squares, coef))
        own = Points(graph("Slice", points.columns, *bounds, np.array([1])), squares)
        K = write_kernel(graph, model.kernel, write_argument(graph, graph.rows_of(x, rows), own, model.kernel))
        added = graph("Add", graph.rows_of(values, rows), graph("MatMul", K, own_coef))
        return [x, labels, present, graph("ScatterND", values, graph.unsqueeze(rows, 1), added)]

    has_rows = graph("ScatterElements", np.zeros(len(sizes), np.int64), labels, graph.for_each_row(np.array(1), labels))
    present = _places_of(graph, graph("Mul", has_rows, (sizes > 0).astype(np.int64)))
    states: list[Any] = [(x, graph.dtype), (labels, np.int64), (present, np.int64), (values, graph.dtype)]
    return graph.loop(graph("Squeeze", graph("Shape", present)), states, add_cluster)[-1]
