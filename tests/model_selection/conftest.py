"""Rows, and fits that are stopped, of the tests of searches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from caught_warnings import warnings_of
from recorder import Recorder


@pytest.fixture(scope="package")
def binary() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = make_classification(300, 6, n_informative=4, flip_y=0.1, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture
def stopped() -> Callable[..., str]:

    def fit(model: Any, *data: Any) -> str:
        texts = warnings_of(ConvergenceWarning, model.fit, *data)
        (message,) = [text for text in texts if f"{type(model).__name__} was stopped" in text]
        return message

    return fit


@pytest.fixture
def listener() -> Recorder:
    return Recorder()
