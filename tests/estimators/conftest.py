"""Small problems that the estimators' tests share."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_classification

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def binary() -> Data:
    """120 rows, 6 features, two overlapping classes."""
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.1, random_state=0)
    return np.ascontiguousarray(X), y


@pytest.fixture(scope="module")
def four() -> Data:
    """240 digits out of four classes; half of the pixels of an image are 0."""
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:240] / 16, y[:240]
