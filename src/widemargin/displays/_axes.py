"""What several displays share: new axes, and checks of columns."""

from __future__ import annotations

from typing import Any

from .._types import AnyArray, Model


def axes_of(display: Any, ax: Any) -> tuple[Any, Any]:
    """The axes that a display draws on, in a new figure if `ax` is None, and their figure.

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


def last_step(estimator: Model) -> Model:
    """The last step of a Pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def check_lengths(**columns: AnyArray | None) -> None:
    """Raise a ValueError unless all columns are one-dimensional, of one length, and not empty."""
    shapes = {name: column.shape for name, column in columns.items() if column is not None}
    first = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1 or len(first) != 1 or not first[0]:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"the columns must be one-dimensional, of one length and not empty, got shapes {found}")
