"""`memory_budget` is a number of bytes: the peak of fit and predict stays within it, and the machine is the same.

The peak is measured in a process of its own, with the data loaded: what libraries and
data hold is not the fit's doing, nor is memory that was given back: glibc is told to hand on every large array at once.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CHILD = """
import gc, json, resource, sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import widemargin
from widemargin import DCSVMClassifier
from widemargin.datasets import load_benchmark, load_patches

asked = json.loads(sys.argv[1])


def peak():
    # getrusage would do, but a child starts there with the peak of the process that spawned it
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def start_anew():
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return peak()


if asked["set"] == "patches":
    X, y = load_patches(asked["n"], 5, random_state=0)[:2]
else:
    X, y = load_benchmark(asked["set"])[:2]
if asked["form"] == "dense" and sp.issparse(X):
    X = X.toarray()
size = X.data.nbytes + (X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else 0)
DCSVMClassifier(gamma=0.1).fit(X[:200], y[:200]).predict(X[:200])
gc.collect()
model = DCSVMClassifier(random_state=0, memory_budget=asked["budget"], **asked["options"])
before = start_anew()
model.fit(X, y)
fit = peak() - before
f = model.decision_function(X[:2000])
gc.collect()
before = start_anew()
model.predict(X)
predict = peak() - before
coef = model.dual_coef_
Z = model.support_vectors_
Z = np.asarray(Z.toarray() if sp.issparse(Z) else Z, np.float64)
norms, value = np.einsum("ij,ij->i", Z, Z), -np.abs(coef).sum()
for i in range(0, len(Z), 1000):
    D = norms[i : i + 1000, None] + norms - 2 * Z[i : i + 1000] @ Z.T
    value += 0.5 * coef[0, i : i + 1000] @ np.exp(-model.gamma * D) @ coef[0]
print(json.dumps(dict(data=size, fit=fit, predict=predict, dual=value, f=f.tolist(), converged=model.converged_)))
"""


def measure(name: str, form: str, budget: int | None, options: dict[str, Any], n: int = 0) -> dict[str, Any]:
    """Fit and predict in a process of its own, and return what they took above what was there before."""
    asked = {"set": name, "form": form, "budget": budget, "options": options, "n": n}
    command = [sys.executable, "-c", CHILD, json.dumps(asked)]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20), "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure_within(limit: int, *args: Any, **more: Any) -> dict[str, Any]:
    """The least of at most three measurements: where two threads meet, small pieces of memory only add, by luck."""
    results: list[dict[str, Any]] = []
    while not results or (results[-1]["fit"] > allowed(limit, results[-1]) and len(results) < 3):
        results.append(measure(*args, **more))
    return min(results, key=lambda result: int(result["fit"]))


def allowed(budget: int, result: dict[str, Any]) -> float:
    """What is promised: a tenth more than the budget, and 10 MB; or a copy of the data, where that is more."""
    return max(budget + result["data"], 1.1 * budget + 10_000_000)


def assert_same_model(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a["converged"]
    assert b["converged"]
    assert a["dual"] == pytest.approx(b["dual"], rel=1e-5)
    scale = max(map(abs, b["f"]))
    assert max(abs(x - y) for x, y in zip(a["f"], b["f"], strict=True)) <= 4e-3 * scale


PATCHES: dict[str, Any] = {"C": 8.0, "gamma": 1.0, "tol": 1e-3}


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_patches_in_sixty_megabytes(fit_intercept: bool) -> None:
    """25,000 patches at gamma 4 have enough support vectors that their kernel matrix alone is many times the budget."""
    options = PATCHES | {"gamma": 4.0, "fit_intercept": fit_intercept}
    budget = 60_000_000
    small = measure_within(budget, "patches", "dense", budget, options, n=25_000)
    large = measure("patches", "dense", None, options, n=25_000)
    assert small["fit"] <= allowed(budget, small)
    assert small["predict"] <= allowed(budget, small)
    assert large["fit"] > 1.5 * budget  # otherwise the budget was never put to the test
    assert_same_model(small, large)


def test_predict_of_many_rows_keeps_the_budget() -> None:
    budget = 60_000_000
    result = measure("patches", "dense", budget, PATCHES | {"max_time": 3.0}, n=100_000)
    assert result["predict"] <= budget


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_a9a_in_two_hundred_megabytes(form: str) -> None:
    options = {"C": 32.0, "gamma": 2.0**-7, "tol": 1e-3}
    budget = 200_000_000
    small = measure_within(budget, "a9a", form, budget, options)
    large = measure("a9a", form, None, options)
    assert small["fit"] <= allowed(budget, small)
    assert small["predict"] <= allowed(budget, small)
    assert_same_model(small, large)
