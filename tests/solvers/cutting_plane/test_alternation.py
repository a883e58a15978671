"""The choice between rounds with epochs and rounds alone."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.solvers.cutting_plane.alternation import Alternation


@pytest.mark.parametrize("faster", [True, False])
def test_the_faster_kind_of_rounds_gets_most_of_the_work(faster: bool) -> None:
    alternation, gap, work = Alternation(1.0, 10.0), 1.0, {True: 0.0, False: 0.0}
    alternation.record(0.0, gap)
    for _ in range(400):
        mine = alternation.has_epochs
        effort = 3.0 if mine else 1.0
        work[mine] += effort
        gap *= np.exp(-effort * (0.05 if mine == faster else 0.001))
        alternation.record(effort, max(gap, 1e-200))
    assert 0.05 < work[not faster] / sum(work.values()) < 0.35


def test_the_slower_kind_takes_over_when_it_becomes_faster() -> None:
    alternation, gap = Alternation(1.0, 10.0), 1.0
    alternation.record(0.0, gap)
    late = []
    for t in range(300):
        late.append(alternation.has_epochs)
        gap *= np.exp(-(0.1 if alternation.has_epochs == (t < 60) else 0.001))
        alternation.record(1.0, gap)
    assert np.mean(late[10:60]) > 0.6
    assert np.mean(late[-100:]) < 0.3


def test_rounds_alone_get_the_work_expected_of_them() -> None:
    alternation, gap, course = Alternation(2.0, 100.0), 1.0, []
    alternation.record(0.0, gap)
    for _ in range(400):
        course.append(alternation.has_epochs)
        gap *= np.exp(-0.03 if alternation.has_epochs else -0.001)
        alternation.record(1.0, gap)
    assert course[:100] == [True] * 2 + [False] * 98
    assert np.mean(course[-200:]) > 0.6
