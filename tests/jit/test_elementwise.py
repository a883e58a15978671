"""Compiled passes over numbers of rows against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin._jit import elementwise
from widemargin._jit.turns import new_turn


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_signs_of_a_class(dtype: type, size: int) -> None:
    numbers, out = np.array([0, 1, 2, 1, 0, 0, 1], dtype), np.full(7, np.nan)
    elementwise.sign_rows(numbers, 1, size, new_turn(0), out)
    np.testing.assert_array_equal(out, np.where(numbers == 1, 1.0, -1.0))


@pytest.mark.parametrize("size", [1, 4, 100])
def test_sums_and_choices_in_blocks(size: int) -> None:
    numbers, sums = np.random.default_rng(0).normal(size=9), np.full((-(-9 // size), 1), np.nan)
    elementwise.absolute_sums(numbers, size, new_turn(0), sums)
    np.testing.assert_allclose(sums[:, 0], [np.abs(numbers[k : k + size]).sum() for k in range(0, 9, size)])
    chosen, out = np.array([0, 3, 3, 8, 7]), np.full(5, np.nan)
    elementwise.pick_values(numbers, chosen, size, new_turn(0), out)
    np.testing.assert_array_equal(out, numbers[chosen])
