"""What campaigns share: cases on the command line, a case in a process of its own, the results file."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from measuring import process, report

Rows = list[dict[str, Any]]


def run(
    doc: str | None,
    name: str,
    cases: Iterable[str],
    measure: Callable[..., Rows],
    *,
    limit: float = 0.0,
    repeats: int = 0,
) -> None:
    """Measure the cases, print their rows, and write them to results/NAME.csv, or to --output.

    With a limit in seconds every case has a process of its own, which is ended after that time. With a number of
    repeats, `measure` is given that too, or the one of the command line.
    """
    cases = list(cases)
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=cases, default=cases)
    parser.add_argument("--output", type=Path, default=report.RESULTS / f"{name}.csv")
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats)
    options = parser.parse_args()
    more = [options.repeats] if repeats else []
    rows: Rows = []
    for case in options.cases:
        new = measure_apart(measure, case, limit) if limit else measure(case, *more)
        print(report.format_table(new, list(new[0])), flush=True)
        rows += new
    report.write_csv(options.output, rows)


def measure_apart(measure: Callable[..., Rows], case: str, limit: float) -> Rows:
    """The rows of a case, measured in another process; one row that says so if that crashed or hung."""
    try:
        measured: Rows = process.run_apart(measure, case, timeout=limit)
    except subprocess.TimeoutExpired:
        return [{"case": case, "outcome": f"more than {limit:g} s"}]
    except RuntimeError as error:
        return [{"case": case, "outcome": f"crashed: {str(error).splitlines()[-1]}"}]
    return measured
