"""The number of support vectors during fits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import HistoryDisplay, axes_of, check_lengths, draw_lines


class SupportVectorDisplay(HistoryDisplay):
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
