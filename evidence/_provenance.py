"""Origin of a measured row: commit, date and machine, and whether it still holds for the code at hand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import _report
from benchmarks._report import commit, git
from evidence._load import QUIET

_ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ("commit", "date", "machine_card", "repeats", "spread", "others")


def origin() -> dict[str, str]:
    """Return the columns `commit`, `date` and `machine_card` of a row that is measured now."""
    return {"commit": commit(), "date": datetime.now(UTC).date().isoformat(), "machine_card": machine()}


def origins(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return these columns of a row that is computed from rows: all of theirs, of its own set if it has one."""
    mine = [other for other in rows if "set" not in row or other.get("set") == row["set"]]
    return {column: ", ".join(sorted({str(other[column]) for other in mine if column in other})) for column in origin()}


def is_quiet(row: dict[str, Any]) -> bool:
    """Whether other processes took at most `QUIET` of a core while the row was measured."""
    return float(row.get("others") or 0.0) <= QUIET


def is_current(row: dict[str, Any]) -> bool:
    """Whether a row is quiet, of this machine, and of this library: no later commit has changed src."""
    return is_quiet(row) and row.get("machine_card") == machine() and _holds(str(row.get("commit", "")))


@cache
def machine() -> str:
    """Return processor and number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_report.processor()}, {cores} core{'s' * (cores != 1)}"


@cache
def _holds(name: str) -> bool:
    """Whether src at a commit is src as it is now. Rows of changed code hold until the next commit."""
    if name.endswith("+") or not name:
        return name == commit()
    return bool(git("cat-file", "-t", name)) and _succeeds("diff", "--quiet", name, "--", "src/widemargin")


def _succeeds(*arguments: str) -> bool:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, check=False).returncode == 0
