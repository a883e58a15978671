"""Weighted quantiles, against the definition."""

import numpy as np
import pytest

from widemargin.solvers.quantile import midpoint_quantile, midpoint_quantiles


@pytest.mark.parametrize(
    ("values", "weights", "level", "expected"),
    [
        ([3.0, 1.0, 2.0, 7.0], [1.0, 1.0, 1.0, 1.0], 3.0, 5.0),  # all of [3, 7]
        ([3.0, 1.0, 2.0, 7.0], [1.0, 1.0, 1.0, 1.0], 2.5, 3.0),
        ([3.0, 5.0, 7.0], [1.0, 0.0, 1.0], 1.0, 5.0),  # a value without weight is no end of the interval
        ([3.0, 4.0, 7.0], [1.0, 0.0, 1.0], 1.0, 5.0),
        ([1.0, 2.0], [1.0, 1.0], 2.0, 2.0),  # no value above
        ([1.0, 2.0], [1.0, 1.0], 0.0, 1.0),  # nor below
        ([1.0, 2.0], [0.0, 1.0], 0.0, 2.0),
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


def test_those_of_many_problems_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 8, size=500)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    values, weights = rng.integers(0, 6, ends[-1]).astype(float), rng.integers(0, 3, ends[-1]).astype(float)
    weights[starts] += 1.0
    levels = np.floor(rng.uniform(0.0, np.add.reduceat(weights, starts) + 1.0))  # with 0 and the sum
    alone = [
        midpoint_quantile(values[i:j], weights[i:j], level) for i, j, level in zip(starts, ends, levels, strict=True)
    ]
    np.testing.assert_array_equal(midpoint_quantiles(values, weights, levels, starts), alone)
