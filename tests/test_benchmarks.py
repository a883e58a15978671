"""The scripts of benchmarks/ run, and what they compute themselves is right. The figures are theirs to measure."""

import itertools
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from widemargin.datasets import load_patches

EXPERIMENTS = {
    "figure1": ["--clusters", "4"],
    "figure2": ["--methods", "cascade"],
    "table1": ["--levels", "2", "--partitions", "kernel"],
    "clustering": [],
    "sweep": ["--log2-C", "1"],
    "early": ["--levels", "1", "--partitions", "input"],
    "table2": ["--only", "LTPU", "Cascade"],
    "figure3": ["--only", "Cascade", "LTPU", "greedy"],
    "levels": ["--turns", "2"],
    "subsamples": ["--only", "DC-SVM", "--repeats", "1"],
    "figure4": ["--only", "Cascade"],
    "scale": ["--sizes", "1000", "1500", "--only", "DC-SVM"],
}
NEEDS_INTELEX = ("sweep", "early")


def test_csv_rows_come_back_and_are_replaced_by_their_keys(benchmark_module, tmp_path):
    report, path = benchmark_module("_report"), tmp_path / "a.csv"
    old = [{"set": "a", "n": 1, "seconds": 2.5}, {"set": "b", "n": 1, "native": True}]
    report.write_csv(path, old, {"cores": "2"})
    assert report.read_csv(path) == old
    new = {"set": "a", "n": 1, "seconds": 3.5}
    assert benchmark_module("papers._command").joined(report.read_csv(path), [new], ["set", "n"]) == [old[1], new]
    assert report.read_csv(tmp_path / "none.csv") == []


def test_figures_in_pages_are_those_of_the_results(benchmark_module):
    pages = benchmark_module("pages")
    for path in pages.PAGES:
        assert path.read_text(encoding="utf-8") == pages.render(path), f"{path.name}: run python benchmarks/pages.py"


def test_every_marker_of_docs_stands_alone_and_has_a_table(benchmark_module):
    pages = benchmark_module("pages")
    for path in pages.PAGES[1:]:
        text = path.read_text(encoding="utf-8")
        assert "\n<!-- end -->" not in text, f"{path.name}: the site's build makes its tables"
        assert all(pages.table(name).startswith("| ") for name in re.findall("<!-- table (.*) -->", text))


def test_a_table_is_made_in_the_place_of_its_marker(benchmark_module, monkeypatch):
    pages = benchmark_module("pages")
    monkeypatch.setattr(pages, "table", lambda name: f"| {name} |\n")
    text = "A\n\n<!-- table a/b -->\n\nB <!-- value a x .0f -->1<!-- end -->\n\n<!-- table c -->\n:::\n"
    assert pages.with_tables(text) == text.replace("<!-- table a/b -->", "| a/b |").replace("<!-- table c -->", "| c |")


def test_pictures_are_those_of_the_results(benchmark_module, monkeypatch, tmp_path):
    """A picture is stale where a row of its results has changed."""
    pictures, report = benchmark_module("_pages.pictures"), benchmark_module("_report")
    assert not [name for name in pictures.PICTURES if pictures.is_stale(name)], "run python benchmarks/pages.py"
    (tmp_path / "scale.csv").write_text(report.RESULTS.joinpath("scale.csv").read_text() + "exact,9,1,1,1,1,1,90\n")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert pictures.is_stale("scale")


@pytest.mark.parametrize("name", ["covtype_accuracy", "fits", "linear", "compress"])
def test_pictures_are_drawn_again_as_they_are(benchmark_module, monkeypatch, tmp_path, name):
    pytest.importorskip("matplotlib")
    pictures = benchmark_module("_pages.pictures")
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    pictures.draw(name)
    assert not pictures.is_stale(name)


def test_seconds_by_rows_say_who_was_not_measured(benchmark_module):
    tables = benchmark_module("_pages.scale").TABLES
    rows = [{"machine": m, "rows": 9000, "seconds": s, "accuracy": 90.0} for m, s in (("exact", 2.0), ("early", 0.5))]
    assert tables["how_long"](rows).splitlines()[2] == "| 9,000 | 0.5 s | 90.0 % | 2 s | 90.0 % | - |"


def test_speed_table_divides_the_time_of_the_rival_by_ours(benchmark_module, monkeypatch, tmp_path):
    pages, report = benchmark_module("pages"), benchmark_module("_report")
    seconds = {"widemargin": 2.0, "widemargin, no level": 5.0, "widemargin, no intercept": 3.0}
    seconds |= {"sklearnex": 9.0, "sklearnex, CSR": 8.0}
    row = {"set": "a", "n": 1000, "n_features": 3, "limit_seconds": 0.5}
    rows = [row | {"competitor": c, "seconds": s, "predict_us": 10 * s} for c, s in seconds.items()]
    report.write_csv(tmp_path / "kernel_svm.csv", rows, {})
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- table kernel_svm -->\nan old line\n<!-- end -->\n", encoding="utf-8")
    line = pages.render(page).splitlines()[3]
    assert line == "| a | 1,000 × 3 | 2.00 s | 5.00 s | 3.00 s | 8.00 s | 4.00 | 4.00 | 4.00 |"


def test_early_table_has_the_fastest_that_loses_little_or_the_one_that_loses_least(
    benchmark_module, monkeypatch, tmp_path
):
    pages, report = benchmark_module("pages"), benchmark_module("_report")
    machines = {
        "widemargin": (2.0, 0.0),
        "sklearnex": (9.0, 0.0),
        "early, level 1": (0.5, 0.4),
        "early, level 2": (0.1, 0.9),
    }
    row = {"n": 1000, "n_features": 3, "n_clusters": 4, "solving_seconds": 0.25, "predict_us": 1.5}
    rows = []
    for name, extra in (("a", 0.0), ("b", 0.2)):
        for competitor, (seconds, lost) in machines.items():
            times = {"times_exact": 2.0 / seconds, "times_rival": 9.0 / seconds}
            rows.append(
                {"set": name, "competitor": competitor, "seconds": seconds, "points_lost": lost + extra} | times | row
            )
    rows += [{**rows[3], "competitor": "early, level 3", "seconds": 0.4, "points_lost": 0.5, "times_exact": 5.0}]
    report.write_csv(tmp_path / "early.csv", rows, {})
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- table early -->\n<!-- end -->\n", encoding="utf-8")
    lines = pages.render(page).splitlines()[3:]
    assert lines[0].startswith("| a | 1,000 × 3 | 2.00 s | 9.00 s | 0.40 s | 4 | 5.0 |")
    assert lines[1] == "| b | 1,000 × 3 | 2.00 s | 9.00 s | 0.50 s | 4 | 4.0 | 18.0 | 0.60 | 50% | 1.50 |"


def test_early_machines_of_many_rows_are_measured(benchmark_module):
    script = benchmark_module("early_millions")
    row = script.measure(3000)
    assert row["rows"] == 3000
    assert row["data"] == 20 * 3000 * (4 + 4) + 4 * 3001
    assert row["accuracy"] > 60
    line = benchmark_module("_pages.papers").TABLES["early_millions"]([row]).splitlines()[2]
    assert line.startswith(f"| 3,000 | {row['clusters']} | ")


def test_early_machines_are_measured_beside_exact_ones(benchmark_module, capsys):
    pytest.importorskip("sklearnex")
    benchmark_module("peers.early").main(["--sets", "patches:1500", "--levels", "1", "--repeats", "1", "--no-files"])
    exact, early, rival = capsys.readouterr().out.splitlines()[2:]
    assert "widemargin" in exact
    assert "early, level 1" in early
    assert "sklearnex" in rival


def test_early_machines_are_compared_with_the_faster_form_of_the_rival(benchmark_module):
    seconds = {"widemargin": 2.0, "early, level 1": 0.5, "sklearnex": 9.0, "sklearnex, dense": 8.0}
    rows = [{"competitor": name, "seconds": s, "accuracy": 0.9} for name, s in seconds.items()]
    benchmark_module("peers.early")._compare(rows)
    assert [row["times_rival"] for row in rows] == [4.0, 16.0, 8 / 9, 1.0]


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("intercept", [False, True])
def test_recomputed_certificate_agrees_with_libsvm(benchmark_module, kernel, intercept):
    X, labels = load_patches(300)
    y = (2 * labels - 1).astype(np.int8)
    model = SVC(C=2.0, kernel=kernel, gamma=0.5, coef0=0.0, tol=1e-8).fit(X, y)
    facts = benchmark_module("_recompute").certify(X, y, model, C=2.0, gamma=0.5, intercept=intercept, kernel=kernel)
    margins = y * (model.decision_function(X) - model.intercept_)
    alpha = np.abs(model.dual_coef_[0])
    assert facts.dual == pytest.approx(alpha.sum() - 0.5 * alpha @ margins[model.support_], rel=1e-6)
    assert (facts.gap < 1e-4 * facts.primal) == intercept  # without one, this machine is not the optimum


def test_cascade_keeps_support_vectors_alone(benchmark_module):
    X, y = load_patches(600)
    cascade = benchmark_module("papers._dc_svm.cascade").CascadeSVC(C=4.0, gamma=1.0, n_parts=8).fit(X, y)
    assert [parts for parts, _ in cascade.layers_] == [8, 4, 2, 1]
    found = [set(rows) for _, rows in cascade.layers_]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert cascade.score(X, y) > 0.9


@pytest.mark.parametrize("whiten", [True, False])
def test_kmeans_features_are_kernel_values(benchmark_module, whiten):
    X, _ = load_patches(200)
    approximate = benchmark_module("papers._dc_svm.approximate")
    Z = approximate.KMeansFeatures(n_components=400, gamma=1.0, whiten=whiten).fit_transform(X)
    squares = np.square(X[:, None] - X).sum(axis=2)
    if whiten:  # as many centres as rows: Nystroem's approximation is exact
        np.testing.assert_allclose(Z @ Z.T, np.exp(-squares), atol=0.05)
    else:
        assert Z.shape == (200, 200)
        np.testing.assert_allclose(np.sort(Z.max(axis=1)), 1.0, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_writes_rows_and_a_plot(benchmark_module, monkeypatch, tmp_path, name):
    pytest.importorskip("matplotlib")
    if name in NEEDS_INTELEX:
        pytest.importorskip("sklearnex")
    script = benchmark_module("papers.dc_svm")
    monkeypatch.setattr(script, "PAPER", script.PAPER._replace(results=tmp_path))
    size = [] if name == "scale" else ["--rows", "400"]
    script.main([name, "--sets", "patches", "--tries", "1", *size, *EXPERIMENTS[name]])
    rows = benchmark_module("_report").read_csv(tmp_path / f"{name}.csv")
    assert rows
    assert (tmp_path / f"{name}.png").stat().st_size > 1000
    for row in rows:
        assert row.get("bound", 1.0) >= row.get("difference", 0.0) >= 0.0
        assert 0 < row.get("recall", 0.5) <= 1
        assert 0.5 < row.get("accuracy", 0.9) <= 1 or name == "sweep"
        assert row.get("relative_error", 0.0) > -1e-6


def test_searches_are_compared_by_their_grids(benchmark_module):
    tuning = benchmark_module("peers.tuning")
    common = {"set": "a", "n": 100, "classes": 2}
    rows = [
        common | {"machine": "GridSearchCV, ours", "seconds": 8.0, "best": 1, "means": "0.5 0.9 0.8"},
        common | {"machine": "GridSearchCV, intelex", "seconds": 40.0, "best": 1, "means": "0.5 0.91 0.8"},
        common | {"machine": "exhaustive", "seconds": 4.0, "best": 1, "means": "0.51 0.9 0.8"},
        common | {"machine": "default", "seconds": 2.0, "best": 2, "means": "nan nan 0.8"},
    ]
    compared = tuning.compared(rows)
    done, mean = compared[:4], compared[-1]
    assert [row["ratio"] for row in done] == [5.0, 1.0, 10.0, 20.0]
    assert done[3]["regret"] == pytest.approx(10.0)
    assert done[2]["difference"] == pytest.approx(1.0)
    assert done[3]["difference"] == 0.0
    assert mean["machine"] == "default"
    assert mean["ratio"] == pytest.approx(20.0)


def test_a_search_is_measured_and_not_measured_again(benchmark_module, monkeypatch, tmp_path):
    tuning, path = benchmark_module("peers.tuning"), tmp_path / "tuning.csv"
    X, y = load_patches(400, 3, random_state=0)
    monkeypatch.setattr(tuning, "load", lambda name, n: (X, y))
    monkeypatch.setattr(tuning, "_CS", np.array([0.1, 10.0]))
    skip = ["--skip", *(name for name in tuning.machines() if name not in ("default", "exhaustive, cold"))]
    arguments = ["--sets", "letter", "--rows", "400", "--output", str(path), *skip]
    tuning.main(arguments)
    first = benchmark_module("_report").read_csv(path)
    assert {row["machine"] for row in first} == {"default", "exhaustive, cold"}
    assert first[0]["means"] == first[1]["means"]
    assert all(len(row["means"].split()) == 8 for row in first)  # 2 Cs, 4 gammas, one kernel
    tuning.main(arguments)
    assert benchmark_module("_report").read_csv(path) == first


@pytest.fixture
def boosting(benchmark_module, monkeypatch):
    """The script; its fits stay in this process and are made once, and its trees are single ones."""
    script = benchmark_module("peers.boosting")
    monkeypatch.setattr(
        script._process, "run_child", lambda command, environment: script.fit(**json.loads(command[-1]))
    )
    monkeypatch.setattr(script, "_fit_small", lambda make, kind: None)
    monkeypatch.setattr(script, "_seconds", lambda call, n: len(call().__dict__) / 10)
    monkeypatch.setattr(script, "HistGradientBoostingClassifier", lambda **_: DecisionTreeClassifier(random_state=0))
    return script


def test_searches_are_compared_with_trees(boosting, benchmark_module, monkeypatch, tmp_path, capsys):
    old = {"set": "wine", "machine": "kernel", "seconds": 1.0, "score": 0.9}
    report, path = benchmark_module("_report"), tmp_path / "boosting.csv"
    report.write_csv(path, [old], {})
    boosting.main(["--sets", "wine", "--max-time", "1", "--results", str(tmp_path)])
    *rows, trees, _ = report.read_csv(path)
    assert [row["machine"] for row in rows] == ["search", "trees", "trees, 500 × 63 leaves"]
    assert rows[0]["error_ratio"] == rows[0]["seconds_ratio"] == 1.0
    assert trees["error_ratio"] == pytest.approx(rows[1]["error_ratio"])
    assert trees["wins"] + trees["losses"] + trees["ties"] == 1
    assert "search beside trees: " in capsys.readouterr().out
    assert [
        machine.parameters.get("epsilons") is not None for machine in boosting._ablations("diabetes", 1).values()
    ] == [*(False, False, False, True, True, True)]


def test_errors_are_divided_and_none_counts_as_half_a_row(boosting):
    rows = [
        {"set": name, "machine": machine, "n_test": 100, "seconds": seconds, "error": error}
        for name, own, other in (("a", 0.0, 0.02), ("b", 0.04, 0.01), ("c", 0.0, 0.0))
        for machine, seconds, error in (("search", 6.0, own), ("trees", 2.0, other))
    ]
    mean = boosting.compared(rows)[-1]
    assert (mean["machine"], mean["wins"], mean["losses"], mean["ties"]) == ("trees", 1, 1, 1)
    assert mean["error_ratio"] == pytest.approx(1.0)
    assert mean["seconds_ratio"] == pytest.approx(3.0)


def test_covtype_leaves_accuracy_and_relevance_for_the_plots(boosting, benchmark_module, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 54)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(np.int8)
    monkeypatch.setattr(boosting, "load", lambda name: (X[:100], X[100:], y[:100], y[100:]))
    monkeypatch.setattr(boosting, "_BUDGETS", (60,))
    monkeypatch.setattr(boosting, "_COUNTS", (3, 6))
    boosting.main(["--covtype", "--results", str(tmp_path)])
    report = benchmark_module("_report")
    assert [row["machine"] for row in report.read_csv(tmp_path / "boosting_covtype.csv")] == [
        "search, 60 s",
        "trees, 3",
        "trees, 6",
    ]
    factors = report.read_csv(tmp_path / "boosting_relevance.csv")
    assert max(row["relevance"] for row in factors) == 1.0
    boosting.plot(tmp_path, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"covtype_relevance.png"}


def test_tables_of_trees_have_ratios_below(benchmark_module):
    tables = benchmark_module("_pages.boosting").TABLES
    rows = [
        {"set": "a", "machine": "search", "n": 1000, "n_features": 3, "seconds": 6.0, "error": 0.02},
        {"set": "a", "machine": "trees", "n": 1000, "n_features": 3, "seconds": 2.0, "error": 0.03, "error_ratio": 1.5},
        {"set": "geometric mean", "machine": "trees", "error_ratio": 1.5, "seconds_ratio": 3.0, "wins": 1, "losses": 0},
    ]
    lines = tables["boosting"](rows).splitlines()[2:]
    assert lines[0] == "| a | 1,000 × 3 | 0.0200 | 6 | 0.0300 | 2 |"
    assert lines[1].endswith("|  | **1** | **1** | **1.50** | **3** |")
    assert lines[2].endswith("|  |  |  | 1, 0 |  |")
    ablation = tables["boosting_ablation"](rows).splitlines()
    assert ablation[0] == "| set | error of the search | trees |"
    assert ablation[2:] == ["| a | 0.0200 | 1.50 |", "| geometric mean |  | 1.50 |"]
    assert tables["boosting_covtype"](rows[:1]).splitlines()[2] == "| search | 6 | 98.00% |"


def test_figures_in_sentences_come_from_the_results(benchmark_module):
    figure = benchmark_module("_pages.figures").figure
    rows = [{"set": "a", "machine": "our own", "s": 1.5}, {"set": "b", "machine": "our own", "s": 6.0}, {"set": "c"}]
    assert figure(rows, "s set=a .2f") == "1.50"
    assert figure(rows, 's machine="our own" gmean .0f') == "3"
    assert figure(rows, "s s>2 .1f") == "6.0"
    assert figure(rows, "s set!=a max .0f") == "6"
    for asked in ("s .2f", "s set=d .2f", "t set=a .2f"):
        with pytest.raises(ValueError, match="is about"):
            figure(rows, asked)


def test_a_page_that_differs_is_named(benchmark_module, monkeypatch, tmp_path, capsys):
    pages, report = benchmark_module("pages"), benchmark_module("_report")
    report.write_csv(tmp_path / "memory.csv", [{"extra_mb": 54.0}], {})
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(pages, "_ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("It took <!-- value memory extra_mb .0f -->53<!-- end --> MB.", encoding="utf-8")
    monkeypatch.setattr(pages, "PAGES", [page])
    assert pages.main(["--check"]) == 1
    assert "page.md differs" in capsys.readouterr().out
    assert pages.main([]) == 0
    assert "-->54<!--" in page.read_text(encoding="utf-8")
    assert pages.main(["--check"]) == 0


def _toy_paper(benchmark_module, folder, loads, measured):
    """Two sets of two cells; `loads` are what the neighbours take at each measurement."""
    experiment, command = benchmark_module("papers._experiment"), benchmark_module("papers._command")

    def measure(name, options):
        for machine in ("x", "y"):
            if experiment.is_wanted(options, machine, set=name, machine=machine):
                measured.append((name, machine))
                yield [{"set": name, "machine": machine, "part": part, "seconds": len(measured)} for part in (1, 2)]

    toy = experiment.Experiment("toy", ("a", "b"), ("set", "machine"), ("set", "machine"), measure, lambda rows: [])
    return command.Paper("toy", folder, {"toy": toy}, {})


@pytest.fixture
def toy(benchmark_module, monkeypatch, tmp_path):
    """A paper whose cells take no time, on a machine whose load is given."""
    command, provenance = benchmark_module("papers._command"), benchmark_module("papers._provenance")
    loads: list[float] = []
    monkeypatch.setattr(
        command, "Others", lambda: type("", (), {"look": lambda self: loads.pop(0) if loads else 0.0})()
    )
    monkeypatch.setattr(command._report, "plot_panels", lambda path, panels: None)
    monkeypatch.setattr(provenance, "_holds", lambda name: name == "abc")
    monkeypatch.setattr(provenance, "commit", lambda: "abc")
    measured: list[tuple[str, str]] = []
    paper = _toy_paper(benchmark_module, tmp_path, loads, measured)
    return command, paper, loads, measured


def test_cells_beside_a_busy_process_are_measured_again(toy, benchmark_module, tmp_path):
    command, paper, loads, measured = toy
    loads += [0.0, 0.9, 0.1, 0.0]
    command.run_command(paper, ["toy"])
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("a", "y")]
    rows = benchmark_module("_report").read_csv(tmp_path / "toy.csv")
    assert len(rows) == 8
    assert all(row["others"] <= 0.2 and row["commit"] == "abc" for row in rows)


def test_an_interrupted_run_goes_on_where_it_was(toy, benchmark_module, tmp_path):
    command, paper, _, measured = toy
    command.run_command(paper, ["toy", "--resume"], deadline=0.0)  # which is past: one cell, and no more
    assert measured == [("a", "x")]
    command.run_command(paper, ["toy", "--resume"])
    assert measured == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    report, path = benchmark_module("_report"), tmp_path / "toy.csv"
    rows = [row | ({"commit": "old"} if row["machine"] == "x" else {}) for row in report.read_csv(path)]
    report.write_csv(path, rows, {})
    assert len(command.stale_rows(paper, "toy")) == 4
    command.run_command(paper, ["toy", "--resume"])
    assert measured[4:] == [("a", "x"), ("b", "x")]


def test_all_runs_the_cells_that_are_asked_for(benchmark_module, monkeypatch, capsys):
    script, asked = benchmark_module("papers.all"), []
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
    assert any(line.startswith("papers_ocas memory: ") for line in lines)
    assert len(lines) == len({line.partition(":")[0] for line in lines})  # each experiment once


def test_evidence_names_every_results_file_once(benchmark_module):
    evidence, report = benchmark_module("_pages.evidence"), benchmark_module("_report")
    files = [item["results"] for item in evidence.items()]
    assert len(files) == len(set(files))
    for item in evidence.items():
        paper, _, name = item["results"].partition("/")
        script = benchmark_module(f"papers.{paper.removeprefix('papers_')}")
        assert name in script.PAPER.experiments
        rows = report.read_csv(report.RESULTS / f"{item['results']}.csv")
        assert all("commit" in row and "machine_card" in row for row in rows)


def test_every_claim_has_its_figures(benchmark_module):
    claims = benchmark_module("_pages.claims")
    for paper in ("dc_svm", "dc_pred", "ocas", "bsgd"):
        assert claims.table(paper).count("\n") == len(claims.items(paper)) + 2


def test_a_claim_holds_by_a_figure_of_the_results(benchmark_module, monkeypatch, tmp_path):
    claims, report = benchmark_module("_pages.claims"), benchmark_module("_report")
    report.write_csv(tmp_path / "a.csv", [{"set": "x", "times": 5.0, "commit": "abc"}], {})
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    item = {"claim": "fast", "where": "Table 1", "published": "9 times", "here": "{a times set=x .1f} times"}
    item |= {"figure": "a times set=x .9g", "least": 6, "remark": ", nearly"}
    assert claims._line(item) == ["fast (Table 1)", "9 times", "5.0 times", "**no**, nearly", "abc"]
    assert claims.verdict(item | {"least": 5}) == "yes"
    assert claims.verdict(item | {"least": 5, "most": 4}) == "no"
    assert claims.verdict({"here": "not run"}) == "not measured"


def test_new_rows_of_a_run_have_its_origin_and_old_ones_theirs(benchmark_module, tmp_path):
    report, path = benchmark_module("_report"), tmp_path / "a.csv"
    old = [{"set": "a", "seconds": 0.123456789012}, {"set": "b", "commit": "first"}]
    report.write_csv(path, old, {"cores": "2"})
    card = {"processor": "P", "cores": "2", "commit": "second", "date": "2026-11-26"}
    report.write_csv(path, [*old, {"set": "c", "seconds": None}], card)
    assert [row.get("commit") for row in report.read_csv(path)] == [None, "first", "second"]
    assert report.read_csv(path)[2]["machine_card"] == "P, 2 cores"


def test_rows_of_a_table_have_the_origins_of_their_set(benchmark_module):
    origins = benchmark_module("papers._provenance").origins
    rows = [{"set": name, "commit": commit} for name, commit in (("a", "2"), ("a", "1"), ("b", "3"))]
    assert origins({"set": "a"}, rows)["commit"] == "1, 2"
    assert origins({"mean": 1.0}, rows)["commit"] == "1, 2, 3"


def test_the_full_square_is_ours_mirrored(benchmark_module):
    tables = benchmark_module("papers._bsgd.tables")
    m, kappa = np.array([0.3, 0.7, 0.9]), np.array([0.4, 0.4, 0.6])
    h, wd = tables._merge(m, kappa)
    assert h[0] == pytest.approx(1 - h[1])
    assert wd[0] == pytest.approx(wd[1])
    s = m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2)
    np.testing.assert_allclose(wd, m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2)
    assert tables._interpolate(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0.5]), np.array([0.25])) == 1.25


def test_what_is_measured_is_no_longer_missing(benchmark_module):
    evidence = benchmark_module("_pages.evidence")
    assert evidence._missing({"missing": "covtype, webspam; a, b"}, [{"set": "covtype"}]) == "webspam; a, b"


def test_a_merger_contains_its_search(benchmark_module):
    runs = benchmark_module("papers._bsgd.runs")
    problem = runs.load("patches", 3000)
    run = runs.train(problem, 30, ["lookup-wd"], 2, 0)["lookup-wd"]
    state = runs._with_one_candidate(run.sgd, 1.0)
    assert (state["counts"][1], state["counts"][2]) == (1, 29)
    assert np.count_nonzero(state["slots"][0] > 0) == 1
    merger = runs.merger_seconds(problem, run.sgd, "lookup-wd")
    assert merger.search <= merger.whole


def test_mergers_are_averaged_over_the_rows_within_the_margin(benchmark_module):
    runs = benchmark_module("papers._bsgd.runs")
    values = np.array([[2.0], [0.0], [0.0], [-2.0]])
    sgd = SimpleNamespace(model=lambda: SimpleNamespace(decision_values=lambda X: values))
    problem = SimpleNamespace(X=None, y=np.array([1, 1, -1, 1]))
    assert runs._positive_share(problem, sgd) == pytest.approx(2 / 3)


def test_the_published_machine_of_bsgd_is_that_of_the_last_step(benchmark_module):
    runs = benchmark_module("papers._bsgd.runs")
    problem = benchmark_module("_problems").load_problem("patches", n_rows=400)
    rules = ("gss-paper", *runs.PUBLISHED)
    settings = [runs.settings_of(problem, 20, rule) for rule in rules]
    assert [(s.merge, s.average) for s in settings] == [("gss-paper", True), ("gss-paper", False), ("lookup-wd", False)]


def test_crammer_singer_objective_is_the_naive_one(benchmark_module):
    objective = benchmark_module("papers._ocas.several_classes").crammer_singer_objective
    rng = np.random.default_rng(0)
    X, labels, W = rng.normal(size=(50, 4)), rng.integers(3, size=50), rng.normal(size=(3, 4))
    naive = 0.5 * (W**2).sum()
    for x, label in zip(X, labels, strict=True):
        naive += 2.0 * max(float(k != label) + (W[k] - W[label]) @ x for k in range(3))
    assert objective(X, labels, W, 2.0) == pytest.approx(naive)


def test_paths_of_linear_machines_are_compared(benchmark_module, tmp_path, monkeypatch):
    script, path = benchmark_module("peers.linear_path"), tmp_path / "linear_path.csv"
    X, y = load_patches(400, 3, random_state=0)
    rows = sp.csr_array(X, dtype=np.float64)
    monkeypatch.setattr(script, "load", lambda name, n: script.Data(X, rows, y, y == np.unique(y)[1]))
    script.main(["--sets", "a9a", "--repeats", "1", "--output", str(path)])
    found = {row["machine"]: row for row in benchmark_module("_report").read_csv(path) if row["set"] == "a9a"}
    assert {"OCASClassifierCV", "C_path", "LIBLINEAR", "LIBLINEAR, squared hinge"} <= set(found)
    assert found["C_path"]["scores"] == found["OCASClassifierCV"]["scores"]
    assert all(row["score"] > 0.6 for row in found.values())
