"""`FittedState`: checks of fitted attributes that come from a file, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._types import AnyArray, Rows
from ..data.csr import check_sparse
from ._validation import check_choice, check_flag, check_integer, check_number

Size = int | EllipsisType | None  # of an axis: this, one or more, any


class FittedState:
    """Fitted attributes by name: each is checked when it is read.

    `attributes` are an estimator's ``__dict__``, or one of its attributes that holds others, of the name `within`.
    Every method raises a ValueError that names the attribute, its value, and what it must be.
    """

    def __init__(self, attributes: Any, within: str = "") -> None:
        if not isinstance(attributes, Mapping | list | tuple):
            raise ValueError(f"{within} must be a dict or a list, got {describe(attributes)}")
        self._attributes = attributes if isinstance(attributes, Mapping) else dict(enumerate(attributes))
        self._within = within

    def __iter__(self) -> Iterator[Any]:
        return iter(self._attributes)

    def name(self, key: Any) -> str:
        """What messages call an attribute."""
        return f"{self._within}[{key!r}]" if self._within else key

    def value(self, key: Any) -> Any:
        """The value of an attribute that must be there, of any type."""
        if key not in self._attributes:
            raise ValueError(
                f"{self.name(key)} is missing among the fitted attributes (saved by another version? Fit it again)"
            )
        return self._attributes[key]

    def nested(self, key: Any) -> FittedState:
        """The values of a dict, a list or a tuple."""
        return FittedState(self.value(key), self.name(key))

    def nested_list(self, key: str, size: Size) -> list[FittedState]:
        """A list of `size` dicts."""
        values = self.nested(key)
        dicts = [values.nested(k) for k in values]
        if not _is_size(len(dicts), size):
            raise ValueError(f"{self.name(key)} must be a list of {_size_text(size)} dicts, got {len(dicts)}")
        return dicts

    def integer(self, key: Any, least: int) -> int:
        """An integer of at least `least`."""
        check_integer(self.name(key), self.value(key), least)
        return int(self.value(key))

    def number(self, key: str, **bounds: float) -> float:
        """A finite number; bounds are `least` and `above`."""
        check_number(self.name(key), self.value(key), **bounds)
        return float(self.value(key))

    def choice(self, key: str, choices: tuple[Any, ...]) -> Any:
        """One of the choices."""
        check_choice(self.name(key), self.value(key), choices)
        return self.value(key)

    def array(self, key: Any, dtype: Any, *shape: Size, least: int | None = None, below: int | None = None) -> AnyArray:
        """An array of finite numbers; integers are at least `least` and less than `below`.

        `dtype` is a dtype, or np.integer and np.floating for any size; `shape` the size of each axis: ... for one or
        more, None for any. An array without entries may be of any size and take no memory: an axis that others are made
        from should have an entry.
        """
        array: Any = self.value(key)
        fits = (
            isinstance(array, np.ndarray)
            and array.dtype.isnative
            and (np.issubdtype(array.dtype, dtype) if dtype in (np.integer, np.floating) else array.dtype == dtype)
            and array.ndim == len(shape)
            and all(map(_is_size, array.shape, shape))
        )
        if not fits:
            wanted = f"an array of {_name_of(dtype)} of shape {_shape_text(shape)}"
            raise ValueError(f"{self.name(key)} must be {wanted}, got {describe(array)}")
        self._check_entries(key, array, least, below)
        checked: AnyArray = array
        return checked

    def _check_entries(self, key: Any, array: AnyArray, least: int | None, below: int | None) -> None:
        if array.dtype.kind == "f":
            with np.errstate(all="ignore"):
                if np.isfinite(array.sum()):  # so are all
                    return
            is_right, wanted = np.isfinite(array), "finite"
        else:
            bounds = (-np.inf if least is None else least), (np.inf if below is None else below)
            is_right, wanted = (array >= bounds[0]) & (array < bounds[1]), f"in [{bounds[0]}, {bounds[1]})"
        if not is_right.all():
            raise ValueError(f"{self.name(key)} must have entries that are {wanted}, got {array[~is_right][0]}")

    def rows(self, key: str, dtype: Any, n: Size, d: int) -> Rows:
        """n rows of d finite numbers: a dense array, or a CSR one whose indices are within its shape."""
        rows = self.value(key)
        if not sp.issparse(rows):
            return self.array(key, dtype, n, d)
        try:
            check_sparse(rows)
            if rows.format != "csr" or rows.shape[1] != d or not _is_size(rows.shape[0], n):
                wanted = f"CSR array of shape {_shape_text((n, d))}"
                raise ValueError(f"it must be a {wanted}, got {rows.format.upper()} of shape {rows.shape}")
            FittedState(vars(rows)).array("data", dtype, None)
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # its own arrays may be anything
            raise ValueError(f"{self.name(key)} is a damaged sparse array: {error}") from error
        return rows

    def count_classes(self) -> int:
        """The number of labels in `classes_`, which must be at least two and ascending."""
        labels = self.value("classes_")
        if not isinstance(labels, np.ndarray) or labels.ndim != 1 or len(labels) < 2:
            raise ValueError(f"classes_ must be an array of at least two labels, got {describe(labels)}")
        try:
            is_ascending = bool(np.all(labels[1:] > labels[:-1]))
        except TypeError:  # objects that cannot be compared
            is_ascending = False
        if not is_ascending:
            raise ValueError(f"classes_ must be distinct labels in ascending order, got {describe(labels)}")
        return len(labels)

    def check_certificate(self) -> None:
        """Check `objective_`, `dual_gap_`, `relative_gap_`, and what `check_history` does."""
        for key in ("objective_", "dual_gap_", "relative_gap_"):
            if not isinstance(self.value(key), float):  # NaN, where there is no bound
                raise ValueError(f"{self.name(key)} must be a number, got {describe(self.value(key))}")
        self.check_history()

    def check_history(self) -> None:
        """Check `converged_`, `n_iter_` and `history_`."""
        check_flag(converged_=self.value("converged_"))
        self.integer("n_iter_", 0)
        history = self.nested("history_")
        for key in history:
            column = history.value(key)
            if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "fiub":
                raise ValueError(f"{history.name(key)} must be an array of numbers, got {describe(column)}")


def _name_of(dtype: Any) -> str:
    return {np.integer: "integers", np.floating: "floats"}.get(dtype) or str(np.dtype(dtype))


def _is_size(own: int, wanted: Size) -> bool:
    return own > 0 if wanted is ... else wanted is None or own == wanted


def _size_text(size: Size) -> str:
    return "one or more" if size is ... else "any" if size is None else str(size)


def _shape_text(shape: tuple[Size, ...]) -> str:
    sizes = [_size_text(size) for size in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def describe(value: Any) -> str:
    """A value in a message: its type, and what it is if that is short."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}" + (f": {value!r}" if value.size <= 4 else "")
    text = repr(value)
    return f"{type(value).__name__}: {text if len(text) <= 60 else text[:57] + '...'}"
