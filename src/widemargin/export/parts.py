"""The parts of a fitted model, for graphs and headers: operations on columns, a machine, operations on its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._types import Model
from ..estimators._row_function import SCALINGS, Operations, column_operations, is_passed
from ..estimators._wrapped import unwrap
from ..models.linear import LinearModel
from ..nystroem.landmarks import dense_rows

Writer = TypeVar("Writer")

_OPPOSITE = {"Sub": "Add", "Add": "Sub", "Mul": "Div", "Div": "Mul"}
_OF_FUNCTION: dict[Any, Operations] = {
    None: [],
    np.exp: [("Exp", np.array(0.0))],
    np.expm1: [("Exp", np.array(0.0)), ("Sub", np.array(1.0))],
}


class Parts(NamedTuple):
    """The steps of a model's pipelines, its machine or calibrated ones, and operations on the values of `predict`."""

    steps: list[Model]
    machine: Model
    of_target: Operations

    @property
    def operations(self) -> Operations:
        """Those of the steps."""
        return [operation for step in self.steps for operation in step_operations(step)]

    @property
    def n_features(self) -> int:
        """Features of the rows that the model takes."""
        first = [*self.steps, self.machine][0]
        if hasattr(first, "n_features_in_"):
            return int(first.n_features_in_)
        if hasattr(first, "calibrated_classifiers_"):
            return split(first.calibrated_classifiers_[0].estimator).n_features
        raise step_error(first)  # it takes text


def split(model: Model) -> Parts:
    """The parts of a fitted model; a ValueError names a transformer of targets that is not written."""
    model = unwrap(model)
    if isinstance(model, Pipeline):
        steps, machine, of_target = split(model.steps[-1][1])
        return Parts([*(step for _, step in model.steps[:-1] if not is_passed(step)), *steps], machine, of_target)
    check_is_fitted(model)
    if isinstance(model, TransformedTargetRegressor):
        steps, machine, of_target = split(model.regressor_)
        return Parts(steps, machine, of_target + _back(model))
    return Parts([], model, [])


def step_operations(step: Model) -> Operations:
    """What a step does to the columns; ValueError that names another kind of step."""
    if isinstance(step, SimpleImputer):
        values = step.statistics_
        is_plain = np.isnan(step.missing_values) and not step.add_indicator and values.dtype.kind == "f"
        operations: Operations | None = [("Where", values)] if is_plain and not np.isnan(values).any() else None
    else:
        operations = column_operations(step)
    if operations is None:
        raise step_error(step)
    return operations


def _back(model: TransformedTargetRegressor) -> Operations:
    """The operations of `inverse_transform` of a target's transformer."""
    transformer = model.transformer_
    if hasattr(transformer, "inverse_func"):  # FunctionTransformer
        operations = _OF_FUNCTION.get(transformer.inverse_func)
    else:
        forward = column_operations(transformer)
        operations = forward and [(_OPPOSITE[sign], of) for sign, of in reversed(forward) if sign in _OPPOSITE]
    if operations is None:
        raise ValueError(
            f"model has the transformer {' '.join(repr(transformer).split())} of its target, which to_onnx and to_c "
            f"do not write. They write {SCALINGS}, and the inverse functions np.exp and np.expm1. Export "
            "model.regressor_, and transform its values"
        )
    return operations


def find_writer(writers: Mapping[type, Writer], model: Model) -> tuple[Any, Writer]:
    """The decision functions of an estimator, and what writes them; ValueError for a model that has none of ours."""
    machine = decision_functions(model)
    if write := writers.get(type(machine)):
        return machine, write
    is_theirs = type(model).__module__.startswith("sklearn.")
    raise ValueError(
        f"model must be a linear machine, a kernel expansion or a compressed model, got {type(model).__name__}"
        f"{': see skl2onnx, or compress it first' if is_theirs else ''}"
    )


def decision_functions(model: Model) -> Any:
    """The decision functions of an estimator: a model of `models`, or None."""
    if type(model).__module__.startswith("sklearn."):
        return None
    if hasattr(model, "coef_"):
        return LinearModel(np.atleast_2d(dense_rows(model.coef_)), model.intercept_)  # CSR, of sparse rows
    return getattr(model, "predictor_", getattr(model, "_model", None))


def step_error(step: Model) -> ValueError:
    """The error of a pipeline with a step that is not written."""
    return ValueError(
        f"model has the step {' '.join(repr(step).split())}, which is not written. to_onnx and to_c write "
        f"{SCALINGS} and SimpleImputer of NaN without indicators; to_onnx also LandmarkNystroem. Export the last step, "
        "model[-1], whose input is model[:-1].transform(X) as a dense array; or all steps with skl2onnx.to_onnx after "
        "widemargin.register_converters()"
    )
