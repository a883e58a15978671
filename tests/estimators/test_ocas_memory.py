"""Memory of a fit: within the budget for a memory map, and free as soon as the fit has ended."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import DCSVMClassifier, OCASClassifier
from widemargin._memory import SHARES, Share
from widemargin._progress import Progress
from widemargin.data.memory_map import MappedMatrix

SCRIPT = """
import sys
import numpy as np
from measuring import process
from widemargin import OCASClassifier

n, d = 60_000, 300
rng = np.random.default_rng(0)
X = np.memmap(sys.argv[1], "f4", "w+", shape=(n, d))
for first in range(0, n, 6000):
    X[first : first + 6000] = rng.normal(size=(6000, d))
y = X[:, 0] + rng.normal(size=n) > 0
X.flush()
OCASClassifier(C=0.01).fit(rng.normal(size=(4000, d)).astype("f4"), y[:4000])  # imports
X = np.memmap(sys.argv[1], "f4", "r", shape=(n, d))
process.reset_peak()
before = process.peak_bytes()
model = OCASClassifier(C=0.01, memory_budget=X.nbytes // 2, n_jobs=2).fit(X, y)
print(model.converged_, process.peak_bytes() - before <= X.nbytes // 2)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what is resident")
def test_a_memory_map_within_the_budget(tmp_path: Path) -> None:
    pytest.importorskip("measuring", reason="the benchmarks are not shipped")
    command, folder = [sys.executable, "-c", SCRIPT, str(tmp_path / "X.f4")], Path(__file__).parents[2]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split() == ["True", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [OCASClassifier, DCSVMClassifier])
def test_a_fit_leaves_no_garbage(make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its objects are freed by reference counts, without a garbage collection."""
    held: list[weakref.ref] = []
    ask = Progress.go_on

    def remember(self: Progress, **state: float) -> bool:
        held.append(weakref.ref(self))
        return ask(self, **state)

    monkeypatch.setattr(Progress, "go_on", remember)
    X = np.random.default_rng(0).normal(size=(1500, 3))
    gc.collect()
    gc.disable()
    try:
        make().fit(X, X[:, 0] > 0)
        assert held
        assert not any(progress() for progress in held)
    finally:
        gc.enable()


def test_classes_in_groups_are_the_same_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 6)), rng.integers(7, size=3000)
    X[np.arange(3000), y % 6] += 1.0
    whole = OCASClassifier(tol=1e-6).fit(X, y)
    monkeypatch.setitem(SHARES, "vectors", Share(1e-9, ""))  # one at a time
    groups = OCASClassifier(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(groups.coef_, whole.coef_, atol=1e-3)
    assert groups.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    assert groups.converged_
    history = groups.history_
    assert np.all(np.diff(history["time"]) >= 0)
    assert history["objective"][-1] == pytest.approx(groups.objective_)
    assert history["objective"][-1] - history["lower_bound"][-1] == pytest.approx(groups.dual_gap_)
    assert np.all(history["lower_bound"] <= groups.objective_)


@pytest.mark.parametrize(("max_iter", "reason"), [(2, "max_iter"), (60, "the precision of float64")])
def test_what_has_stopped_classes_in_groups(max_iter: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group may take `max_iter` rounds, and their sum more."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 6)), rng.integers(7, size=500)
    monkeypatch.setitem(SHARES, "vectors", Share(1e-9, ""))  # one at a time
    monkeypatch.setattr("widemargin.algorithms.ocas._STALL_ROUNDS", 20)
    monkeypatch.setattr("widemargin.algorithms.ocas._FIRST_ROUNDS", 10**6)
    monkeypatch.setattr("widemargin.solvers.cutting_plane.accelerations._FEW", 0)
    with pytest.warns(ConvergenceWarning, match=f"stopped by {reason} "):
        model = OCASClassifier(fit_intercept=False, tol=1e-17, max_iter=max_iter).fit(X, y)
    assert model.n_iter_ > max_iter


@pytest.mark.slow
def test_a_gram_matrix_beyond_the_budget_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr("widemargin.algorithms.ocas.solve_gram_duals", lambda *args: calls.append(args[4].n_threads))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1024, 600))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(1024), [-0.5, 0.5])
    for budget in ("1MB", "20MB", "100MB"):
        assert OCASClassifier(C=1e-4, memory_budget=budget, n_jobs=2).fit(X, y).converged_
    assert calls == [1, 2]


def test_a_memory_map_beyond_the_budget_is_predicted_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((1000, 4))
    np.save(tmp_path / "X.npy", X)
    calls: list[int] = []
    multiply = MappedMatrix.matvec

    def count(matrix: MappedMatrix, W: Any) -> Any:
        calls.append(1)
        return multiply(matrix, W)

    model = OCASClassifier(memory_budget=8000).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(MappedMatrix, "matvec", count)
    mapped = model.decision_function(np.load(tmp_path / "X.npy", mmap_mode="r"))
    np.testing.assert_allclose(mapped, model.decision_function(X))
    assert calls == [1]
