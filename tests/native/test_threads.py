"""Compiled threads in the life of a process: several fits at once, a fork, an end, interrupts at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from widemargin import BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier
from widemargin._native import Stopped, Team, dense

MACHINES: list[Any] = [
    DCSVMClassifier(C=10.0, n_levels=0, random_state=0, n_jobs=2),
    OCASClassifier(C=0.1, n_jobs=2),
    BSGDClassifier(budget=30, n_epochs=2, random_state=0),
    DCPredClassifier(random_state=0, n_jobs=2),
]


def rows(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    folder = Path(__file__).parents[2]  # where `benchmarks` is
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_fits_in_four_threads_at_once() -> None:
    X, y = rows()
    alone = [machine.fit(X, y).decision_function(X) for machine in MACHINES]

    def fit(k: int) -> np.ndarray:
        machine = MACHINES[k % len(MACHINES)]
        values: np.ndarray = type(machine)(**machine.get_params()).fit(X, y).decision_function(X)
        return values

    with ThreadPoolExecutor(4) as pool:
        for k, values in enumerate(pool.map(fit, range(12))):
            np.testing.assert_array_equal(values, alone[k % len(MACHINES)])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_a_fork_after_a_fit_then_a_fit() -> None:
    script = """
        import os, sys, warnings
        import numpy as np
        from widemargin import OCASClassifier

        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).normal(size=(100_000, 20))
        y = X[:, 0] > 0
        before = OCASClassifier(n_jobs=2).fit(X, y).coef_
        child = os.fork()
        after = OCASClassifier(n_jobs=2).fit(X, y).coef_
        if child == 0:
            os._exit(0 if np.array_equal(before, after) else 3)
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status) or int(not np.array_equal(before, after)))
    """
    run(script)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no such limit on this system")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer needs all addresses")
def test_a_system_that_refuses_threads() -> None:
    """Fewer threads work, and the machine is the same."""
    script = """
        import resource
        import numpy as np
        from widemargin import OCASClassifier
        from widemargin._native import Team
        from widemargin._threads import ThreadTeam

        X = np.random.default_rng(0).normal(size=(50_000, 5))
        y = X[:, 0] > 0
        alone = OCASClassifier(n_jobs=1).fit(X, y).coef_
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**26,) * 2)
        few = Team(100).n_threads
        with ThreadTeam(100) as team:
            squares = team.map(lambda k: k * k, range(200))
        print(1 <= few < 100, squares == [k * k for k in range(200)])
        print(np.array_equal(alone, OCASClassifier(n_jobs=100).fit(X, y).coef_))
    """
    assert run(script) == "True True\nTrue\n"


@pytest.mark.slow
def test_an_interpreter_that_ends_while_daemon_threads_fit_and_predict() -> None:
    script = """
        import threading, time, warnings
        import numpy as np
        from widemargin import BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier

        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32)
        y = X[:, 0] > 0
        machines = [m(n_jobs=2) for m in (BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier)]

        def fit_and_predict(machine):
            while True:
                machine.fit(X, y).predict(X)

        for machine in machines:
            threading.Thread(target=fit_and_predict, args=(machine,), daemon=True).start()
        time.sleep(0.5)
    """
    assert run(script) == ""


@pytest.mark.slow
def test_an_interpreter_that_ends_while_threads_spin() -> None:
    script = """
        import numpy as np
        from widemargin import OCASClassifier

        X = np.random.default_rng(0).normal(size=(50_000, 5))
        print(OCASClassifier(n_jobs=2).fit(X, X[:, 0] > 0).converged_)
    """
    assert run(script) == "True\n"


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
    assert run(script) == "1000 0 True\n"
