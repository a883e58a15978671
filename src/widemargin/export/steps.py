"""The steps of a pipeline before its machine: scalings of the features, and coordinates by landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ..compression.rows import MAX_ROUNDING
from ..estimators import LandmarkNystroem
from ..estimators._column_operations import Operations
from .graph import Graph
from .machines import write_coordinates
from .parts import step_operations


def write_step(graph: Graph, step: Any) -> None:
    """Scale the samples of the graph, or replace them by `LandmarkNystroem`'s; a ValueError names another step."""
    graph.start()
    if isinstance(step, LandmarkNystroem):
        graph.x = write_coordinates(graph, step._model)
    else:
        graph.x = apply(graph, graph.x, step_operations(step))


def apply(graph: Graph, values: str, operations: Operations) -> str:
    """Values (rows, n) after operations on their columns."""
    for operator, operand in operations:
        if operator == "Where":  # of an imputer
            values = graph("Where", graph("IsNaN", values), operand, values)
        else:
            values = graph(operator, values, *([] if operator == "Exp" else [operand]))
    return values


def columns_lost(step: Any) -> NDArray[np.intp]:
    """The columns whose spread, which a scaling has kept, float32 rounds away: by over 1e-4 of it."""
    if isinstance(step, StandardScaler) and step.scale_ is not None and step.mean_ is not None:
        largest, spread = np.abs(step.mean_), step.scale_
    elif isinstance(step, MinMaxScaler):
        largest, spread = np.maximum(np.abs(step.data_min_), np.abs(step.data_max_)), step.data_range_
    else:
        return np.empty(0, np.intp)
    return np.flatnonzero((largest * np.finfo(np.float32).eps > MAX_ROUNDING * spread) & (spread > 0))
