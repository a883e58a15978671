"""A callback of scikit-learn's that keeps what it is called with."""

from typing import Any


class Recorder:
    """Keeps the calls and the scores of rounds, and stops after so many rounds."""

    def __init__(self, stop_after: int = 10**9) -> None:
        self.stop_after = stop_after
        self.events: list[str] = []
        self.scores: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.events.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.events.append("begin " + context.task_name)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any = None, y: Any = None, fitted_estimator: Any = None
    ) -> bool:
        self.events.append("end " + context.task_name)
        if fitted_estimator is not None and context.task_name == "round":
            self.scores.append(fitted_estimator.score(X, y))
        return self.events.count("end round") >= self.stop_after
