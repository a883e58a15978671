"""What all displays share: new axes, lines for each problem, checks of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import Vector


def axes_of(display: Any, ax: Any) -> tuple[Any, Any]:
    """The axes that a display draws on, those of a new figure if `ax` is None, and their figure.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            name = type(display).__name__
            raise ImportError(f"{name} needs matplotlib: pip install 'widemargin[plot]'") from error
        ax = plt.subplots()[1]
    return ax, ax.figure


def last_step(estimator: Any) -> Any:
    """The last step of a Pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def history_of(estimator: Any) -> Mapping[str, ArrayLike]:
    """`history_` of a fitted estimator, or of the last step of a Pipeline.

    Raises
    ------
    ValueError
        If it has none: it is not fitted, or not of this library.
    """
    last = last_step(estimator)
    if not hasattr(last, "history_"):
        raise ValueError(f"estimator must be a fitted widemargin estimator, with a history_, got {last!r}")
    history: Mapping[str, ArrayLike] = last.history_
    return history


def require_columns(history: Mapping[str, ArrayLike], *columns: str) -> None:
    """Raise a ValueError that names the columns which a history lacks."""
    missing = sorted(set(columns) - set(history))
    if missing:
        needed = " and ".join(map(repr, columns))
        raise ValueError(f"history must have the columns {needed}, missing: {', '.join(missing)}")


def check_lengths(**columns: NDArray[Any] | None) -> None:
    """Raise a ValueError unless all columns are one-dimensional, of one length, and not empty."""
    shapes = {name: column.shape for name, column in columns.items() if column is not None}
    first = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1 or len(first) != 1 or not first[0]:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"the columns must be one-dimensional, of one length and not empty, got shapes {found}")


def draw_lines(
    ax: Any, time: Vector, values: Vector, problem: NDArray[Any], label: str, line_kwargs: dict[str, Any]
) -> list[Any]:
    """A line for each problem; the first one sets the colour and has the label."""
    lines: list[Any] = []
    for number in np.unique(problem):
        mine = problem == number
        lines += ax.plot(time[mine], values[mine], **{"label": label, **line_kwargs})
        line_kwargs = {**line_kwargs, "color": lines[0].get_color(), "label": "_nolegend_"}
    return lines
