"""scikit-learn's own tests, those that are installed, with our classes in the place of its own.

::

    python benchmarks/peers/sklearn_tests.py                    # all files below: some five minutes
    python benchmarks/peers/sklearn_tests.py svm/tests/test_svm.py -k sparse

`SVC`, `LinearSVC`, `SGDClassifier`, `KernelRidge` and `Nystroem` are replaced before a test file is imported, by the
thin classes of `_sklearn_adapters.py`, which take scikit-learn's constructor where a parameter has the same meaning.
The CSV has a line for each test that made one of ours: passed, skipped, `difference` (it fails, and
`sklearn_differences.toml` says why it is meant to) or failed. `docs/differences.md` shows the differences; a run of all
files writes it. The exit code is the number of tests that failed without a reason.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest
import sklearn

from benchmarks.peers import _sklearn_adapters as adapters
from measuring import report

HERE = Path(__file__).resolve().parent
DIFFERENCES = HERE / "sklearn_differences.toml"
RESULTS = report.RESULTS / "sklearn_tests.csv"
PAGE = HERE.parents[1] / "docs" / "differences.md"
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

Row = dict[str, Any]


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


def run(files: Sequence[str], arguments: Sequence[str]) -> list[Row]:
    """Run test files of the installed scikit-learn in this process; returns a row for each test."""
    home, recorder = Path(sklearn.__file__).parent, Recorder()
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={home}", "-W", "ignore"]
    code = pytest.main([*options, *arguments, *(str(home / file) for file in files)], plugins=[recorder])
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


def write_page(rows: list[Row], differences: list[Difference]) -> None:
    """Write the documentation's page from the table and a run's outcomes."""
    counts = Counter(row["outcome"] for row in rows)
    tests = Counter(row["difference"] for row in rows if row["outcome"] == "difference")
    ran = sum(counts.values()) - counts["skipped"]
    lines = [
        "# Differences from scikit-learn",
        "",
        "<!-- written by benchmarks/peers/sklearn_tests.py from sklearn_differences.toml -->",
        "",
        f"scikit-learn {sklearn.__version__}'s own tests were run with our classes in the place of `SVC`, `LinearSVC`,",
        "`SGDClassifier`, `KernelRidge` and `Nystroem` ([how to repeat it](measuring.md)).",
        f"Of the {ran:,} tests that make one of ours, {counts['passed']:,} pass, {counts['difference']:,} fail for one",
        f"of the reasons below, and {counts['failed']:,} for none of them.",
        "",
        "| difference | tests |",
        "|---|---|",
        *(f"| **{d.name}.** {' '.join(d.why.split())} | {tests[d.name]} |" for d in differences),
    ]
    PAGE.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write CSV and page; returns the number of tests that are not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="of scikit-learn's package; all of the table by default")
    parser.add_argument("-k", metavar="EXPRESSION", help="tests to run, as pytest's")
    parser.add_argument(
        "--judge", action="store_true", help="judge the CSV anew by the table of differences, run nothing"
    )
    options = parser.parse_args(arguments)
    is_whole = not options.files and not options.k
    if options.judge:
        rows = [row | {"outcome": row["outcome"].replace("difference", "failed")} for row in report.read_csv(RESULTS)]
    else:
        replace()
        rows = run(options.files or FILES, ["-k", options.k] if options.k else [])
    differences = read_differences()
    rows = judge(rows, differences)
    unexplained = [row for row in rows if row["outcome"] == "failed"]
    print(report.format_table(unexplained, ["test", "error"]))
    by_file = Counter((row["test"].split("::")[0], row["outcome"]) for row in rows)
    print(*(f"{count:5} {outcome:11} {file}" for (file, outcome), count in sorted(by_file.items())), sep="\n")
    print(dict(Counter(row["outcome"] for row in rows)))
    if is_whole:
        report.write_csv(RESULTS, sorted(rows, key=lambda row: row["test"]))
        write_page(rows, differences)
    return len(unexplained)


if __name__ == "__main__":
    sys.exit(min(main(), 100))
