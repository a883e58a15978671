"""The command line of experiments: cells are measured once, again where a busy process was beside, origins kept."""

import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from measuring import command, process, provenance, report
from measuring.experiment import Experiment, joined

OPTIONS = {"sets": None, "only": [], "quick": False, "again": False, "redraw": False, "tries": 3}


def _measure(name, run, measured):
    for machine in ("x", "y"):
        if run.wants(machine, set=name, machine=machine):
            measured.append((name, machine))
            yield [{"set": name, "machine": machine, "part": part, "seconds": len(measured)} for part in (1, 2)]


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """An experiment whose cells take no time, on a machine whose load is given; and what was measured."""
    loads: list[float] = []
    measured: list[tuple[str, str]] = []
    experiment = Experiment("toy", ("a", "b"), ("set", "machine"), partial(_measure, measured=measured), parts=True)

    def here(function, file, name, cell, run, timeout):
        for part in experiment.measure(*cell, command.Run(**run)):
            about = {"commit": "abc", "machine_card": "m", "others": loads.pop(0) if loads else 0.0}
            yield [row | about for row in part]

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(process, "stream", here)
    monkeypatch.setattr(provenance, "_holds", lambda name, file: name == "abc")
    monkeypatch.setattr(provenance, "machine", lambda: "m")
    return experiment, loads, measured


def run(experiment, settings=None, deadline=None, **options):
    return command.run_all([(experiment, settings or {})], SimpleNamespace(**OPTIONS | options), deadline)


def test_cells_beside_a_busy_process_are_measured_again(toy):
    experiment, loads, measured = toy
    loads += [0.0, 0.9, 0.1, 0.0]
    run(experiment)
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("a", "y")]
    rows = report.results("toy")
    assert len(rows) == 8
    assert all(row["others"] <= 0.2 and row["commit"] == "abc" for row in rows)


def test_a_run_goes_on_where_it_was_and_measures_stale_cells(toy, capsys):
    experiment, _, measured = toy
    run(experiment, deadline=0.0)  # which is past
    assert measured == []
    run(experiment, sets=["a"])
    run(experiment)
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    command.print_list([experiment])
    assert "toy: 0 of 8 rows are stale, 0 of 2 cells missing, 0 of 120 s" in capsys.readouterr().out
    rows = [row | ({"commit": "old"} if row["machine"] == "x" else {}) for row in report.results("toy")]
    report.write_csv(report.results_path("toy"), rows[:4])
    command.print_list([experiment])
    assert "toy: 2 of 4 rows are stale, 1 of 2 cells missing, 120 of 120 s; b" in capsys.readouterr().out
    run(experiment)
    assert measured[4:] == [("a", "x"), ("b", "x"), ("b", "y")]
    run(experiment, again=True, only=["y"], sets=["b"])
    assert measured[7:] == [("b", "y")]


def test_a_whole_cell_leaves_no_row_of_earlier_runs_behind(toy):
    experiment, _, _ = toy
    gone = {"set": "a", "machine": "gone", "commit": "abc", "machine_card": "m"}
    report.write_csv(report.results_path("toy"), [gone, gone | {"set": "c"}])
    run(experiment._replace(parts=False), again=True, sets=["a"])
    found = dict.fromkeys((row["set"], row["machine"]) for row in report.results("toy"))
    assert list(found) == [("c", "gone"), ("a", "x"), ("a", "y")]


def test_a_trial_writes_nothing(toy):
    experiment, _, measured = toy
    assert run(experiment, quick=True)
    assert measured == [("a", "x"), ("a", "y")]
    assert not report.results("toy")


def test_cells_have_processes_of_their_own():
    """Rows come one by one, with commit, machine, threads and load; what a cell prints is no row."""
    found = command.find_experiments("benchmarks")["one_row"]
    (rows,) = command._measured_apart(found, ("OCASClassifier",), command.Run())
    assert rows[0]["predict"] > rows[0]["as_function"] > 0
    assert {"commit", "date", "machine_card", "threads", "others"} < rows[0].keys()
    assert list(process.stream(_chatter, 2, timeout=60.0)) == [0, 1]


def _chatter(n):
    for k in range(n):
        print("not an item")
        yield k


def test_a_cell_that_fails_or_hangs_is_named(capsys):
    with pytest.raises(RuntimeError, match="too few"):
        list(process.stream(_fail, 1, timeout=60.0))
    with pytest.raises(RuntimeError, match="ended with -9"):
        list(process.stream(_hang, 1, timeout=1.0))
    with pytest.raises(RuntimeError, match="ended with -9"):  # within a line, which is no row
        assert list(process.stream(_stammer, 1, timeout=3.0)) == ["whole"]


def _fail(n):
    yield from ()
    raise ValueError("too few")


def _hang(n):
    while True:
        pass
    yield n


def _stammer(n):
    yield "whole"
    pipe = next(fd for fd in range(3, 99) if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe"))
    os.write(pipe, b'"half')
    yield from _hang(n)


def _ends_badly(name, run):
    yield {"set": name, "part": 1}
    if name == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hangs":
        subprocess.Popen(["sleep", "4711"])
        list(_hang(1))
    yield {"set": name, "part": 2}


BAD = Experiment("p/bad", ("crashes", "hangs", "works"), ("set", "part"), _ends_badly, seconds=0.8, parts=True)


def test_a_run_goes_on_after_cells_that_crash_or_hang(monkeypatch, tmp_path, capsys):
    """Their rows of before stay, a row says how they ended, nothing that they started is left, none is tried twice."""
    monkeypatch.setattr(report, "EVIDENCE", tmp_path)
    monkeypatch.setattr(command, "is_quiet", lambda row: True)
    monkeypatch.setattr(provenance, "is_quiet", lambda row: True)
    broken = BAD._replace(
        tables=lambda rows: {"sums": [{"all": sum(row["part"] for row in rows)}]}, draw=lambda rows: 1 / 0
    )
    assert not run(broken)
    rows = report.read_csv(tmp_path / "p/bad.csv")
    assert [(row["set"], row.get("part")) for row in rows if "ended" not in row] == [
        *(("crashes", 1), ("hangs", 1), ("works", 1), ("works", 2))
    ]
    assert [row["ended"].partition(":")[0] for row in rows if "ended" in row] == ["crashed", "more than 4 s"]
    assert report.read_csv(tmp_path / "p/sums.csv")[0]["all"] == 5
    assert "bad crashes: 2 rows in" in capsys.readouterr().out
    assert not any(b"4711" in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    run(BAD)
    assert "bad crashes" not in capsys.readouterr().out
    command.print_list([BAD])
    assert "ended: set=hangs" in capsys.readouterr().out


def test_a_cell_that_the_end_of_the_run_cuts_off_has_not_failed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(report, "EVIDENCE", tmp_path)
    assert run(BAD._replace(seconds=60.0, cells=("hangs", "works")), deadline=time.monotonic() + 3.0)
    assert [row["set"] for row in report.read_csv(tmp_path / "p/bad.csv")] == ["hangs"]
    assert "the end of the run cuts off hangs" in capsys.readouterr().out


def test_names_and_settings_of_the_command_line(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        command, "run_all", lambda pairs, *_: asked.extend((e.results, given) for e, given in pairs) or 1
    )
    command.main("benchmarks", ["small_data", "--repetitions", "0.5"])
    assert asked == [("small_data", {"repetitions": 0.5})]
    known = command.find_experiments("evidence")
    command.main("evidence", [], first=["bsgd/tables"])
    names = [name for name, _ in asked[1:]]
    assert names[0] == "bsgd/tables"
    seconds = [sum(map(known[name].budget, command._cells(known[name]))) for name in names[1:]]
    assert len(seconds) == len(known) - 1
    assert seconds == sorted(seconds)
    with pytest.raises(SystemExit):
        command.main("benchmarks", ["table9"])
    assert "no experiment 'table9'" in capsys.readouterr().err


def test_rows_of_a_table_have_the_origins_of_their_set():
    rows = [{"set": name, "commit": commit} for name, commit in (("a", "2"), ("a", "1"), ("b", "3"))]
    assert provenance.origins({"set": "a"}, rows)["commit"] == "1, 2"
    assert provenance.origins({"mean": 1.0}, rows)["commit"] == "1, 2, 3"


def test_rows_about_the_same_are_replaced_together():
    old = [{"set": "a", "C": 1, "effort": 5}, {"set": "a", "C": 1, "effort": 7}, {"set": "b", "C": 1, "effort": 5}]
    new = [{"set": "a", "C": 1.0, "effort": 6}]
    assert joined(old, new, ("set", "C")) == [old[2], *new]
