"""The command line of a paper: cells are measured once, again where a busy process was beside, and origins kept."""

from importlib import import_module

import pytest


def _toy_paper(folder, loads, measured):
    """Two sets of two cells; `loads` are what the neighbours take at each measurement."""
    experiment, command = import_module("measuring.experiment"), import_module("measuring.command")

    def measure(name, options):
        for machine in ("x", "y"):
            if experiment.is_wanted(options, machine, set=name, machine=machine):
                measured.append((name, machine))
                yield [{"set": name, "machine": machine, "part": part, "seconds": len(measured)} for part in (1, 2)]

    toy = experiment.Experiment("toy", ("a", "b"), ("set", "machine"), ("set", "machine"), measure, lambda rows: [])
    return command.Paper("toy", folder, {"toy": toy})


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A paper whose cells take no time, on a machine whose load is given."""
    command, provenance = import_module("measuring.command"), import_module("measuring.provenance")
    loads: list[float] = []
    monkeypatch.setattr(
        command, "Others", lambda: type("", (), {"look": lambda self: loads.pop(0) if loads else 0.0})()
    )
    monkeypatch.setattr(command.plots, "plot_panels", lambda path, panels: None)
    monkeypatch.setattr(provenance, "_holds", lambda name: name == "abc")
    monkeypatch.setattr(provenance, "commit", lambda: "abc")
    measured: list[tuple[str, str]] = []
    paper = _toy_paper(tmp_path, loads, measured)
    return command, paper, loads, measured


def test_cells_beside_a_busy_process_are_measured_again(toy, tmp_path):
    command, paper, loads, measured = toy
    loads += [0.0, 0.9, 0.1, 0.0]
    command.run_command(paper, ["toy"])
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("a", "y")]
    rows = import_module("measuring.report").read_csv(tmp_path / "toy.csv")
    assert len(rows) == 8
    assert all(row["others"] <= 0.2 and row["commit"] == "abc" for row in rows)


def test_an_interrupted_run_goes_on_where_it_was(toy, tmp_path):
    command, paper, _, measured = toy
    command.run_command(paper, ["toy", "--resume"], deadline=0.0)  # which is past: one cell, and no more
    assert measured == [("a", "x")]
    command.run_command(paper, ["toy", "--resume"])
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    report, path = import_module("measuring.report"), tmp_path / "toy.csv"
    rows = [row | ({"commit": "old"} if row["machine"] == "x" else {}) for row in report.read_csv(path)]
    report.write_csv(path, rows)
    assert len(command.stale_rows(paper, "toy")) == 4
    command.run_command(paper, ["toy", "--resume"])
    assert measured[4:] == [("a", "x"), ("b", "x")]


def test_all_runs_the_cells_that_are_asked_for(monkeypatch, capsys):
    script, asked = import_module("evidence.all"), []
    monkeypatch.setattr(script, "run_command", lambda paper, arguments, deadline: asked.append(arguments))
    script.main(["bsgd", "--cells", "tables:ijcnn1,a9a", "speed", "--limit", "60", "--", "--seeds", "1"])
    assert asked == [
        ["tables", "--sets", "ijcnn1", "a9a", "--resume", "--seeds", "1"],
        ["speed", "--resume", "--seeds", "1"],
    ]
    with pytest.raises(SystemExit, match="no experiment 'table9'"):
        script.main(["ocas", "--cells", "table9"])
    capsys.readouterr()
    script.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ocas large: ") for line in lines)
    assert len(lines) == len({line.partition(":")[0] for line in lines})  # each experiment once


def test_rows_of_a_table_have_the_origins_of_their_set():
    origins = import_module("measuring.provenance").origins
    rows = [{"set": name, "commit": commit} for name, commit in (("a", "2"), ("a", "1"), ("b", "3"))]
    assert origins({"set": "a"}, rows)["commit"] == "1, 2"
    assert origins({"mean": 1.0}, rows)["commit"] == "1, 2, 3"
