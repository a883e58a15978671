"""Scalings of the features by the steps of a pipeline before its machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from .graph import Graph


def write_step(graph: Graph, step: Any) -> None:
    """Scale the samples of the graph, in float64 like scikit-learn.

    Raises
    ------
    ValueError
        Naming the step, if it is none of these scalings.
    """
    if step is None or step == "passthrough":
        return
    graph.x = graph.cast(_scaled(graph, graph.cast(graph.x, np.float64), step), graph.dtype)


def _scaled(graph: Graph, x: str, step: Any) -> str:
    if isinstance(step, StandardScaler):
        x = x if step.mean_ is None or not step.with_mean else graph("Sub", x, _double(step.mean_))
        return x if step.scale_ is None else graph("Div", x, _double(step.scale_))
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return graph("Div", x, _double(step.scale_))
    if isinstance(step, MinMaxScaler):
        x = graph("Add", graph("Mul", x, _double(step.scale_)), _double(step.min_))
        return graph("Clip", x, *map(np.float64, step.feature_range)) if step.clip else x
    raise ValueError(
        f"model has the step {step!r}: to_onnx writes StandardScaler, MinMaxScaler and MaxAbsScaler alone. "
        "Export the last step, model[-1]"
    )


def _double(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)
