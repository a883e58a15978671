"""The scripts of benchmarks/ run, and what they compute themselves is right. The figures are theirs to measure."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from widemargin.datasets import load_patches


def test_csv_rows_come_back(benchmark_module, tmp_path):
    report, path = benchmark_module("_report"), tmp_path / "a.csv"
    old = [{"set": "a", "n": 1, "seconds": 2.5, "commit": "569e37262"}, {"set": "b", "n": 1, "native": True}]
    report.write_csv(path, old, {"cores": "2"})
    assert report.read_csv(path) == old
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


@pytest.mark.parametrize(
    "name", ["covtype_accuracy", "fits", "scale", "early", "tuning", "linear", "compress", "boosting", "regression"]
)
def test_pictures_can_be_read(benchmark_module, monkeypatch, tmp_path, name):
    """No curve turns back, no bar or point lies beyond the axes, no label on a curve or on another label."""
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    pictures = benchmark_module("_pages.pictures")
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    axes = pictures.draw(name)
    agg.FigureCanvasAgg(axes.figure).draw()  # measures the labels
    assert not pictures.is_stale(name)
    (left, right), (low, high) = axes.get_xlim(), sorted(axes.get_ylim())
    curves = [line for line in axes.lines if line.get_linestyle() != "None" and len(line.get_xdata()) > 2]
    for line in curves:
        x, y = line.get_xdata(), line.get_ydata()
        assert np.all(np.diff(x) > 0), "a curve turns back"
        assert left <= min(x)
        assert low <= min(y)
        assert max(x) <= right
        assert max(y) <= high
    assert all(left <= bar.get_x() and bar.get_x() + bar.get_width() <= right for bar in axes.patches)
    labels = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for k, a in enumerate(labels) for b in labels[:k])
    paths = [line.get_transform().transform_path(line.get_path()) for line in curves]
    assert not any(path.intersects_bbox(label, filled=False) for path in paths for label in labels)


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
    line = benchmark_module("_pages.scale").TABLES["early_millions"]([row]).splitlines()[2]
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
    monkeypatch.setattr(tuning, "GRID", tuning.GRID._replace(Cs=np.array([0.1, 10.0])))
    skip = ["--skip", *(name for name in tuning.machines(tuning.GRID) if name not in ("default", "exhaustive, cold"))]
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


def test_new_rows_of_a_run_have_its_origin_and_old_ones_theirs(benchmark_module, tmp_path):
    report, path = benchmark_module("_report"), tmp_path / "a.csv"
    old = [{"set": "a", "seconds": 0.123456789012}, {"set": "b", "commit": "first"}]
    report.write_csv(path, old, {"cores": "2"})
    card = {"processor": "P", "cores": "2", "commit": "second", "date": "2026-11-26"}
    report.write_csv(path, [*old, {"set": "c", "seconds": None}], card)
    assert [row.get("commit") for row in report.read_csv(path)] == [None, "first", "second"]
    assert report.read_csv(path)[2]["machine_card"] == "P, 2 cores"


def test_paths_of_linear_machines_are_compared(benchmark_module, tmp_path, monkeypatch):
    pytest.importorskip("numba")  # of the rival
    script, path = benchmark_module("peers.linear_path"), tmp_path / "linear_path.csv"
    X, y = load_patches(400, 3, random_state=0)
    rows = sp.csr_array(X, dtype=np.float64)
    monkeypatch.setattr(script, "load", lambda name, n: script.Data(X, rows, y, y == np.unique(y)[1]))
    script.main(["--sets", "a9a", "--repeats", "1", "--output", str(path)])
    found = {row["machine"]: row for row in benchmark_module("_report").read_csv(path) if row["set"] == "a9a"}
    assert {"OCASClassifierCV", "C_path", "LIBLINEAR", "LIBLINEAR, squared hinge"} <= set(found)
    assert found["C_path"]["scores"] == found["OCASClassifierCV"]["scores"]
    assert all(row["score"] > 0.6 for row in found.values())
