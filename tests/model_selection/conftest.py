"""Rows, and fits that are stopped, of the tests of searches."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning


@pytest.fixture(scope="package")
def binary() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = make_classification(300, 6, n_informative=4, flip_y=0.1, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture
def stopped() -> Callable[..., str]:

    def fit(model: Any, *data: Any) -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*data)
        texts = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        (message,) = [text for text in texts if f"{type(model).__name__} was stopped" in text]
        return message

    return fit


class Listener:
    """Counts the tasks of a fit, and stops it after so many of them."""

    def __init__(self) -> None:
        self.stop_after, self.events = 100, list[str]()

    def setup(self, estimator: Any, context: Any) -> None:
        self.events.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        self.events.append(f"end {context.task_name}")
        return self.events.count("end round") >= self.stop_after


@pytest.fixture
def listener() -> Listener:
    return Listener()
