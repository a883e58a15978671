"""The command line of a paper's benchmark: an experiment a subcommand, rows into CSV files below a machine card, plots.

Rows measured again replace those with equal keys, so that an experiment can be run in pieces. The column `others`
of every CSV is the number of cores that other processes kept busy meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import _report
from benchmarks.papers._experiment import Experiment, Row
from benchmarks.papers._load import Others


class Paper(NamedTuple):
    """A paper's experiments.

    Attributes
    ----------
    summary : str
        For ``--help``.
    results : Path
        The folder that they write to.
    experiments : mapping
        By name.
    arguments : mapping
        Options of all of them, beside those that every paper has: flags to the arguments of `add_argument`.
    child : callable, optional
        The task of a child process: from its one argument to the row that it prints.
    """

    summary: str
    results: Path
    experiments: Mapping[str, Experiment]
    arguments: Mapping[str, Mapping[str, Any]]
    child: Callable[[str], Row] | None = None


def run_command(paper: Paper, arguments: Sequence[str] | None = None) -> None:
    """Run the experiment of the command line."""
    options = _parse(paper, arguments)
    if options.experiment == "child":
        assert paper.child is not None
        print(json.dumps(paper.child(options.asked)))
        return
    _run(paper, options)


def joined(old: Sequence[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The new rows, and the old ones whose values of `keys` no new row has."""

    def about(row: Row) -> tuple[str, ...]:
        values = [row.get(key, "") for key in keys]
        return tuple(f"{value:.9g}" if isinstance(value, float | int) else str(value) for value in values)

    measured = {about(row) for row in new}
    return [row for row in old if about(row) not in measured] + list(new)


def _run(paper: Paper, options: argparse.Namespace) -> None:
    experiment, path = paper.experiments[options.experiment], paper.results / f"{options.experiment}.csv"
    columns, writes = [*experiment.columns, "others"], not options.no_files
    card, others = _report.machine_card(), Others()
    old = _report.read_csv(path) if writes or options.redraw else []
    rows: list[Row] = []
    for set_name in () if options.redraw else options.sets or experiment.sets:
        for row in experiment.measure(set_name, options):
            rows.append(row | {"others": others.look()})
            if _is_shown(row):
                print(_report.format_table(rows[-1:], columns).splitlines()[-1], file=sys.stderr, flush=True)
                if writes:  # after every row: an interrupted run keeps what it has
                    _report.write_csv(path, joined(old, rows, experiment.keys), card)
    known = joined(old, rows, experiment.keys)
    print(_report.format_table([row for row in rows or known if _is_shown(row)], columns))
    for title, table in experiment.tables(known).items():
        print(f"\n{title}\n{_report.format_table(table, list(dict.fromkeys(key for row in table for key in row)))}")
        if writes:
            _report.write_csv(paper.results / f"{title}.csv", table, card)
    if writes:
        if rows:
            _report.write_csv(path, known, card)
        _report.plot_panels(path.with_suffix(".png"), experiment.panels(known))


def _is_shown(row: Row) -> bool:
    """Whether a row is printed: those in the course of a fit are only plotted."""
    return row.get("kind") != "course"


def _parse(paper: Paper, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=paper.summary)
    commands = parser.add_subparsers(dest="experiment", required=True)
    for name, experiment in paper.experiments.items():
        add = commands.add_parser(name, help=experiment.summary).add_argument
        add("--sets", nargs="+", metavar="SET", help=f"default: {' '.join(experiment.sets)}")
        add("--rows", type=int, help="train on that many rows only")
        add("--only", nargs="+", metavar="TEXT", help="only competitors with one of these in their name")
        add("--redraw", action="store_true", help="measure nothing, draw what the CSV has")
        add("--no-files", action="store_true", help="print the table, write nothing")
        for flag, settings in {**paper.arguments, **experiment.arguments}.items():
            add(flag, **settings)
    if paper.child is not None:
        commands.add_parser("child").add_argument("asked")
    return parser.parse_args(arguments)
