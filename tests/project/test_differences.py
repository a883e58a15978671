"""docs/differences.md, the CSV that it is written from, and the table of reasons say the same."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "differences.md"
TABLE = ROOT / "benchmarks" / "peers" / "sklearn_differences.toml"
RESULTS = ROOT / "benchmarks" / "results" / "sklearn_tests.csv"


def outcomes() -> list[dict[str, str]]:
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_every_failure_has_a_reason() -> None:
    rows = outcomes()
    assert len(rows) > 400
    assert not [row["test"] for row in rows if row["outcome"] == "failed"]


def test_the_page_has_the_counts_of_the_run() -> None:
    page, rows = PAGE.read_text(encoding="utf-8"), outcomes()
    counts = Counter(row["outcome"] for row in rows)
    assert f"{counts['passed']:,} pass, {counts['difference']:,} fail" in page
    tests = Counter(row["difference"] for row in rows if row["outcome"] == "difference")
    for entry in tomllib.loads(TABLE.read_text(encoding="utf-8"))["difference"]:
        assert tests[entry["name"]] > 0, "a reason without a test"
        assert f"| **{entry['name']}.** {' '.join(entry['why'].split())} | {tests[entry['name']]} |" in page


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sklearn.tests") is None, reason="scikit-learn came without its tests")
def test_a_run_of_one_file_is_explained() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/peers/sklearn_tests.py"), "tests/test_kernel_ridge.py"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout
    assert "'passed': " in run.stdout
