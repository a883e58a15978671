"""The steps of a pipeline before its machine: scalings of the features, and coordinates by landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ..compression.rows import MAX_ROUNDING
from ..estimators import LandmarkNystroem
from ..estimators._column_operations import SCALINGS, column_operations, is_passed
from .graph import Graph
from .machines import write_coordinates


def write_step(graph: Graph, step: Any) -> None:
    """Scale the samples of the graph, or replace them by `LandmarkNystroem`'s.

    Raises
    ------
    ValueError
        Naming the step, if it is none of these.
    """
    if is_passed(step):
        return
    if isinstance(step, LandmarkNystroem):
        graph.start()
        graph.x = write_coordinates(graph, step._model)
        return
    operations = column_operations(step)
    if operations is None:
        raise step_error(step)
    graph.start()
    for operator, operand in operations:
        graph.x = graph(operator, graph.x, operand)


def columns_lost(step: Any) -> NDArray[np.intp]:
    """The columns whose spread, which a scaling has kept, float32 rounds away: by over 1e-4 of it."""
    if isinstance(step, StandardScaler) and step.scale_ is not None and step.mean_ is not None:
        largest, spread = np.abs(step.mean_), step.scale_
    elif isinstance(step, MinMaxScaler):
        largest, spread = np.maximum(np.abs(step.data_min_), np.abs(step.data_max_)), step.data_range_
    else:
        return np.empty(0, np.intp)
    return np.flatnonzero((largest * np.finfo(np.float32).eps > MAX_ROUNDING * spread) & (spread > 0))


def step_error(step: Any) -> ValueError:
    """The error of a pipeline with a step that is not written."""
    return ValueError(
        f"model has the step {' '.join(repr(step).split())}: to_onnx writes {SCALINGS}, and LandmarkNystroem alone. "
        "Export the last step, to_onnx(model[-1]), whose input is model[:-1].transform(X) as a dense array; or all "
        "steps with skl2onnx.to_onnx after widemargin.register_converters()"
    )
