"""The intended differences from scikit-learn explain all failures of its tests with our classes."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks.peers import sklearn_tests
from measuring import process, report


def test_every_failure_has_a_reason_and_every_reason_a_test() -> None:
    rows = report.results("sklearn_tests")
    assert len(rows) > 400
    assert not [row["test"] for row in rows if row["outcome"] == "failed"]
    reasons = {difference.name for difference in sklearn_tests.read_differences()}
    assert {row["difference"] for row in rows if row["outcome"] == "difference"} == reasons


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sklearn.tests") is None, reason="scikit-learn came without its tests")
def test_a_run_of_one_file_is_explained() -> None:
    rows = process.run_apart(sklearn_tests.measure, "tests/test_kernel_ridge.py", timeout=300)
    assert "passed" in {row["outcome"] for row in rows} <= {"passed", "skipped", "difference"}
