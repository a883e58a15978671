"""scikit-learn's callbacks (1.9 and later, experimental there): a round of a solver is a task of theirs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

from .._types import Given, Model


class CallbackSupportMixin:
    """scikit-learn's mixin of this name, imported (with rich, which it needs) only by those who set callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn callbacks for the following fits; none removes them.

        Parameters
        ----------
        *callbacks : sklearn.callback.FitCallback
            Such as `sklearn.callback.ProgressBar` or `ScoringMonitor`; every round of the solver is a task.

        Raises
        ------
        ImportError
            With scikit-learn before 1.9.
        """
        from sklearn.callback import CallbackSupportMixin as Support

        Support.set_callbacks(self, *callbacks)
        return self

    def _init_callback_context(self, *args: Any, **kwargs: Any) -> Any:
        from sklearn.callback import CallbackSupportMixin as Support

        return Support._init_callback_context(self, *args, **kwargs)


class FitTask(AbstractContextManager["FitTask"]):
    """The fit as a task of the estimator's callbacks, and every round of a solver as a task of the fit.

    The callbacks are torn down however the ``with`` block ends. A StopIteration of a scorer, a callback or a splitter
    is raised as RuntimeError: it would end a loop of the caller's without a word.
    """

    def __init__(self, estimator: Model, X: Given, y: Given) -> None:
        self.task = {"estimator": estimator, "X": X, "y": y}
        self.attributes: Callable[[], dict[str, Any] | None] | None = None
        self._round = -1.0
        self.context: Any = None
        # a fit within a search of scikit-learn has a context, the search's, but perhaps no callbacks of its own
        self.has_callbacks = bool(getattr(estimator, "_skl_callbacks", None))
        self._listens = self.has_callbacks or hasattr(estimator, "_parent_callback_ctx")

    def __enter__(self) -> Self:
        if self._listens:
            try:
                self.context = self.task["estimator"]._init_callback_context(max_subtasks=None)
                self.context.call_on_fit_task_begin(**self.task)
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self._listens:
            from sklearn.callback import with_callbacks

            with_callbacks(lambda _: None)(self.task["estimator"])  # tears down, after a method that does nothing
        if isinstance(error, StopIteration):
            name = type(self.task["estimator"]).__name__
            raise RuntimeError(f"{name}: a function that it was given raised {error!r}") from error

    def __call__(self, state: dict[str, float]) -> bool:
        """End a round's task; True when a callback returns True: stop."""
        number = state.get("round", self._round)
        if self.context is None or number == self._round:
            return False
        self._round = number
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(**self.task)
        return bool(task.call_on_fit_task_end(**self.task, reconstruction_attributes=self.attributes))

    def close(self) -> None:
        """End the fit's own task."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.task, reconstruction_attributes=self.attributes)
