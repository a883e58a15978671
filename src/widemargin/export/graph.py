"""An ONNX graph, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from .._types import AnyArray, DType

OPSET = 18
_INPUT = "X"

Value = Any  # the name of a tensor in the graph, or an array that becomes a constant
Output = tuple[str, Any, tuple[int, ...]]  # a result, its dtype, and its shape without the axis of rows


class Graph:
    """A graph with one input, samples of shape (rows, n_features).

    Calling it adds a node and returns the name of its result::

        y = graph("Add", graph("MatMul", graph.x, weights), offset)

    `x` is the name of the samples: the input, or what a cast and the steps of a pipeline made of it. `dtype` is that
    of the samples, of constants of floating point, and of all that is computed from them; `input_dtype` that of the
    samples as they are given; `output_dtype`, of scores, that of the input, or float32 of integers.
    """

    def __init__(self, dtype: str, n_features: int, input_dtype: DType | None = None) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("to_onnx needs the package onnx: pip install onnx") from error
        self.onnx = onnx
        self.dtype = np.dtype(dtype)
        self.input_dtype = self.dtype if input_dtype is None else np.dtype(input_dtype)
        self.output_dtype = self.input_dtype if self.input_dtype.kind == "f" else np.dtype(np.float32)
        self.n_features = n_features
        self._numbers = count()  # of names, which a loop's body must not use again
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.x = _INPUT if self.input_dtype == self.dtype else self.cast(_INPUT, self.dtype)  # of integers

    def __call__(self, operator: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node; returns the name of its result."""
        return self._add(operator, inputs, 1, **attributes)[0]

    def _add(self, operator: str, inputs: Sequence[Value], n_results: int, **attributes: Any) -> list[str]:
        """Add a node; returns the names of its results."""
        results = [f"{operator.lower()}_{next(self._numbers)}" for _ in range(n_results)]
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        self._nodes.append(self.onnx.helper.make_node(operator, names, results, name=results[0], **attributes))
        return results

    def _constant(self, array: AnyArray) -> str:
        return self.as_given(array.astype(self.dtype) if array.dtype.kind == "f" else array)

    def as_given(self, array: AnyArray) -> str:
        """A constant of an array's own dtype."""
        name = f"constant_{next(self._numbers)}"
        self._constants.append(self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def computing_in(self, precision: Any, write: Callable[[], str]) -> str:
        """What `write` adds, with the samples and constants in `precision`, if that is more than the graph's."""
        outer = self.x, self.dtype
        if np.promote_types(self.dtype, precision) == self.dtype:
            return write()
        self.x, self.dtype = self.cast(self.x, precision), np.dtype(precision)
        values = write()
        self.x, self.dtype = outer
        return self.cast(values, self.dtype)

    def cast(self, value: Value, dtype: Any) -> str:
        """Values converted to a dtype."""
        return self("Cast", value, to=self._type(np.dtype(dtype)))

    def unsqueeze(self, value: Value, *axes: int) -> str:
        """Insert axes of length 1."""
        return self("Unsqueeze", value, np.array(axes, np.int64))

    def squeeze(self, value: Value, *axes: int) -> str:
        """Remove axes of length 1."""
        return self("Squeeze", value, np.array(axes, np.int64))

    def reduce(self, operator: str, value: Value, axis: int, *, keep: bool = False) -> str:
        """Reduce along one axis by "Sum", "SumSquare", "Max", "Min" or "L1", of which few runtimes know all."""
        if operator in ("SumSquare", "L1"):
            value = self("Mul", value, value) if operator == "SumSquare" else self("Abs", value)
            operator = "Sum"
        return self(f"Reduce{operator}", value, np.array([axis], np.int64), keepdims=int(keep))

    def mean(self, values: list[str]) -> str:
        """The mean of some tensors of one shape."""
        return values[0] if len(values) == 1 else self("Div", self("Sum", *values), np.array(float(len(values))))

    def split(self, values: str, sizes: list[int]) -> list[str]:
        """Consecutive columns of values (rows, q), in parts of these sizes."""
        if len(sizes) == 1:
            return [values]
        return self._add("Split", [values, np.array(sizes, np.int64)], len(sizes), axis=1)

    def with_zero(self, values: str) -> str:
        """Values (rows, q) and a column of zeros: (rows, q + 1)."""
        column = self("Gather", values, np.array([0]), axis=1)
        return self("Concat", values, self.cast(self("Less", column, column), self.dtype), axis=1)

    def is_at_least_zero(self, value: Value) -> str:
        """Whether values are 0 or above, without GreaterOrEqual, which not all runtimes know."""
        return self("Or", *(self(sign, value, np.array(0.0)) for sign in ("Greater", "Equal")))

    def sigmoid(self, value: Value) -> str:
        """1 / (1 + exp(-value))."""
        return self("Div", np.array(1.0), self("Add", self("Exp", self("Neg", value)), np.array(1.0)))

    def rows_of(self, table: Value, index: Value) -> str:
        """table[index]: entries of the first axis."""
        return self("Gather", table, index, axis=0)

    def loop(
        self, n: Value, states: Sequence[tuple[Value, Any]], body: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """Replace some states, each with its dtype, by body(step, states), n times; returns the last ones.

        States are all that the body uses but for constants: skl2onnx renames what is outside a body, but not inside.
        """
        make = self.onnx.helper.make_tensor_value_info
        boolean, int64 = (self._type(np.dtype(kind)) for kind in (np.bool_, np.int64))
        kinds = [self._type(np.dtype(dtype)) for _, dtype in states]
        step, go_on, *given = (f"given_{next(self._numbers)}" for _ in range(2 + len(states)))
        outer, self._nodes, self._constants = (self._nodes, self._constants), [], []
        found = [self("Identity", value) for value in (go_on, *body(step, given))]
        inputs = [make(step, int64, []), make(go_on, boolean, [])]
        inputs += [make(name, kind, None) for name, kind in zip(given, kinds, strict=True)]
        outputs = [make(name, kind, None) for name, kind in zip(found, [boolean, *kinds], strict=True)]
        graph = self.onnx.helper.make_graph(self._nodes, "body", inputs, outputs, self._constants)
        self._nodes, self._constants = outer
        values = [n, self("Equal", n, n), *(value for value, _ in states)]
        return self._add("Loop", values, len(states), body=graph)

    def for_each_row(self, number: AnyArray, rows: Value) -> str:
        """A number, as often as an array has rows: (rows,)."""
        return self("Expand", number, self("Shape", rows, end=1))

    def smallest(self, values: str) -> tuple[str, str]:
        """The column of each row's smallest value (rows,), and this value."""
        return self("ArgMin", values, axis=1, keepdims=0), self.reduce("Min", values, 1)

    def output(self, values: str, *shape: int) -> Output:
        """Values (rows, *shape) as an output."""
        is_own = self.output_dtype == self.dtype
        return values if is_own else self.cast(values, self.output_dtype), self.output_dtype, shape

    def finish(self, outputs: dict[str, Output]) -> Any:
        """The model, checked by onnx, with outputs by name."""
        helper = self.onnx.helper
        infos = []
        for name, (value, dtype, shape) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
            infos.append(helper.make_tensor_value_info(name, self._type(np.dtype(dtype)), ["rows", *shape]))
        samples = helper.make_tensor_value_info(_INPUT, self._type(self.input_dtype), ["rows", self.n_features])
        graph = helper.make_graph(self._nodes, "widemargin", [samples], infos, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        # the oldest with this opset, for the sake of older runtimes
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="widemargin")
        self.onnx.checker.check_model(model, full_check=True)
        return model

    def _type(self, dtype: DType) -> int:
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))
