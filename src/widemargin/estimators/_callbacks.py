"""scikit-learn's callbacks (1.9 and later, experimental there): a round of a solver is a task of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self


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


def _listens(estimator: Any) -> bool:
    return bool(getattr(estimator, "_skl_callbacks", None)) or hasattr(estimator, "_parent_callback_ctx")


@contextmanager
def fit_task(estimator: Any, X: Any, y: Any) -> Iterator[CallbackBridge]:
    """The fit as a task of the estimator's callbacks, which are torn down however the ``with`` block ends.

    A StopIteration of a scorer, a callback or a splitter is raised as RuntimeError: it would end a loop of the caller's
    without a word.
    """
    listens = _listens(estimator)
    try:
        yield CallbackBridge(estimator, X, y)
    except StopIteration as error:
        message = f"{type(estimator).__name__}: a function that it was given raised {error!r}"
        raise RuntimeError(message)  # noqa: B904 - with this cause, contextlib would raise the StopIteration
    finally:
        if listens:
            from sklearn.callback import with_callbacks

            with_callbacks(lambda _: None)(estimator)  # tears down, after a method that does nothing


class CallbackBridge:
    """Turns rounds of a solver into tasks of the estimator's fit: one task tree a fit, with a task for every round."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.task = {"estimator": estimator, "X": X, "y": y}
        self.attributes: Callable[[], dict[str, Any] | None] | None = None
        self._round = -1.0
        self.context: Any = None
        # a fit within a search of scikit-learn has a context, the search's, but perhaps no callbacks of its own
        self.has_callbacks = bool(getattr(estimator, "_skl_callbacks", None))
        if _listens(estimator):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(**self.task)

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
