"""The command line of a paper's benchmark: an experiment a subcommand, rows into CSV files below a machine card, plots.

A cell (the rows with equal keys) that is measured again replaces its old rows, so that an experiment can be run in
pieces. Every row has the commit, date and machine that it was measured on, and in `others` the number of cores that
other processes kept busy meanwhile: with more than a fifth, its cell is measured again, twice at most.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring import plots, report
from measuring.experiment import Cells, Experiment, Row, joined
from measuring.load import Others, is_quiet
from measuring.provenance import is_current, origin, origins


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
    draw : callable, optional
        Draws further pictures from the CSV files.
    """

    summary: str
    results: Path
    experiments: Mapping[str, Experiment]
    arguments: Mapping[str, Mapping[str, Any]] = {}
    draw: Callable[[], None] | None = None


def run_command(paper: Paper, arguments: Sequence[str] | None = None, *, deadline: float | None = None) -> list[Row]:
    """Run the experiment of the command line, until `deadline` on `time.monotonic`; return the rows measured."""
    options = _parse(paper, arguments)
    return _run(paper, options, deadline)


def stale_rows(paper: Paper, name: str) -> list[Row]:
    """The rows of an experiment's CSV that another commit, another machine or a busy one measured."""
    return [row for row in report.read_csv(paper.results / f"{name}.csv") if not is_current(row)]


def _run(paper: Paper, options: argparse.Namespace, deadline: float | None) -> list[Row]:
    experiment, path = paper.experiments[options.experiment], paper.results / f"{options.experiment}.csv"
    columns, writes = [*experiment.columns, "others"], not options.no_files
    old = report.read_csv(path) if writes or options.redraw else []
    rows: list[Row] = []
    is_done = is_current if options.resume else (lambda row: is_quiet(row) and row in rows)

    def keep(row: Row) -> None:
        if _is_shown(row):
            print(report.format_table([row], columns).splitlines()[-1], file=sys.stderr, flush=True)
        if writes:  # after every cell: an interrupted run keeps what it has
            report.write_csv(path, joined(old, rows, experiment.keys))

    for _ in range(0 if options.redraw else options.tries):
        options.cells = Cells(joined(old, rows, experiment.keys), is_done)
        _measure(experiment, options, rows, keep, deadline)
        if all(map(is_quiet, rows)) or _is_past(deadline):
            break
    known = joined(old, rows, experiment.keys)
    print(report.format_table([row for row in rows or known if _is_shown(row)], columns))
    for title, table in experiment.tables(known).items():
        table = [row | origins(row, known) for row in table]
        print(f"\n{title}\n{report.format_table(table, list(dict.fromkeys(key for row in table for key in row)))}")
        if writes:
            report.write_csv(paper.results / f"{title}.csv", table)
    if writes and known:
        plots.plot_panels(path.with_suffix(".png"), experiment.panels(known))
        if paper.draw is not None:
            paper.draw()
    return rows


def _measure(
    experiment: Experiment,
    options: argparse.Namespace,
    rows: list[Row],
    keep: Callable[[Row], None],
    deadline: float | None,
) -> None:
    """One pass over the wanted cells: their rows replace those in `rows`."""
    others, about = Others(), origin()
    new: list[Row] = []
    for set_name in options.sets or experiment.sets:
        for found in experiment.measure(set_name, options):
            load = others.look()
            cell = [row | about | {"others": load} for row in ([found] if isinstance(found, dict) else found)]
            new += cell
            rows[:] = joined(rows, new, experiment.keys)
            for row in cell:
                keep(row)
            if _is_past(deadline):
                return


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


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
        add("--resume", action="store_true", help="leave out the cells measured with this library on this machine")
        add("--tries", type=int, default=3, help="measurements of a cell beside a busy process; default: 3")
        add("--redraw", action="store_true", help="measure nothing, draw what the CSV has")
        add("--no-files", action="store_true", help="print the table, write nothing")
        for flag, settings in {**paper.arguments, **experiment.arguments}.items():
            add(flag, **settings)
    return parser.parse_args(arguments)
