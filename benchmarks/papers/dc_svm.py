"""The tables and figures of the DC-SVM paper, measured again against today's solvers.

::

    python benchmarks/papers/dc_svm.py figure1 --sets covtype_20k
    python benchmarks/papers/dc_svm.py table2 --sets ijcnn1 --limit 300
    python benchmarks/papers/dc_svm.py scale --sets patches --sizes 10000 100000
    python benchmarks/papers/dc_svm.py figure3 --redraw

Source: Hsieh, Si, Dhillon, A Divide-and-Conquer Solver for Kernel Support Vector Machines, ICML 2014. Every experiment
writes a CSV below a machine card and a plot into benchmarks/results/papers_dc_svm; rows measured again replace the old
ones, so that an experiment can be run in pieces.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import _report
from benchmarks.papers._dc_svm import combine, compare, convergence, division, scale, sweep
from benchmarks.papers._experiment import Experiment, Row
from benchmarks.papers._load import Others

RESULTS = _report.RESULTS / "papers_dc_svm"
EXPERIMENTS: dict[str, Experiment] = {
    "figure1": division.FIGURE1,
    "figure2": division.FIGURE2,
    "table1": combine.TABLE1,
    "table2": compare.TABLE2,
    "figure3": convergence.FIGURE3,
    "figure4": convergence.FIGURE4,
    "sweep": sweep.SWEEP,
    "clustering": combine.SHARE,
    "scale": scale.SCALE,
    "early": compare.EARLY,
}


def _run(name: str, options: argparse.Namespace) -> None:
    experiment = EXPERIMENTS[name]
    columns = [*experiment.columns, "others"]
    path = RESULTS / f"{name}.csv"
    card, others = _report.machine_card(), Others()
    rows: list[Row] = []
    for set_name in () if options.redraw else options.sets or experiment.sets:
        for row in experiment.measure(set_name, options):
            rows.append(row | {"others": others.look()})
            print(_report.format_table([rows[-1]], columns).splitlines()[-1], file=sys.stderr, flush=True)
            if not options.no_files:  # after every row: an interrupted run keeps what it has
                _report.merge_csv(path, rows[-1:], experiment.keys, card)
    known = rows if options.no_files else _report.read_csv(path)
    print(_report.format_table(rows or known, columns))
    for title, table in experiment.tables(known).items():
        print(f"\n{title}\n{_report.format_table(table, list(table[0]) if table else [])}")
        if not options.no_files:
            _report.write_csv(RESULTS / f"{title}.csv", table, card)
    if not options.no_files:
        _report.plot_panels(path.with_suffix(".png"), experiment.panels(known))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(dest="experiment", required=True)
    for name, experiment in EXPERIMENTS.items():
        add = commands.add_parser(name, help=experiment.summary).add_argument
        add("--sets", nargs="+", metavar="SET", help=f"default: {' '.join(experiment.sets)}")
        add("--rows", type=int, help="train on that many rows only")
        add("--tol", type=float, default=1e-3)
        add("--repeats", type=int, default=1, help="fits, of which the median counts")
        add("--limit", type=float, default=300.0, help="seconds after which a competitor is ended")
        add("--only", nargs="+", metavar="TEXT", help="only machines with one of these in their name")
        add("--redraw", action="store_true", help="measure nothing, draw what the CSV has")
        add("--no-files", action="store_true", help="print the table, write nothing")
        for flag, settings in experiment.arguments.items():
            add(flag, **settings)
    commands.add_parser("child").add_argument("asked")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment that the command line asks for."""
    options = _parse(arguments)
    if options.experiment == "child":
        from benchmarks.papers._dc_svm import machines

        print(json.dumps(machines.child(json.loads(options.asked))))
        return
    _run(options.experiment, options)


if __name__ == "__main__":
    main()
