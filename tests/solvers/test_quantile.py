"""Weighted quantiles, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.solvers.quantile import midpoint_quantile


@pytest.mark.parametrize(
    ("values", "weights", "level", "expected"),
    [
        ([3.0, 1.0, 2.0, 7.0], [1.0, 1.0, 1.0, 1.0], 3.0, 5.0),  # all of [3, 7]
        ([3.0, 1.0, 2.0, 7.0], [1.0, 1.0, 1.0, 1.0], 2.5, 3.0),
        ([3.0, 5.0, 7.0], [1.0, 0.0, 1.0], 1.0, 5.0),  # a value without weight is no end of the interval
        ([3.0, 4.0, 7.0], [1.0, 0.0, 1.0], 1.0, 5.0),
        ([1.0, 2.0], [1.0, 1.0], 2.0, 2.0),  # no value above
        ([1.0, 2.0], [1.0, 1.0], 0.0, 1.0),  # nor below
        ([4.0], [0.0], 0.0, 4.0),
        ([], [], 0.0, 0.0),
    ],
)
def test_the_middle_of_all_quantiles(values: list[float], weights: list[float], level: float, expected: float) -> None:
    assert midpoint_quantile(np.array(values), np.array(weights), level) == expected


def test_sums_of_weights_that_differ_by_rounding_are_equal() -> None:
    values, weights = np.arange(20.0), np.full(20, 0.1)
    for level in (weights[:10].sum(), 1.0 - 1e-15, 1.0 + 1e-15):
        assert midpoint_quantile(values, weights, level) == 9.5
