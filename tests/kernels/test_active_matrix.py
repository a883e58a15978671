"""The active set's matrix is the kernel matrix of its rows, however they came and went."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import kernels as naive
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.active_matrix import ActiveMatrix
from widemargin.kernels.functions import RBF
from widemargin.kernels.kernel_operator import KernelOperator

N = 14
X = np.random.default_rng(0).normal(size=(N, 3))
K = naive.rbf(X, X, 0.3)
subsets = st.lists(st.integers(0, N - 1), unique=True, max_size=N)
steps = st.lists(subsets, min_size=1, max_size=8)


def make_active(team: ThreadTeam, capacity: int) -> ActiveMatrix:
    rows = KernelOperator(RBF(0.3), make_samples(X, RBF.sample_form), team)
    return ActiveMatrix(rows, capacity**2 * 8)


def check(active: ActiveMatrix) -> None:
    m = len(active.rows)
    assert len(np.unique(active.rows)) == m <= active.capacity
    matrix = active.K
    assert matrix.flags.c_contiguous
    np.testing.assert_allclose(matrix[:, :m], K[np.ix_(active.rows, active.rows)], atol=1e-12)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True)
@given(steps=steps, capacity=st.sampled_from([4, N - 1, N]))
def test_any_sequence_of_updates(steps: list[list[int]], capacity: int) -> None:
    with ThreadTeam(1) as team:
        active = make_active(team, capacity)
        for wanted in steps:
            index = np.array(wanted[:capacity], np.intp)
            active.update(index)
            assert set(index) <= set(active.rows)
            check(active)


class _FailingRBF(RBF):
    """The RBF kernel, whose tiles with as many rows as `fails_at` raise."""

    fails_at: ClassVar[int] = 3

    def fill(self, A: Any, B: Any, out: Any) -> None:
        if len(A) == self.fails_at:
            raise ValueError("no entries")
        super().fill(A, B, out)


def test_rows_whose_entries_were_not_computed_are_not_in_the_matrix() -> None:
    with ThreadTeam(1) as team:
        active = ActiveMatrix(KernelOperator(_FailingRBF(0.3), make_samples(X, RBF.sample_form), team), N**2 * 8)
        active.update(np.arange(4))
        with pytest.raises(ValueError, match="no entries"):
            active.update(np.arange(7))
        assert list(active.rows) == [0, 1, 2, 3]
        check(active)
        active.update(np.arange(6))
        check(active)


def test_rows_that_stay_are_not_computed_again() -> None:
    with ThreadTeam(1) as team:
        active = make_active(team, N)
        active.update(np.arange(8))
        before = active.operator.n_entries
        active.update(np.arange(1, 8))
        active.update(np.arange(2, 7))  # three of eight are idle now: they go
        assert active.operator.n_entries == before
        assert len(active.rows) == 5
        active.update(np.arange(2, 8))
        assert active.operator.n_entries == before + 5 + 0
