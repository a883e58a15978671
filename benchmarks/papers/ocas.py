"""The tables and figures of the OCAS paper, measured again against today's solvers.

::

    python benchmarks/papers/ocas.py figure2 --sets a9a ijcnn1 --C 1
    python benchmarks/papers/ocas.py figure2 --redraw
    python benchmarks/papers/ocas.py table4

Source: Franc, Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008. Every experiment
writes a CSV below a machine card and a plot into benchmarks/results/papers_ocas; rows measured again replace the old
ones, so that an experiment can be run in pieces. The machines have no intercept, as in the paper. The column `others`
of every CSV is the number of cores that other processes kept busy meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import _report
from benchmarks.papers._experiment import Experiment, Row
from benchmarks.papers._load import Others
from benchmarks.papers._ocas import memory, reach, scaling, selection

RESULTS = _report.RESULTS / "papers_ocas"
EXPERIMENTS: dict[str, Experiment] = {
    "table2": selection.TABLE2,
    "figure2": reach.FIGURE2,
    "table3": selection.TABLE3,
    "figure3": scaling.FIGURE3,
    "table4": scaling.TABLE4,
    "bandwidth": scaling.BANDWIDTH,
    "memory": memory.MEMORY,
}


def _run(name: str, options: argparse.Namespace) -> None:
    experiment = EXPERIMENTS[name]
    path = RESULTS / f"{name}.csv"
    card = _report.machine_card()
    old = [] if options.no_files else _report.read_csv(path)
    others = Others()
    rows: list[Row] = []
    for set_name in () if options.redraw else options.sets or experiment.sets:
        for row in experiment.measure(set_name, options):
            rows.append(row | {"others": others.look()})
            if row.get("kind") != "course":
                print(
                    _report.format_table([rows[-1]], [*experiment.columns, "others"]).splitlines()[-1],
                    file=sys.stderr,
                    flush=True,
                )
                if not options.no_files:  # after every row: an interrupted run keeps what it has
                    _report.write_csv(path, _joined(old, rows, experiment.keys), card)
    everything = _joined(old, rows, experiment.keys)
    for title, table in experiment.tables(everything).items():
        print(f"\n{title}\n{_report.format_table(table, list(dict.fromkeys(key for row in table for key in row)))}")
        if not options.no_files:
            _report.write_csv(RESULTS / f"{title}.csv", table, card)
    if not options.no_files:
        _report.plot_panels(path.with_suffix(".png"), experiment.panels(everything))


def _joined(old: Sequence[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The new rows, and the old ones about something else."""

    def about(row: Row) -> tuple[str, ...]:
        return tuple(f"{row[key]:g}" if isinstance(row[key], float | int) else row[key] for key in keys)

    measured = {about(row) for row in new}
    return [row for row in old if about(row) not in measured] + list(new)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(dest="experiment", required=True)
    for name, experiment in EXPERIMENTS.items():
        add = commands.add_parser(name, help=experiment.summary).add_argument
        add("--sets", nargs="+", metavar="SET", help=f"default: {' '.join(experiment.sets)}")
        add("--C", nargs="+", type=float, help="default: the experiment's own")
        add("--rows", type=int, help="train on that many rows only")
        add("--limit", type=float, default=30.0, help="seconds after which a single fit is given up")
        add("--reference", type=float, default=60.0, help="seconds at most for the fit that finds F*")
        add("--factor", type=float, default=10.0, help="a rival is given up where it takes so many times our seconds")
        add("--only", nargs="+", metavar="TEXT", help="only competitors with one of these in their name")
        add("--redraw", action="store_true", help="measure nothing, draw what the CSV has")
        add("--no-files", action="store_true", help="print the table, write nothing")
    commands.add_parser("child").add_argument("rows", type=int)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment that the command line asks for."""
    options = _parse(arguments)
    if options.experiment == "child":
        print(json.dumps(memory.child(options.rows)))
        return
    _run(options.experiment, options)


if __name__ == "__main__":
    main()
