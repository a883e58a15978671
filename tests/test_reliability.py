"""The campaign of `benchmarks/reliability`, shorter: interrupts, limits, and fit after fit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.reliability import limits, memory, offsets, soak

pytestmark = pytest.mark.slow

QUICK = (
    "DCSVMClassifier, intercept",
    "DCPredRegressor",
    "OCASClassifier",
    "OCASClassifierCV",
    "BSGDClassifier",
    "compress",
    "C_path",
)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process there")
@pytest.mark.parametrize("after", [0.2, 1.5])
@pytest.mark.parametrize("case", QUICK)
def test_a_real_interrupt_gives_the_best_so_far(case: str, after: float) -> None:
    assert limits.interrupt(case, after)["outcome"] in ("stopped", "checks", "finished")


@pytest.mark.parametrize("case", sorted(set(limits.CASES) - set(limits.WITHOUT_LIMIT)))
def test_a_limit_is_kept(case: str) -> None:
    if "dask" in case:
        pytest.importorskip("distributed")
    assert limits.measure(case, 1.0)["over"] < 2.0  # half a second on a machine that does nothing else


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak can't be reset there")
@pytest.mark.parametrize("case", sorted(memory.CASES.keys() - {"compress"}))
def test_a_memory_budget_is_kept(case: str) -> None:
    result = memory.measure(case, "float64 C", 10, 50, 4000, 50, 300.0)
    assert result["outcome"] == "ok" or "memory_budget must be at least" in result["outcome"]
    assert result.get("kept", True), result


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak can't be reset there")
@pytest.mark.parametrize(
    ("case", "classes", "rows"), [("compress", 2, 8000), ("compress", 10, 8000), ("OCASClassifier", 100, 20_000)]
)
def test_a_small_memory_budget_is_kept(case: str, classes: int, rows: int) -> None:
    assert memory.measure(case, "float64 C", classes, 50, rows, 50, 300.0)["kept"]


def test_fit_after_fit_leaves_nothing_behind() -> None:
    rows = soak.soak(200, seed=1)
    assert sum(row["different"] for row in rows) == 0
    assert rows[-1]["megabytes"] < rows[4]["megabytes"] + 60
    assert rows[-1]["threads"] <= rows[4]["threads"] + 1


@pytest.mark.parametrize("kernel", offsets.KERNELS)
@pytest.mark.parametrize("case", offsets.ESTIMATORS)
def test_rows_far_from_the_origin_are_not_silently_misjudged(case: str, kernel: str) -> None:
    for offset in offsets.OFFSETS:
        for dtype in ("float32", "float64"):
            for storage in ("dense", "csr"):
                assert "wrong" not in offsets.measure(case, kernel, offset, dtype, storage)["outcome"]
