"""The campaign of `benchmarks/reliability`, shorter: interrupts, limits, and fit after fit."""

import sys
from types import SimpleNamespace

import pytest

from benchmarks.reliability import (
    foreign_files,
    limits,
    linear,
    memory,
    offsets,
    processes,
    resumed,
    shares,
    soak,
    tiny_classes,
    wide_rows,
)
from measuring import command, process

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="signals, limits, peaks of Linux")]

QUICK = "DCSVMClassifier, intercept", "DCPredRegressor", "OCASClassifierCV", "BSGDClassifier", "compress"


@pytest.mark.parametrize("after", [0.2, 1.5])
@pytest.mark.parametrize("case", QUICK)
def test_a_real_interrupt_gives_the_best_so_far(case: str, after: float) -> None:
    assert limits.interrupt(case, after)["outcome"] in ("stopped", "checks", "finished")


@pytest.mark.parametrize("case", sorted(set(limits.CASES) - set(limits.WITHOUT_LIMIT)))
def test_a_limit_is_kept(case: str) -> None:
    if "dask" in case:
        pytest.importorskip("distributed")
    assert limits.measure(case, 1.0)["over"] < 2.0  # half a second on a machine that does nothing else


@pytest.mark.parametrize(
    ("case", "layout", "classes", "rows"),
    [
        *((case, "float64 C", 10, 4000) for case in sorted(memory.CASES.keys() - {"compress"})),
        *(("compress", "float64 C", classes, 8000) for classes in (2, 10)),
        *(("OCASClassifier", "float64 C", 100, 20_000), ("DCSVMClassifier", "csr", 2, 8000)),
    ],
)
def test_a_memory_budget_is_kept(case: str, layout: str, classes: int, rows: int) -> None:
    run = command.Run(rows=rows, columns=50)
    ((result,),) = command._measured_apart(memory.MEMORY, (case, layout, classes, 50), run)
    assert result["outcome"] == "ok" or "memory_budget must be at least" in result["outcome"]
    assert result.get("kept", True), result


def test_fit_after_fit_leaves_nothing_behind() -> None:
    rows = process.run_apart(soak.soak, 200, 1)
    assert sum(row["different"] for row in rows) == 0
    assert rows[-1]["in_use"] < rows[4]["in_use"] + 20
    assert rows[-1]["objects"] < rows[4]["objects"] + 20_000
    assert rows[-1]["threads"] <= rows[4]["threads"] + 1


@pytest.mark.parametrize("kernel", offsets.KERNELS)
@pytest.mark.parametrize("case", offsets.ESTIMATORS)
def test_rows_far_from_the_origin_are_not_silently_misjudged(case: str, kernel: str) -> None:
    assert not [row for row in offsets._all(case, kernel) if "wrong" in row["outcome"]]


@pytest.mark.parametrize("case", foreign_files.FILES)
def test_files_of_other_programs_are_read_or_refused(case: str) -> None:
    assert foreign_files.measure(case)[0]["outcome"] in ("R", "L")


@pytest.mark.parametrize("case", processes.SITUATIONS)
def test_threads_in_the_life_of_a_process(case: str) -> None:
    assert processes.once(case, 0)[0] == "equal"


@pytest.mark.parametrize("case", wide_rows.ESTIMATORS)
def test_sparse_rows_of_many_columns_keep_the_budget(case: str) -> None:
    (rows,) = command._measured_apart(wide_rows.WIDE_ROWS, (case,), command.Run())
    assert all(row["outcome"] in ("ok", "refused") for row in rows), rows


@pytest.mark.parametrize("name", tiny_classes.ESTIMATORS)
def test_fifty_classes_of_three_rows(name: str) -> None:
    assert tiny_classes.measure(f"{name}: 50")[0]["accuracy"] > 0.9


@pytest.mark.parametrize("case", ["DCSVMRegressor", "OCASClassifier", "DCPredClassifier"])
def test_a_limit_above_the_need_ends_no_fit(case: str) -> None:
    whole, ample = shares.measure(case, SimpleNamespace(factors=[100.0]))
    assert not ample["cut"]
    assert ample["score"] == whole["score"]


@pytest.mark.parametrize(
    "case", ["DCSVMClassifier", "DCSVMClassifier, early pairs", "DCSVMRegressor", "OCASClassifier"]
)
def test_fits_that_are_stopped_and_resumed_get_no_worse(case: str) -> None:
    whole, *_, last = rows = resumed.measure(case)
    assert {row["outcome"] for row in rows} == {"ok"}
    assert last["objective"] == pytest.approx(whole["objective"], rel=5e-3)


@pytest.mark.parametrize("case", linear.CASES)
def test_linear_machines_on_ugly_data_are_right_or_warn(case: str) -> None:
    pytest.importorskip("clarabel")
    (row,) = linear.measure(case, SimpleNamespace(seeds=1))
    assert row["dishonest"] == 0, row
    assert row["worst"] <= 1.1 * linear.TOL, row
