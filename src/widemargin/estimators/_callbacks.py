"""scikit-learn's callbacks (1.9 and later, experimental there), bridged to `Progress`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is."""
        return method


class CallbackBridge:
    """Turns rounds of a solver into tasks of the estimator's fit.

    Parameters
    ----------
    estimator : BaseEstimator
        One task tree per fit: fit, then a task for every round.
    X, y : as given to fit
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.task = {"estimator": estimator, "X": X, "y": y}
        self.attributes: Callable[[], dict[str, Any]] | None = None
        self._round = -1.0
        self.context: Any = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(**self.task)

    def __call__(self, state: dict[str, float]) -> bool:
        """End a round's task; True when a callback asks to stop."""
        if self.context is None or state.get("round", -1.0) == self._round:
            return False
        self._round = state["round"]
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(**self.task)
        return bool(task.call_on_fit_task_end(**self.task, reconstruction_attributes=self.attributes))

    def close(self) -> None:
        """End the fit's own task."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.task, reconstruction_attributes=self.attributes)
