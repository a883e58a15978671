"""The number of support vectors during fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import axes_of, check_lengths, draw_lines, history_of, last_step, require_columns


class SupportVectorDisplay:
    """Number of support vectors against time.

    Use `from_estimator` or `from_history`; both draw. It follows scikit-learn's convention for displays.

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
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
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
    >>> display.lines_[0].get_ydata()[-1] == model.n_support_.sum()
    np.True_
    """

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

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the support vectors of a fitted kernel machine.

        Parameters
        ----------
        estimator : fitted kernel machine of widemargin, or a Pipeline that ends in one
            Its `history_` has the column ``n_support``.
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        name : str, default=None
            Name in the legend; None: the name of the class.
        **line_kwargs
            For matplotlib's ``Axes.plot``.

        Returns
        -------
        SupportVectorDisplay

        Raises
        ------
        ValueError
            If `estimator` is not fitted, or has no support vectors.
        """
        name = name or type(last_step(estimator)).__name__
        return cls.from_history(history_of(estimator), ax=ax, name=name, **line_kwargs)

    @classmethod
    def from_history(
        cls, history: Mapping[str, ArrayLike], *, ax: Any = None, name: str | None = None, **line_kwargs: Any
    ) -> Self:
        """Draw a `history_`, for example that of an earlier fit.

        Parameters
        ----------
        history : mapping of str to array-like of shape (n_rounds,)
            With ``time`` and ``n_support``, optionally ``problem``.
        ax, name, **line_kwargs
            As for `from_estimator`.

        Returns
        -------
        SupportVectorDisplay

        Raises
        ------
        ValueError
            If a column is missing, or the columns differ in length.
        """
        require_columns(history, "time", "n_support")
        display = cls(history["time"], history["n_support"], problem=history.get("problem"), estimator_name=name)
        return display.plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure. Several displays may share them.
        name : str, default=None
            Name in the legend; None: `estimator_name`, or "support vectors".
        **line_kwargs
            For matplotlib's ``Axes.plot``.

        Returns
        -------
        SupportVectorDisplay

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        label = name or self.estimator_name or "support vectors"
        self.lines_ = draw_lines(self.ax_, self.time, self.n_support, self.problem, label, line_kwargs)
        self.ax_.set(xlabel="Time (s)", ylabel="Support vectors")
        self.ax_.legend()
        return self
