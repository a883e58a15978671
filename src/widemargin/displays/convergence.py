"""The curves of a fit's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import Model, Vector
from ._axes import axes_of, check_lengths, last_step


class ConvergenceDisplay:
    """How far from the optimum a fit can have been, against time; of `BSGDClassifier`, the mean hinge loss.

    Draw it by `from_estimator` or `from_history`, as with scikit-learn's displays. A history without an
    ``objective`` is drawn by its ``hinge``: `BSGDClassifier` computes no objective during a fit.

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
    quantity : str, default="objective"
        What `objective` is, for the legend and the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The objective, or the gap, one line for each problem.
    bound_lines_ : list of matplotlib Line2D
        The lower bound, dashed and of the same colour; empty where there is none, and beside a gap.

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
    ('Time (s)', 'DCSVMClassifier: gap')
    """

    def __init__(
        self,
        time: ArrayLike,
        objective: ArrayLike,
        lower_bound: ArrayLike | None = None,
        *,
        problem: ArrayLike | None = None,
        estimator_name: str | None = None,
        quantity: str = "objective",
    ) -> None:
        self.time = np.asarray(time, dtype=np.float64)
        self.objective = np.asarray(objective, dtype=np.float64)
        self.lower_bound = None if lower_bound is None else np.asarray(lower_bound, dtype=np.float64)
        self.problem = np.zeros(len(self.time), int) if problem is None else np.asarray(problem)
        self.estimator_name = estimator_name
        self.quantity = quantity
        check_lengths(time=self.time, objective=self.objective, lower_bound=self.lower_bound, problem=self.problem)

    @classmethod
    def from_estimator(cls, estimator: Model, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of widemargin, a Pipeline that ends in one, or a search
            Of a search it is the history of `best_estimator_`.
        ax : matplotlib Axes, default=None
            By default the axes of a new figure.
        name : str, default=None
            Name in the legend; None: the name of the class.
        **kwargs
            As for `plot`.

        Raises
        ------
        ValueError
            If `estimator` has no `history_`: it is not fitted, or not of this library. Or if a column is missing.
        """
        last = last_step(getattr(estimator, "best_estimator_", estimator))
        machine: Model = getattr(last, "best_estimator_", last)
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

        Raises
        ------
        ValueError
            If a column is missing, or the columns differ in length.
        """
        is_hinge = "objective" not in history and "hinge" in history
        columns = {**history, "objective": history["hinge"]} if is_hinge else history
        if missing := sorted({"time", "objective"} - set(columns)):
            raise ValueError(f"history must have the columns 'time' and 'objective', missing: {', '.join(missing)}")
        names = ("time", "objective", "lower_bound", "problem")
        quantity = "mean hinge loss" if is_hinge else "objective"
        display = cls(**{k: columns.get(k) for k in names}, estimator_name=name, quantity=quantity)  # type: ignore[arg-type]
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, kind: str | None = None, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure. Several displays may share axes.
        kind : {"gap", "objective"} or None, default=None
            "gap" draws the objective less its lower bound on a logarithmic axis, where it is positive; "objective"
            draws both. None: the gap where there is a lower bound.
        name : str, default=None
            Name in the legend; None: `estimator_name`.
        **line_kwargs
            For matplotlib's ``Axes.plot``, for both kinds of curves; a `linestyle` is that of the objective alone.

        Raises
        ------
        ValueError
            If `kind` is "gap" and there is no lower bound, or another word.
        """
        if kind not in ("objective", "gap", None):
            raise ValueError(f"kind must be 'objective', 'gap' or None, got {kind!r}")
        if kind == "gap" and self.lower_bound is None:
            raise ValueError("kind must be 'objective' where there is no lower bound, got 'gap'")
        self.ax_, self.figure_ = axes_of(self, ax)
        prefix = f"{name or self.estimator_name}: " if name or self.estimator_name else ""
        self.bound_lines_: list[Any] = []
        if self.lower_bound is None or kind == "objective":
            self.lines_ = self._draw(self.objective, f"{prefix}{self.quantity}", line_kwargs)
            if self.lower_bound is not None:
                same = {**line_kwargs, "color": self.lines_[0].get_color(), "linestyle": "--"}
                self.bound_lines_ = self._draw(self.lower_bound, f"{prefix}lower bound", same)
            self.ax_.set_ylabel(self.quantity.capitalize())
        else:
            gap = self.objective - self.lower_bound
            gap[gap <= 0] = np.nan
            self.lines_ = self._draw(gap, f"{prefix}gap", line_kwargs)
            self.ax_.set(ylabel="Objective - lower bound", yscale="log")
        self.ax_.set_xlabel("Time (s)")
        self.ax_.legend()
        return self

    def _draw(self, values: Vector, label: str, line_kwargs: dict[str, Any]) -> list[Any]:
        """A line of `values` for each binary problem: all have the first one's colour, it the label."""
        lines: list[Any] = []
        for number in np.unique(self.problem):
            rows = self.problem == number
            lines += self.ax_.plot(self.time[rows], values[rows], **{"label": label, **line_kwargs})
            line_kwargs = {**line_kwargs, "color": lines[0].get_color(), "label": "_nolegend_"}
        return lines
