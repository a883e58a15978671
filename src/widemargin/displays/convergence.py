"""Convergence curves of fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


class ConvergenceDisplay:
    """Primal objective and lower bound of the optimum against time.

    Use `from_estimator` or `from_history`; both draw. It follows scikit-learn's convention for displays.

    Parameters
    ----------
    time : array-like of shape (n_rounds,)
        Seconds since the fit began.
    objective : array-like of shape (n_rounds,)
        Primal objective.
    lower_bound : array-like of shape (n_rounds,), default=None
        Proven lower bound of the optimum, in the same units; None for a method without one.
    problem : array-like of shape (n_rounds,), default=None
        Number of the binary problem of a round, if a fit solves several: one curve for each.
    estimator_name : str, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        The objective, one line for each problem.
    bound_lines_ : list of matplotlib Line2D
        The lower bound, dashed and of the same colour; empty where there is none.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import ConvergenceDisplay, DCSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DCSVMClassifier(gamma=1e-5).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel(), display.lines_[0].get_label()
    ('Time (s)', 'DCSVMClassifier: objective')
    """

    def __init__(
        self,
        time: ArrayLike,
        objective: ArrayLike,
        lower_bound: ArrayLike | None = None,
        *,
        problem: ArrayLike | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.time = np.asarray(time, dtype=np.float64)
        self.objective = np.asarray(objective, dtype=np.float64)
        self.lower_bound = None if lower_bound is None else np.asarray(lower_bound, dtype=np.float64)
        self.problem = np.zeros(len(self.time), int) if problem is None else np.asarray(problem)
        self.estimator_name = estimator_name
        _check_lengths(time=self.time, objective=self.objective, lower_bound=self.lower_bound, problem=self.problem)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the convergence of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of widemargin, or a Pipeline that ends in one
            With the attribute `history_`.
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        name : str, default=None
            Name in the legend; None: the name of the class.
        **line_kwargs
            As for `plot`.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If `estimator` has no `history_`: it is not fitted, or not of this library.
        """
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if not hasattr(last, "history_"):
            raise ValueError(f"estimator must be a fitted widemargin estimator, with a history_, got {last!r}")
        return cls.from_history(last.history_, ax=ax, name=name or type(last).__name__, **line_kwargs)

    @classmethod
    def from_history(
        cls, history: Mapping[str, ArrayLike], *, ax: Any = None, name: str | None = None, **line_kwargs: Any
    ) -> Self:
        """Draw a `history_`, for example that of an earlier fit.

        Parameters
        ----------
        history : mapping of str to array-like of shape (n_rounds,)
            With ``time`` and ``objective``, optionally ``lower_bound`` and ``problem``.
        ax, name, **line_kwargs
            As for `from_estimator`; without a `name`, the legend has the kinds of the curves alone.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If a column is missing, or the columns differ in length.
        """
        missing = sorted({"time", "objective"} - set(history))
        if missing:
            raise ValueError(f"history must have the columns 'time' and 'objective', missing: {', '.join(missing)}")
        display = cls(
            history["time"],
            history["objective"],
            history.get("lower_bound"),
            problem=history.get("problem"),
            estimator_name=name,
        )
        return display.plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure. Several displays may share them.
        name : str, default=None
            Name in the legend; None: `estimator_name`.
        **line_kwargs
            For matplotlib's ``Axes.plot``, for both kinds of curves; a `linestyle` is that of the objective alone.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        self.ax_ = _new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        prefix = f"{name or self.estimator_name}: " if name or self.estimator_name else ""
        self.lines_ = self._draw(self.objective, f"{prefix}objective", line_kwargs)
        self.bound_lines_: list[Any] = []
        if self.lower_bound is not None:
            same = {**line_kwargs, "color": self.lines_[0].get_color(), "linestyle": "--"}
            self.bound_lines_ = self._draw(self.lower_bound, f"{prefix}lower bound", same)
        self.ax_.set(xlabel="Time (s)", ylabel="Objective")
        self.ax_.legend()
        return self

    def _draw(self, values: Vector, label: str, line_kwargs: dict[str, Any]) -> list[Any]:
        """One line for each problem; the first sets the colour and has the label."""
        lines: list[Any] = []
        for problem in np.unique(self.problem):
            mine = self.problem == problem
            lines += self.ax_.plot(self.time[mine], values[mine], **{"label": label, **line_kwargs})
            line_kwargs = {**line_kwargs, "color": lines[0].get_color(), "label": "_nolegend_"}
        return lines


def _check_lengths(**columns: NDArray[Any] | None) -> None:
    shapes = {name: column.shape for name, column in columns.items() if column is not None}
    if len(set(shapes.values())) > 1 or len(shapes["time"]) != 1 or not shapes["time"][0]:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"the columns must be one-dimensional, of one length and not empty, got shapes {found}")


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("ConvergenceDisplay needs matplotlib: pip install 'widemargin[plot]'") from error
    return plt.subplots()[1]
