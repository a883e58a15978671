"""What every estimator checks at its door."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin import DCSVMClassifier
from widemargin.estimators._validation import number_classes


@pytest.mark.slow
@given(
    labels=st.one_of(
        st.lists(st.integers(-2, 1), min_size=1),
        st.lists(st.sampled_from(["b", "a", "aa"]), min_size=1),
        st.lists(st.sampled_from([0.5, -1.0]), min_size=1),
        st.lists(st.booleans(), min_size=1),
    ),
    seed=st.integers(0, 99),
    as_object=st.booleans(),
)
def test_classes_are_numbered_as_by_sorting(labels: list[object], seed: int, as_object: bool) -> None:
    y = np.array(labels, dtype=object if as_object else None)
    for weights in (np.ones(len(y)), np.random.default_rng(seed).choice([0.0, 2.0], len(y))):
        counted = weights > 0
        expected = np.unique(y[counted])
        if len(expected) < 2:
            continue
        classes, numbers = number_classes(y, weights)
        np.testing.assert_array_equal(classes, expected)
        np.testing.assert_array_equal(classes[numbers][counted], y[counted])
        assert classes.dtype == y.dtype
        assert numbers.min() >= 0
        assert numbers.max() < len(classes)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
def test_one_class(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two classes with positive weight, got one class"):
        number_classes(np.array(["x", "x" if all(weights) else "y", "x"]), np.array(weights))


def test_labels_that_cannot_be_compared_are_named() -> None:
    y = np.array(["a", "b", "a", 1, "b"], dtype=object)
    with pytest.raises(ValueError, match="y must have labels of one type, .* got 'a' in row 0, 1 in row 3"):
        DCSVMClassifier().fit(np.eye(5), y)
