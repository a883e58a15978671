"""Compiled threads: passes that are stopped, and interrupts at any moment.

Forks, refused threads and the end of an interpreter are in `tests/project/test_reliability.py`.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from widemargin._native import Stopped, Team, dense


def test_a_stopped_team_leaves_a_pass_and_can_be_used_again() -> None:
    X, W, out, again = np.ones((10_000, 8)), np.ones((1, 8)), np.zeros((1, 10_000)), np.zeros((1, 10_000))
    for n_threads in (1, 2):
        team = Team(n_threads)
        team.stop()
        with pytest.raises(Stopped):
            dense.matvec(team, X, W, out)
        team.resume()
        dense.matvec(team, X, W, again)
        np.testing.assert_array_equal(again, 8.0)
        team.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals on this system")
def test_a_thousand_interrupts_at_random_moments() -> None:
    """Each fit returns a machine or raises KeyboardInterrupt; afterwards fits are what they were, to the last digit."""
    script = """
from benchmarks.reliability.threads import count_interrupts
ends = count_interrupts(1000)
print(sum(ends.values()), ends["models that changed"], ends["stopped"] > 100)
"""
    command, folder = [sys.executable, "-c", script], Path(__file__).parents[2]  # where `benchmarks` is
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout == "1000 0 True\n", ended.stderr
