"""The steps of a pipeline before its machine: scalings of the features, and coordinates by landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from ..compression.rows import MAX_ROUNDING
from ..estimators import LandmarkNystroem, RelevanceScaler
from .graph import Graph
from .machines import write_coordinates


def write_step(graph: Graph, step: Any) -> None:
    """Scale the samples of the graph, in float64 like scikit-learn, or replace them by `LandmarkNystroem`'s.

    Raises
    ------
    ValueError
        Naming the step, if it is none of these.
    """
    if is_passed(step):
        return
    if isinstance(step, LandmarkNystroem):
        graph.start_machine()
        graph.x = write_coordinates(graph, step._model)
        return
    graph.x = graph.cast(_scaled(graph, graph.cast(graph.x, np.float64), step), graph.dtype)


def is_passed(step: Any) -> bool:
    """Whether a step of a pipeline changes nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def columns_lost(step: Any) -> NDArray[np.intp]:
    """The columns whose spread, which a scaling has kept, float32 rounds away: by over 1e-4 of it."""
    if isinstance(step, StandardScaler) and step.scale_ is not None and step.mean_ is not None:
        largest, spread = np.abs(step.mean_), step.scale_
    elif isinstance(step, MinMaxScaler):
        largest, spread = np.maximum(np.abs(step.data_min_), np.abs(step.data_max_)), step.data_range_
    else:
        return np.empty(0, np.intp)
    return np.flatnonzero((largest * np.finfo(np.float32).eps > MAX_ROUNDING * spread) & (spread > 0))


def _scaled(graph: Graph, x: str, step: Any) -> str:
    if isinstance(step, StandardScaler):
        x = x if step.mean_ is None or not step.with_mean else graph("Sub", x, _double(step.mean_))
        return x if step.scale_ is None else graph("Div", x, _double(step.scale_))
    if isinstance(step, RelevanceScaler):
        return graph("Mul", x, _double(step.scale_))
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return graph("Div", x, _double(step.scale_))
    if isinstance(step, MinMaxScaler):
        x = graph("Add", graph("Mul", x, _double(step.scale_)), _double(step.min_))
        return graph("Clip", x, *map(np.float64, step.feature_range)) if step.clip else x
    raise step_error(step)


def step_error(step: Any) -> ValueError:
    """The error of a pipeline with a step that is not written."""
    return ValueError(
        f"model has the step {' '.join(repr(step).split())}: to_onnx writes StandardScaler, MinMaxScaler, "
        "MaxAbsScaler, LandmarkNystroem and RelevanceScaler alone. Export the last step, to_onnx(model[-1]), whose "
        "input is model[:-1].transform(X) as a dense array; or all steps with skl2onnx.to_onnx after "
        "widemargin.register_converters()"
    )


def _double(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)
