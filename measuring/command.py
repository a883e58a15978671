"""The one way to run experiments: ``python benchmarks/all.py`` and ``python evidence/all.py``.

::

    python evidence/all.py                                  # all that is stale or missing, then the derived tables
    python evidence/all.py --list                           # what that is, and the seconds it is given
    python evidence/all.py dc_svm/table2 --sets ijcnn1 --only early --repeats 3
    python benchmarks/all.py readme --minutes 30            # what the README shows; no cell begins later
    python benchmarks/all.py small_data --quick             # a trial: prints rows, writes nothing
    python benchmarks/all.py kernel_svm --help              # what it measures, and its settings

Experiments are the `Experiment`s in the modules of the folder. Each cell has a process of its own. A cell is done when
all its rows are of this machine, of a commit since which no code of src that the experiment imports has changed (of
C++: no code at all), and were measured with at most 0.2 of a core
taken by others: so an interrupted run goes on where it was, `--again` and other settings measure anew. Its rows replace
those of earlier runs with the same keys, after each cell, and each has its commit, date, machine, threads, and in
`others` the cores that other processes kept busy meanwhile: with more than 0.2, it is measured again, twice at most,
after all others. A cell that crashes, or takes five times its seconds, is a row with the column `ended`, and the run
goes on; it is tried again with `--again`, or when that code has changed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from measuring import plots, process, report
from measuring.experiment import Experiment, Row, Run, is_of, joined
from measuring.imports import ROOT
from measuring.load import Others, is_quiet
from measuring.provenance import is_current, origin, origins

_PATIENCE = 5.0  # seconds after which a cell is ended / its budget
_OOM_SCORE = Path("/proc/self/oom_score_adj")


def main(
    folder: str,
    arguments: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
    first: Sequence[str] = (),
) -> None:
    """Run or list the experiments of a folder of this repository that the command line names, alone or as a group.

    Without names all are run: those of `first` first, and among equals those of fewer seconds.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="EXPERIMENT")
    add("--sets", nargs="+", metavar="SET", help="first values of the cells")
    add("--only", nargs="+", default=[], metavar="TEXT", help="only competitors with one of these in their name")
    add("--list", action="store_true", help="measure nothing: say what is stale or missing")
    add("--quick", action="store_true", help="a trial in seconds: print the rows, write nothing")
    add("--again", action="store_true", help="also what is measured already")
    add("--redraw", action="store_true", help="measure nothing, draw and derive tables from the rows there are")
    add("--minutes", type=float, help="no cell begins after so many")
    add("--tries", type=int, default=3, help="measurements of a cell beside a busy process; default: 3")
    options, rest = parser.parse_known_args([a for a in arguments if a not in ("-h", "--help")])
    options.names = [name for given in options.names for name in groups.get(given, [given])]
    known = find_experiments(folder, options.names)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no experiment {unknown[0]!r}: choose from {', '.join(find_experiments(folder))}")
    chosen = [known[name] for name in options.names or sorted(known, key=lambda name: _rank(known[name], first))]
    if {"-h", "--help"} & set(arguments):
        parser.print_help()
        for experiment in chosen if options.names else []:
            print(f"\n{experiment.results}: {_import(_file_of(experiment)).__doc__}")
            _settings_parser(experiment).print_help()
        return
    if options.list:
        print_list(chosen)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # by an exception, so that the cell's process ends too
    deadline = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    settings = [vars(_settings_parser(experiment).parse_args(rest)) for experiment in chosen]
    if not run_all(list(zip(chosen, settings, strict=True)), options, deadline):
        sys.exit(1)


def run_all(
    experiments: Sequence[tuple[Experiment, Mapping[str, Any]]], options: argparse.Namespace, deadline: float | None
) -> bool:
    """Measure the experiments, each with its settings, then again what was not quiet; whether no cell has failed."""
    rows: dict[str, list[Row]] = {experiment.results: [] for experiment, _ in experiments}
    has_failed = False
    for _ in range(0 if options.redraw else 1 if options.quick else options.tries):
        busy = [pair for pair in experiments if not (mine := rows[pair[0].results]) or not all(map(is_quiet, mine))]
        for experiment, settings in busy:
            has_failed |= run_experiment(experiment, options, settings, rows[experiment.results], deadline)
    for experiment, _ in experiments:
        if not options.quick:
            has_failed |= _derive(experiment)
    return not has_failed


def _rank(experiment: Experiment, first: Sequence[str]) -> tuple[bool, float]:
    return experiment.results not in first, sum(map(experiment.budget, _cells(experiment)))


def find_experiments(folder: str, names: Sequence[str] = ()) -> dict[str, Experiment]:
    """The experiments of the modules of a folder, or of those that have these names, by name.

    A module whose library is missing is left out, with a word.
    """
    found: dict[str, Experiment] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        is_asked = not names or any(f'"{name}"' in text for name in names)
        if "tests" not in path.relative_to(ROOT).parts and "Experiment(" in text and is_asked:
            try:
                module = _import(path)
            except ImportError as error:
                print(f"{path.relative_to(ROOT)}: left out, {error}", file=sys.stderr)
                continue
            found |= {e.results: e for e in vars(module).values() if isinstance(e, Experiment)}
    return found


def print_list(experiments: Sequence[Experiment]) -> None:
    """A line for each experiment with its stale rows, the cells without rows, and seconds; then the sums."""
    sums = [0, 0, 0.0, 0.0]
    for experiment in experiments:
        rows = report.read_csv(report.results_path(experiment.results))
        stale = [row for row in rows if not _is_current(experiment, row)]
        cells = _cells(experiment)
        missing = [cell for cell in cells if not _rows_of(experiment, cell, rows)]
        due = [cell for cell in cells if cell in missing or _rows_of(experiment, cell, stale)]
        seconds, whole = (sum(map(experiment.budget, some)) for some in (due, cells))
        for k, value in enumerate((len(stale), len(missing), seconds, whole)):
            sums[k] += value
        text = f"{experiment.results}: {len(stale)} of {len(rows)} rows are stale, "
        text += f"{len(missing)} of {len(cells)} cells missing, {seconds:.0f} of {whole:.0f} s"
        some = [_name(cell) for cell in missing[:5]]
        print(text + "".join(f"; {cell}" for cell in some) + f"; and {len(missing) - 5} others" * (len(missing) > 5))
        for row in rows:
            if "ended" in row:
                print("   ended:", _line(row))
    stale_rows, cells_missing, due_seconds, all_seconds = sums
    print(f"in all {stale_rows} rows stale, {cells_missing} cells missing; ", end="")
    print(f"{due_seconds / 60:.0f} of {all_seconds / 60:.0f} minutes on two idle cores")


def run_experiment(
    experiment: Experiment,
    options: argparse.Namespace,
    settings: Mapping[str, Any],
    rows: list[Row],
    deadline: float | None = None,
) -> bool:
    """Measure the cells of an experiment that are not done; add their rows to those of this run. Has one failed?"""
    path, has_failed, settings = report.results_path(experiment.results), False, dict(settings)
    has_other_settings = settings != dict(experiment.settings)
    again = options.again or options.quick or has_other_settings
    if options.quick:
        settings |= {key: value for key, value in experiment.quick.items() if key != "cells"}
    cells, old = _asked_cells(experiment, options), report.read_csv(path)
    if not options.sets:  # rows of cells that there are no more
        old = [row for row in old if any(is_of(row, experiment.named(cell)) for cell in _cells(experiment))]

    def is_done(row: Row) -> bool:
        return _is_current(experiment, row) and (row in rows or not again)

    for cell in cells:
        start, n_found, has_ended = time.monotonic(), 0, False
        if deadline is not None and start > deadline:
            print(f"{experiment.results}: no time for {_name(cell)} and the cells after it", flush=True)
            break
        mine = _rows_of(experiment, cell, joined(old, rows, experiment.keys))
        known = [] if options.quick else [_known(experiment, row, is_done(row)) for row in mine]
        run = Run(**settings, only=options.only, known=known)
        is_given_up = any("ended" in row and is_done(row) for row in mine)
        if is_given_up or not (experiment.parts or run.wants(**experiment.named(cell))):
            continue
        old, rows[:] = ([row for row in some if "ended" not in row or row not in mine] for some in (old, rows))
        try:
            for found in _measured_apart(experiment, cell, run, deadline):
                n_found += len(found)
                rows[:] = joined(rows, found, experiment.keys)
                has_ended |= any("ended" in row for row in found)
                for row in found:
                    print(experiment.results, _line(row), flush=True)
                if not options.quick:  # after every part: an interrupted run keeps what it has
                    report.write_csv(path, joined(old, rows, experiment.keys))
        except TimeoutError:
            print(f"{experiment.results}: the end of the run cuts off {_name(cell)}", flush=True)
            break
        has_failed |= has_ended
        if not (
            has_ended or options.only or options.quick or has_other_settings
        ):  # nor do rows stay that the cell has no more
            old = [row for row in old if row not in mine or (experiment.parts and _is_current(experiment, row))]
            report.write_csv(path, joined(old, rows, experiment.keys))
        seconds, budget = time.monotonic() - start, experiment.budget(cell)
        print(f"# {experiment.results} {_name(cell)}: {n_found} rows in {seconds:.0f} of {budget:.0f} s", flush=True)
    return has_failed


def _derive(experiment: Experiment) -> bool:
    """Write the tables and pictures that are made of all rows; whether that has failed."""
    path, rows = report.results_path(experiment.results), report.results(experiment.results)
    try:
        for title, table in experiment.tables(rows).items():
            report.write_csv(path.parent / f"{title}.csv", [row | origins(row, rows) for row in table])
        if experiment.panels is not None and rows:
            plots.plot_panels(path.with_suffix(".png"), experiment.panels(rows))
        if experiment.draw is not None and rows:
            experiment.draw(rows)
    except Exception:  # of rows that are not all there yet: the other experiments go on
        print(f"{experiment.results}: its tables and pictures are left as they were", file=sys.stderr)
        traceback.print_exc()
        return True
    return False


def _is_current(experiment: Experiment, row: Row) -> bool:
    return is_current(row, str(_file_of(experiment).relative_to(ROOT)))


def _measured_apart(
    experiment: Experiment, cell: tuple[Any, ...], run: Run, deadline: float | None = None
) -> Iterator[list[Row]]:
    """The parts of a cell, measured in another process; a row that says why, where that is ended or crashes."""
    limit, start = _PATIENCE * experiment.budget(cell), time.monotonic()
    left = limit if deadline is None else deadline - start
    file = str(_file_of(experiment).relative_to(ROOT))
    try:
        yield from process.stream(measured, file, experiment.results, cell, vars(run), timeout=min(limit, left))
    except RuntimeError as error:
        print(f"{experiment.results}: {error}", file=sys.stderr)
        if left < limit and time.monotonic() - start > left:  # no fault of the cell's
            raise TimeoutError from error
        took_long = time.monotonic() - start > limit
        ended = f"more than {limit:g} s" if took_long else f"crashed: {str(error).splitlines()[-1]}"
        column = "outcome" if experiment.has_outcomes else "ended"
        yield [experiment.named(cell) | {column: ended, "threads": _threads()} | origin()]


def measured(file: str, name: str, cell: Sequence[Any], run: Mapping[str, Any]) -> Iterator[list[Row]]:
    """The parts of a cell of the experiment in a file, measured here: rows with their origins and the load."""
    experiments = vars(_import(ROOT / file)).values()
    experiment = next(e for e in experiments if isinstance(e, Experiment) and e.results == name)
    with suppress(OSError):
        _OOM_SCORE.write_text("1000")  # where memory ends, this process is ended and not the run
    others = Others()
    found = experiment.measure(*cell, Run(**run))
    for part in found if isinstance(found, Iterator) else [found]:
        about = {"others": others.look()} | origin()
        yield [{"threads": _threads()} | row | about for row in ([part] if isinstance(part, dict) else part)]
        others.look()


def _threads() -> int:
    from widemargin._threads import effective_n_jobs

    return effective_n_jobs(None)


def _cells(experiment: Experiment) -> list[tuple[Any, ...]]:
    return [cell if isinstance(cell, tuple) else (cell,) for cell in experiment.cells]


def _asked_cells(experiment: Experiment, options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The cells with these first values; a value of no cell is a cell of its own where cells have one value."""
    cells = _cells(experiment)
    if options.quick and not options.sets:
        return _cells(experiment._replace(cells=experiment.quick.get("cells", cells[:1])))
    if not options.sets:
        return cells
    asked = [cell for name in options.sets for cell in cells if str(cell[0]) == name]
    others = [(type(cells[0][0])(name),) for name in options.sets if len(cells[0]) == 1]
    others = [cell for cell in others if cell not in asked]
    return asked + others


def _rows_of(experiment: Experiment, cell: tuple[Any, ...], rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if is_of(row, experiment.named(cell))]


def _known(experiment: Experiment, row: Row, is_done: bool) -> Row:
    return {key: row[key] for key in experiment.keys if key in row} | {"done": is_done}


def _name(cell: tuple[Any, ...]) -> str:
    return " ".join(map(str, cell))


def _line(row: Row) -> str:
    hidden = ("commit", "date", "machine_card", "threads")
    return " ".join(f"{key}={report.short(value)}" for key, value in row.items() if key not in hidden)


def _file_of(experiment: Experiment) -> Path:
    function = getattr(experiment.measure, "func", experiment.measure)
    return Path(function.__code__.co_filename).resolve()


def _import(path: Path) -> Any:
    return import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def _settings_parser(experiment: Experiment) -> argparse.ArgumentParser:
    """Of the settings: a list where they have several values, numbers where these are numbers."""
    parser = argparse.ArgumentParser(experiment.results, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, value in experiment.settings.items():
        flag, several = f"--{name.replace('_', '-')}", isinstance(value, tuple)
        if isinstance(value, bool):
            parser.add_argument(flag, action="store_true", help=" ")
            continue
        example = (value[0] if value else 0.0) if several else 0 if value is None else value
        parser.add_argument(flag, type=type(example), nargs="+" if several else None, default=value, help=" ")
    return parser
