"""The arithmetic of fitted scalers, for functions of one row and for ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALINGS = "StandardScaler, MinMaxScaler, MaxAbsScaler and RelevanceScaler"

Operations = list[tuple[str, NDArray[np.float64]]]


def is_passed(step: Any) -> bool:
    """Whether a step of a pipeline changes nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def column_operations(step: Any) -> Operations | None:
    """What `transform` of a fitted step does to the columns, one after the other; None for a step of another kind.

    Pairs of an operator of ONNX, whose name is also that of a function of arrays, and its operand (n_features,) or ().
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler  # imports rich, which no fit needs

    if is_passed(step):
        return []
    if isinstance(step, StandardScaler):
        shift: Operations = [("Sub", _double(step.mean_))] if step.with_mean else []
        return [*shift, ("Div", _double(step.scale_))] if step.with_std else shift
    if isinstance(step, MinMaxScaler):
        scaling: Operations = [("Mul", _double(step.scale_)), ("Add", _double(step.min_))]
        return scaling + (_clipping(*step.feature_range) if step.clip else [])
    if isinstance(step, MaxAbsScaler):
        return [("Div", _double(step.scale_)), *(_clipping(-1.0, 1.0) if getattr(step, "clip", False) else [])]
    factors = getattr(step, "_column_factors", None)  # of RelevanceScaler
    return None if factors is None else [("Mul", _double(factors))]


def _clipping(lowest: float, highest: float) -> Operations:
    return [("Max", _double(lowest)), ("Min", _double(highest))]


def _double(values: Any) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)
