"""Origin of a measured row: commit, date and machine, and whether it still holds for the code at hand."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from measuring.imports import ROOT, imported_files
from measuring.load import is_quiet

_CODE = ("src", "measuring/*.py", "benchmarks/*.py", "evidence/*.py")
_AS_BEFORE = "^Figures as before"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "daal", "numba", "threadpoolctl")


def origin() -> dict[str, str]:
    """Return the columns `commit`, `date` and `machine_card` of a row that is measured now."""
    return {"commit": commit(), "date": datetime.now(UTC).date().isoformat(), "machine_card": machine()}


def origins(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return these columns of a row that is computed from rows: all of theirs, of its own set if it has one."""
    mine = [other for other in rows if "set" not in row or other.get("set") == row["set"]]
    return {column: ", ".join(sorted({str(other[column]) for other in mine if column in other})) for column in origin()}


def is_current(row: dict[str, Any], file: str) -> bool:
    """Whether a row is quiet, of this machine and this library: no later commit has changed code that `file` runs.

    `file` is that of the row's experiment, from the root.
    """
    return is_quiet(row) and row.get("machine_card") == machine() and _holds(str(row.get("commit", "")), file)


@cache
def machine() -> str:
    """Return processor and number of cores."""
    return f"{processor()}, {_cores()} core{'s' * (_cores() != 1)}"


@cache
def machine_card() -> dict[str, str]:
    """Return the machine card: processor, cores, memory, system, BLAS and versions."""
    from threadpoolctl import threadpool_info

    card = {
        "processor": processor(),
        "cores": str(_cores()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join(
            sorted({f"{p['internal_api']} {p['version']}" for p in threadpool_info() if p["user_api"] == "blas"})
        ),
    }
    # not installed where it runs from a checkout; an import statement would count as use of all that it passes on
    card["widemargin"] = import_module("widemargin").__version__
    for name in _PACKAGES:
        try:
            card[name] = version(name)
        except PackageNotFoundError:
            card[name] = "absent"
    return card


@cache
def commit() -> str:
    """Return the short name of the last commit that changed code, with + where code differs from it now.

    Commits of results or texts alone do not count, so a table measured in several parts has one commit. "unknown"
    without git.
    """
    name = git("log", "-1", "--format=%h", "--abbrev=9", "--", *_CODE)
    return name + "+" * bool(git("status", "--porcelain", "--", *_CODE)) if name else "unknown"


def git(*arguments: str) -> str:
    """Return what a git command prints in this repository; nothing where it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def _holds(name: str, file: str) -> bool:
    """Whether the code of src that a file imports is at a commit that of now; of C++, all code.

    Rows of changed code hold until the next commit. The readers of data sets do not count: the sets are the same. Nor
    does a commit whose message says, in a line of its own and with the reason, "Figures as before".
    """
    if name.endswith("+") or not name:
        return name == commit()
    changed = _changed_code(name)
    return changed is not None and all(path.endswith(".py") for path in changed) and not changed & imported_files(file)


@cache
def _changed_code(name: str) -> set[str] | None:
    """The files of src whose code is not that of a commit, as `_holds` counts; None without that commit."""
    if not git("cat-file", "-t", name):
        return None
    code = ("--", "src/widemargin", ":(exclude)src/widemargin/datasets")
    where = ("--name-only", *code)
    later = git("log", "--format=%h", "--invert-grep", f"--grep={_AS_BEFORE}", f"{name}..", *code).split()
    paths = {path for one in later for path in git("show", "--format=", one, *where).split() if _has_changed(one, path)}
    return {path for path in {*paths, *git("diff", "HEAD", *where).split()} if not _is_same_code(name, path)}


@cache
def _has_changed(name: str, path: str) -> bool:
    """Whether a commit changed the code of a file."""
    return not _is_same_code(f"{name}^", path, git("show", f"{name}:{path}"))


def _is_same_code(name: str, path: str, now: str | None = None) -> bool:
    """Whether a file at a commit is Python whose code is that of `now`, by default the file's; but for texts in it."""
    if now is None:
        now = (ROOT / path).read_text() if (ROOT / path).exists() else ""
    before = git("show", f"{name}:{path}")
    return path.endswith(".py") and bool(before and now) and _statements(before) == _statements(now)


def _statements(code: str) -> str:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
