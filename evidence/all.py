"""Measure the tables and figures of the four papers: those not yet measured with this library on this machine.

::

    python evidence/all.py                                       # everything; then the pages
    python evidence/all.py bsgd --cells tables:ijcnn1 --limit 300
    python evidence/all.py ocas dc_svm --list                    # what is stale
    python evidence/all.py dc_svm --cells table2 -- --only early --repeats 3

A cell is done when all its rows are of this machine, of a commit whose src is that of today, and were measured with at
most 0.2 of a core taken by others; so an interrupted run goes on where it was. `--limit` is seconds for all: no cell
begins later. What follows ``--`` are options of the experiments.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import report
from measuring.command import Paper, run_command, stale_rows

PAPERS = ("bsgd", "ocas", "dc_pred", "dc_svm")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments of the command line."""
    options, more = _parse(sys.argv[1:] if arguments is None else list(arguments))
    chosen = list(_chosen(options.papers or PAPERS, options.cells))
    deadline = None if options.limit is None else time.monotonic() + options.limit
    for paper, name, sets in chosen:
        print(f"{paper.results.name} {name}", *sets, end=": ", flush=True)
        if options.list:
            _print_stale(paper, name, sets)
        elif deadline is not None and time.monotonic() > deadline:
            print("not begun")
        else:
            print(flush=True)
            of_sets = ["--sets", *sets] if sets else []
            run_command(paper, [name, *of_sets, *([] if options.again else ["--resume"]), *more], deadline=deadline)


def _chosen(papers: Sequence[str], cells: Sequence[str]) -> Iterator[tuple[Paper, str, list[str]]]:
    """The experiments asked for, in the order of `cells`, each with its sets; without any, all experiments."""
    known = {name: import_module(f"evidence.{name}").PAPER for name in papers}
    if not cells:
        yield from ((paper, name, []) for paper in known.values() for name in paper.experiments)
    for cell in cells:
        name, _, sets = cell.partition(":")
        found = [paper for paper in known.values() if name in paper.experiments]
        if not found:
            raise SystemExit(f"--cells: {', '.join(papers)} have no experiment {name!r}")
        for paper in found:
            yield paper, name, sets.split(",") if sets else []


def _print_stale(paper: Paper, name: str, sets: Sequence[str]) -> None:
    rows = [row for row in report.read_csv(paper.results / f"{name}.csv") if not sets or row["set"] in sets]
    stale = [row for row in stale_rows(paper, name) if not sets or row["set"] in sets]
    print(f"{len(stale)} of {len(rows)} rows to be measured again")


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--cells", nargs="+", default=[], metavar="EXPERIMENT[:SET,SET]")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="no cell begins after so many seconds")
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    parser.add_argument("--list", action="store_true", help="measure nothing, count the rows to be measured again")
    return parser.parse_args(arguments[:split]), arguments[split + 1 :]


if __name__ == "__main__":
    main()
