"""`RowFunction`: predictions of one row at a time, without scikit-learn's checks; the arithmetic of fitted scalers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._threads import ONE_THREAD
from .._types import AnyArray, Array, Matrix, Model, Vector
from ..data import has_finite_values
from ._validation import check_choice, shown

if TYPE_CHECKING:  # it imports rich, which a fit does not need
    from sklearn.pipeline import Pipeline

Operations: TypeAlias = list[tuple[str, NDArray[np.float64]]]
Response: TypeAlias = Callable[[Matrix], AnyArray]  # what a method returns (n, ...), from decision values (n, q)

SCALINGS = "StandardScaler, MinMaxScaler, MaxAbsScaler and RelevanceScaler"
_FUNCTIONS = {
    "Sub": np.subtract,
    "Div": np.divide,
    "Mul": np.multiply,
    "Add": np.add,
    "Max": np.maximum,
    "Min": np.minimum,
}


class RowFunction:
    """`as_function`, from the decision functions of a fitted machine.

    A subclass has `_responses`, and `_model`, whose `as_function` is that of `models`.
    """

    n_features_in_: int
    _model: Any

    @property
    def _responses(self) -> dict[str, Response]:
        """By the name of a method, its values (n, ...) from decision values (n, n_functions)."""
        raise NotImplementedError

    def as_function(
        self, response_method: str = "predict", *, steps: Pipeline | None = None
    ) -> Callable[[ArrayLike], Any]:
        """A function of one row: what `predict` or `decision_function` returns for it, in microseconds.

        Parameters
        ----------
        response_method : {"predict", "decision_function", "predict_proba"}, default="predict"
            The last of an `OCASClassifier` with the logistic loss alone.
        steps : Pipeline, default=None
            Fitted scalings of the row before the machine: the other steps of its pipeline, ``pipeline[:-1]``. They are
            StandardScaler, MinMaxScaler, MaxAbsScaler or `RelevanceScaler`.

        Returns
        -------
        callable
            Of one row of shape (n_features,); it returns entry 0 of what the method returns for this row alone, to the
            last bit (of a float32 row after `steps`, to rounding). It is of the machine as it is now: a later `fit`
            changes nothing.

        Raises
        ------
        ValueError
            If `response_method` is none that the estimator has, or one of the `steps` is none of these scalings. The
            function raises one for a row of another shape, and for NaN and infinity.

        Notes
        -----
        Some 5 to 25 microseconds where `predict` takes 70 to 600, most of it for checks
        (``python benchmarks/all.py one_row``). It computes in the calling thread, and may be called by several at once.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from widemargin import DCSVMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> predict = DCSVMClassifier().fit(X, y).as_function()
        >>> int(predict([6.3, 3.3, 6.0, 2.5]))
        2
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> model = make_pipeline(StandardScaler(), DCSVMClassifier()).fit(X, y)
        >>> predict = model[-1].as_function(steps=model[:-1])
        >>> int(predict([6.3, 3.3, 6.0, 2.5]))
        2
        """
        check_is_fitted(self)
        machine = copy(self)
        check_choice("response_method", response_method, tuple(machine._responses))
        respond, d = machine._responses[response_method], machine.n_features_in_
        dtype = getattr(machine, "_dtype", None)  # of a kernel; linear machines take float32 and float64
        decide: Callable[[Array], Vector] = machine._model.as_function(memory=memory_plan(machine))
        if steps is None:
            return lambda x: respond(decide(_as_row(x, d, dtype))[None])[0]
        scale = _row_scaling(steps)
        return lambda x: respond(decide(_as_row(scale(_as_row(x, d, None)), d, dtype))[None])[0]


def _as_row(x: ArrayLike, d: int, dtype: str | None) -> Array:
    """A row (d,) as a contiguous array of `dtype`, or of float32 or float64 as it is.

    ValueError for another shape, and for values that are not finite in this dtype.
    """
    row = np.ascontiguousarray(x, dtype)
    if np.shape(x) != (d,):
        raise ValueError(f"x must be one row of {d} features, of shape ({d},), got shape {np.shape(x)}")
    row = row if dtype or row.dtype in (np.float32, np.float64) else row.astype(np.float64)
    if not has_finite_values(row, ONE_THREAD):
        column = int(np.isfinite(row).argmin())
        raise ValueError(f"x must be finite in {row.dtype}, got {shown(np.asarray(x)[column])} in column {column}")
    return row


def _row_scaling(steps: Pipeline) -> Callable[[Array], Array]:
    """A function of a row (d,): a scaled copy of its dtype."""
    operations = []
    for _, step in steps.steps:
        if (own := column_operations(step)) is None:
            raise ValueError(f"steps must be scalings, {SCALINGS}, got {step!r}: transform rows by it before")
        operations += [(_FUNCTIONS[name], operand) for name, operand in own]

    def scale(row: Array) -> Array:
        row = row.copy()
        for function, operand in operations:
            function(row, operand, out=row, dtype=row.dtype, casting="same_kind")
        return row

    return scale


def is_passed(step: Any) -> bool:
    """Whether a step of a pipeline changes nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def column_operations(step: Model) -> Operations | None:
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
