"""What several displays share: new axes, a line for each binary problem, checks of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

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
            raise ImportError(f"{name} needs matplotlib: pip install matplotlib") from error
        ax = plt.subplots(layout="constrained")[1]
    return ax, ax.figure


def last_step(estimator: Any) -> Any:
    """The last step of a Pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _fitted_machine(estimator: Any) -> Any:
    """The last step of a Pipeline, the machine that a search has trained with the best parameters, or the estimator."""
    last = last_step(getattr(estimator, "best_estimator_", estimator))
    return getattr(last, "best_estimator_", last)


class HistoryDisplay:
    """A display of columns of `history_`; its constructor has a parameter for each."""

    _columns: tuple[str, ...]
    _optional_columns: tuple[str, ...]
    plot: Callable[..., Self]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of widemargin, a Pipeline that ends in one, or a search
            Its `history_` must have the columns: a linear machine, for example, has no support vectors. Of a search
            it is that of `best_estimator_`.
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        name : str, default=None
            Name in the legend; None: the name of the class.
        **kwargs
            As for `plot`.

        Returns
        -------
        display

        Raises
        ------
        ValueError
            If `estimator` has no `history_`: it is not fitted, or not of this library. Or if a column is missing.
        """
        machine = _fitted_machine(estimator)
        if not hasattr(machine, "history_"):
            raise ValueError(f"estimator must be a fitted widemargin estimator, with a history_, got {machine!r}")
        return cls.from_history(machine.history_, ax=ax, name=name or type(machine).__name__, **kwargs)

    @classmethod
    def from_history(
        cls, history: Mapping[str, ArrayLike], *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw a `history_`, for example that of an earlier fit.

        Parameters
        ----------
        history : mapping of str to array-like of shape (n_rounds,)
            Columns by the names of the constructor's parameters.
        ax, name, **kwargs
            As for `from_estimator`; without a `name`, the legend has the kinds of the curves alone.

        Returns
        -------
        display

        Raises
        ------
        ValueError
            If a column is missing, or the columns differ in length.
        """
        missing = sorted(set(cls._columns) - set(history))
        if missing:
            needed = " and ".join(map(repr, cls._columns))
            raise ValueError(f"history must have the columns {needed}, missing: {', '.join(missing)}")
        columns: dict[str, Any] = {column: history.get(column) for column in (*cls._columns, *cls._optional_columns)}
        return cls(**{**columns, "estimator_name": name}).plot(ax=ax, **kwargs)


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
    """Draw `values` against `time`, one line for each binary problem: all have the first one's colour, it the label."""
    lines: list[Any] = []
    for number in np.unique(problem):
        rows = problem == number
        lines += ax.plot(time[rows], values[rows], **{"label": label, **line_kwargs})
        line_kwargs = {**line_kwargs, "color": lines[0].get_color(), "label": "_nolegend_"}
    return lines
