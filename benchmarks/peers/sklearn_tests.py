"""scikit-learn's own tests, those that are installed, with our classes in the place of its own.

`SVC`, `LinearSVC`, `SGDClassifier`, `KernelRidge` and `Nystroem` are replaced before a test file is imported, by the
thin classes of `_sklearn_adapters.py`, which take scikit-learn's constructor where a parameter has the same meaning.
There is a row for each test that made one of ours: passed, skipped, `difference` (it fails, and
`sklearn_differences.toml` says why it is meant to) or failed. docs/differences.md shows the differences.
"""

from __future__ import annotations

import re
import signal
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sklearn

from benchmarks.peers import _sklearn_adapters as adapters
from measuring.experiment import Experiment, Row

HERE = Path(__file__).resolve().parent
DIFFERENCES = HERE / "sklearn_differences.toml"
FILES = (
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "linear_model/tests/test_sgd.py",
    "tests/test_kernel_ridge.py",
    "tests/test_kernel_approximation.py",
    "tests/test_multiclass.py",
    "tests/test_multioutput.py",
    "tests/test_calibration.py",
    "tests/test_pipeline.py",
    "feature_selection/tests/test_rfe.py",
    "feature_selection/tests/test_from_model.py",
    "ensemble/tests/test_stacking.py",
    "ensemble/tests/test_voting.py",
    "ensemble/tests/test_bagging.py",
    "semi_supervised/tests/test_self_training.py",
)
PLACES = {
    "SVC": "sklearn.svm",
    "LinearSVC": "sklearn.svm",
    "SGDClassifier": "sklearn.linear_model",
    "KernelRidge": "sklearn.kernel_ridge",
    "Nystroem": "sklearn.kernel_approximation",
}
_SECONDS = 60  # for a test


class Difference(NamedTuple):
    """A way in which we differ on purpose, and the tests that show it: patterns of `file::test`."""

    name: str
    why: str
    tests: list[str]


class Recorder:
    """A pytest plugin that keeps each test's outcome, why it failed, and which of our classes it made."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Clear the names that other tests made."""
        adapters.made.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """End a test that takes too long."""

        def give_up(*_: Any) -> None:
            raise TimeoutError(f"not done after {_SECONDS} seconds")

        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(_SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        """Record the outcome."""
        report = yield
        if report.when == "call" or not report.passed:
            given = getattr(item, "callspec", None)
            params = [type(value).__name__ for value in given.params.values()] if given else []
            ours = sorted(adapters.made | (set(params) & set(PLACES)))
            error = "" if call.excinfo is None else " ".join(call.excinfo.exconly().split())[:200]
            error = re.sub(" at 0x[0-9a-f]+", "", error)
            self.rows.append({"test": item.nodeid, "outcome": report.outcome, "ours": " ".join(ours), "error": error})
        return report


def run_files(files: Sequence[str]) -> list[Row]:
    """Run test files of the installed scikit-learn in this process; returns a row for each test."""
    home, recorder = Path(sklearn.__file__).parent, Recorder()
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={home}", "-W", "ignore"]
    code = pytest.main([*options, *(str(home / file) for file in files)], plugins=[recorder])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}: see above")
    return recorder.rows


def replace() -> None:
    """Put our classes in the place of scikit-learn's."""
    for adapter in adapters.ADAPTERS:
        setattr(import_module(PLACES[adapter.__name__]), adapter.__name__, adapter)


def read_differences() -> list[Difference]:
    """The table of intended differences."""
    return [Difference(**entry) for entry in tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["difference"]]


def judge(rows: list[Row], differences: list[Difference]) -> list[Row]:
    """Rows of tests that made one of ours, with the name of the difference that explains a failure."""
    kept = [row for row in rows if row["ours"]]
    for row in kept:
        names = [d.name for d in differences if any(fnmatchcase(row["test"], pattern) for pattern in d.tests)]
        is_explained = row["outcome"] == "failed" and bool(names)
        row["difference"] = names[0] if is_explained else ""
        row["outcome"] = "difference" if is_explained else row["outcome"]
    return kept


def measure(file: str, run: Any = None) -> list[Row]:
    """The rows of a file's tests, in this process, which has our classes from then on."""
    replace()
    rows = [{"file": file, **row} for row in run_files([file])]
    return judge(rows, read_differences())


SKLEARN_TESTS = Experiment("sklearn_tests", FILES, ("file", "test"), measure, seconds=120.0)
