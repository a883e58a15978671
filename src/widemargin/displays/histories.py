"""Curves of the history of a fit: convergence, and the number of support vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import Vector
from ._axes import axes_of, check_lengths, last_step


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

        Raises
        ------
        ValueError
            If a column is missing, or the columns differ in length.
        """
        return cls(**{**cls._columns_of(history), "estimator_name": name}).plot(ax=ax, **kwargs)

    @classmethod
    def _columns_of(cls, history: Mapping[str, ArrayLike]) -> dict[str, Any]:
        """The arguments of the constructor."""
        missing = sorted(set(cls._columns) - set(history))
        if missing:
            needed = " and ".join(map(repr, cls._columns))
            raise ValueError(f"history must have the columns {needed}, missing: {', '.join(missing)}")
        return {column: history.get(column) for column in (*cls._columns, *cls._optional_columns)}


class ConvergenceDisplay(HistoryDisplay):
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

    _columns = ("time", "objective")
    _optional_columns = ("lower_bound", "problem")

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
    def _columns_of(cls, history: Mapping[str, ArrayLike]) -> dict[str, Any]:
        """The curve of a history without an objective is its hinge loss."""
        if "objective" not in history and "hinge" in history:
            return super()._columns_of({**history, "objective": history["hinge"]}) | {"quantity": "mean hinge loss"}
        return super()._columns_of(history)

    def plot(
        self, ax: Any = None, *, kind: str | None = None, log: bool = False, name: str | None = None, **line_kwargs: Any
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure. Several displays may share axes.
        kind : {"gap", "objective"} or None, default=None
            "gap" draws the objective less its lower bound on a logarithmic axis, where it is positive; "objective"
            draws both. None: the gap where there is a lower bound.
        log : bool, default=False
            Whether the axis of the objective, which is then drawn, is logarithmic.
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
        kind = kind or ("objective" if self.lower_bound is None or log else "gap")
        self.ax_, self.figure_ = axes_of(self, ax)
        prefix = f"{name or self.estimator_name}: " if name or self.estimator_name else ""
        self.bound_lines_: list[Any] = []
        if kind == "gap":
            self._draw_gap(f"{prefix}gap", line_kwargs)
        else:
            self._draw_objective(prefix, line_kwargs)
            if log:
                self.ax_.set_yscale("log")
        self.ax_.set_xlabel("Time (s)")
        self.ax_.legend()
        return self

    def _draw_objective(self, prefix: str, line_kwargs: dict[str, Any]) -> None:
        curves = (self.ax_, self.time)
        self.lines_ = _draw_lines(*curves, self.objective, self.problem, f"{prefix}{self.quantity}", line_kwargs)
        if self.lower_bound is not None:
            same = {**line_kwargs, "color": self.lines_[0].get_color(), "linestyle": "--"}
            self.bound_lines_ = _draw_lines(*curves, self.lower_bound, self.problem, f"{prefix}lower bound", same)
        self.ax_.set_ylabel(self.quantity.capitalize())

    def _draw_gap(self, label: str, line_kwargs: dict[str, Any]) -> None:
        if self.lower_bound is None:
            raise ValueError("kind must be 'objective' where there is no lower bound, got 'gap'")
        gap = self.objective - self.lower_bound
        gap[gap <= 0] = np.nan
        self.lines_ = _draw_lines(self.ax_, self.time, gap, self.problem, label, line_kwargs)
        self.ax_.set(ylabel="Objective - lower bound", yscale="log")


class SupportVectorDisplay(HistoryDisplay):
    """Number of support vectors against time.

    Draw it by `from_estimator` or `from_history`, as with scikit-learn's displays.

    Parameters
    ----------
    time : array-like of shape (n_rounds,)
        Seconds since the fit began.
    n_support : array-like of shape (n_rounds,)
        Number of support vectors after each round.
    problem : array-like of shape (n_rounds,), default=None
        Number of the binary problem of a round, if a fit solves several: one line for each.
    estimator_name : str, default=None
        Name in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        One for each problem.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import DCSVMClassifier, SupportVectorDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DCSVMClassifier(gamma=1e-5).fit(X, y)
    >>> display = SupportVectorDisplay.from_estimator(model)
    >>> bool(display.lines_[0].get_ydata()[-1] == model.n_support_.sum())
    True
    """

    _columns = ("time", "n_support")
    _optional_columns = ("problem",)

    def __init__(
        self,
        time: ArrayLike,
        n_support: ArrayLike,
        *,
        problem: ArrayLike | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.time = np.asarray(time, dtype=np.float64)
        self.n_support = np.asarray(n_support, dtype=np.float64)
        self.problem = np.zeros(len(self.time), int) if problem is None else np.asarray(problem)
        self.estimator_name = estimator_name
        check_lengths(time=self.time, n_support=self.n_support, problem=self.problem)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure. Several displays may share axes.
        name : str, default=None
            Name in the legend; None: `estimator_name`, or "support vectors".
        **line_kwargs
            For matplotlib's ``Axes.plot``.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        label = name or self.estimator_name or "support vectors"
        self.lines_ = _draw_lines(self.ax_, self.time, self.n_support, self.problem, label, line_kwargs)
        self.ax_.set(xlabel="Time (s)", ylabel="Support vectors")
        self.ax_.legend()
        return self


def _draw_lines(
    ax: Any, time: Vector, values: Vector, problem: NDArray[Any], label: str, line_kwargs: dict[str, Any]
) -> list[Any]:
    """Draw `values` against `time`, one line for each binary problem: all have the first one's colour, it the label."""
    lines: list[Any] = []
    for number in np.unique(problem):
        rows = problem == number
        lines += ax.plot(time[rows], values[rows], **{"label": label, **line_kwargs})
        line_kwargs = {**line_kwargs, "color": lines[0].get_color(), "label": "_nolegend_"}
    return lines
