"""The scripts of benchmarks/ run, and what they compute themselves is right. The figures are theirs to measure."""

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from measuring import pages, provenance, recompute, report, tables
from measuring.experiment import Run
from widemargin.datasets import load_patches

ROOT = Path(__file__).parents[2]


def test_measuring_is_below_benchmarks_and_evidence():
    """But for the command that makes the pages of both."""
    above = {"benchmarks": "evidence", "evidence": "benchmarks", "measuring": "benchmarks|evidence"}
    for folder, names in above.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            found = re.findall(rf"^ *(?:from|import) (?:{names})\b.*", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert not found or path.name == "pages.py", path


def test_csv_rows_come_back_with_their_origin(tmp_path):
    origin, path = provenance.origin(), tmp_path / "a.csv"
    old = [{"set": "a", "n": 1, "seconds": 2.5, "commit": "569e37262"}, {"set": "b", "n": 1, "native": True}]
    report.write_csv(path, old)
    assert report.read_csv(path) == [old[0], old[1] | origin]
    known = report.read_csv(path)
    report.write_csv(path, [*known, {"set": "c", "seconds": 0.123456789012, "n": None}])
    assert report.read_csv(path) == [*known, {"set": "c", "seconds": 0.123456789} | origin]
    assert "# cores: " in path.read_text()
    assert report.read_csv(tmp_path / "none.csv") == []


def test_tables_of_the_readme_are_those_of_the_results():
    text = pages.README.read_text(encoding="utf-8")
    assert text == pages.with_written_tables(text), "run python measuring/pages.py"


def test_every_marker_of_docs_stands_alone_and_has_a_table():
    for path in sorted((pages.README.parent / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert "\n<!-- end -->" not in text, f"{path.name}: the site's build makes its tables"
        assert all(pages.table(name).startswith("| ") for name in re.findall("<!-- table (.*) -->", text))


def test_a_table_names_its_runs_and_strictly_there_is_one(monkeypatch, tmp_path, capsys):
    one = {"commit": "a", "machine_card": "m", "date": "2026-11-27", "threads": 2, "others": 0.0}
    assert tables.source([one, one]) == "\n*m; commit a; 2026-11-27; 2 threads.*\n"
    two = tables.source([one, one | {"commit": "b"}])
    assert two.startswith("\n***Rows of 2 runs: compare within a run.** m; commit a, b; ")
    page = tmp_path / "README.md"
    page.write_text("<!-- table a -->\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(pages, "README", page)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setitem(pages._TABLES, "a", lambda rows: "")
    report.write_csv(tmp_path / "a.csv", [one, one | {"commit": "b"}])
    assert pages.main(["--strict"]) == 1
    assert "a: rows of 2 runs" in capsys.readouterr().out
    report.write_csv(tmp_path / "a.csv", [one])
    assert pages.main(["--strict"]) == 0


def test_a_table_is_made_in_the_place_of_its_marker(monkeypatch):
    monkeypatch.setattr(pages, "table", lambda name: f"| {name} |\n")
    text = "A\n\n<!-- table a/b -->\n\nB\n\n<!-- table c -->\n:::\n"
    assert pages.with_tables(text) == text.replace("<!-- table a/b -->", "| a/b |").replace("<!-- table c -->", "| c |")


def test_pictures_are_those_of_the_results(monkeypatch, tmp_path):
    """A picture is stale where a row of its results has changed."""
    pictures = import_module("benchmarks._pages.pictures")
    assert not [name for name in pictures.PICTURES if pictures.is_stale(name)], "run python measuring/pages.py"
    (tmp_path / "scale.csv").write_text(report.RESULTS.joinpath("scale.csv").read_text() + "exact,9,1,1,1,1,1,90\n")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert pictures.is_stale("scale")


@pytest.mark.parametrize(
    "name", ["covtype_accuracy", "fits", "scale", "early", "tuning", "linear", "compress", "boosting", "regression"]
)
def test_pictures_can_be_read(monkeypatch, tmp_path, name):
    """No curve turns back, no bar or point lies beyond the axes, no label on a curve or on another label."""
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    pictures = import_module("benchmarks._pages.pictures")
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


def test_speed_table_divides_the_time_of_the_rival_by_ours(monkeypatch, tmp_path):
    seconds = {"widemargin": 2.0, "widemargin, no level": 5.0, "widemargin, no intercept": 3.0}
    seconds |= {"sklearnex": 9.0, "sklearnex, CSR": 8.0}
    row = {"set": "a", "n": 1000, "n_features": 3, "limit_seconds": 0.5}
    rows = [row | {"competitor": c, "seconds": s, "predict_us": 10 * s} for c, s in seconds.items()]
    report.write_csv(tmp_path / "kernel_svm.csv", rows)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    line = pages.with_written_tables("<!-- table kernel_svm -->\nan old line\n<!-- end -->\n").splitlines()[3]
    assert line == "| a | 1,000 × 3 | 2.00 s | 5.00 s | 3.00 s | 8.00 s | 4.00 | 4.00 | 4.00 |"


def test_early_table_has_the_fastest_that_loses_little_or_the_one_that_loses_least(monkeypatch, tmp_path):
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
    report.write_csv(tmp_path / "early.csv", rows)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    lines = pages.with_tables("<!-- table early -->\n").splitlines()[2:]
    assert lines[0].startswith("| a | 1,000 × 3 | 2.00 s | 9.00 s | 0.40 s | 4 | 5.0 |")
    assert lines[1] == "| b | 1,000 × 3 | 2.00 s | 9.00 s | 0.50 s | 4 | 4.0 | 18.0 | 0.60 | 50% | 1.50 |"


def test_early_machines_of_many_rows_are_measured():
    row = import_module("benchmarks.early_millions").measure(3000)
    assert row["rows"] == 3000
    assert row["data"] == 20 * 3000 * (4 + 4) + 4 * 3001
    assert row["accuracy"] > 60
    line = import_module("benchmarks._pages.tables").TABLES["early_millions"]([row]).splitlines()[2]
    assert line.startswith(f"| 3,000 | {row['clusters']} | ")


def test_early_machines_are_measured_beside_exact_ones():
    pytest.importorskip("sklearnex")
    script = import_module("benchmarks.peers.early")
    run = Run(**script.EARLY.settings | script.EARLY.quick)
    assert [row["competitor"] for row in script.measure_set("patches:1500", run)] == [
        "widemargin",
        "early, level 1",
        "sklearnex",
    ]


def test_early_machines_are_compared_with_the_faster_form_of_the_rival():
    seconds = {"widemargin": 2.0, "early, level 1": 0.5, "sklearnex": 9.0, "sklearnex, dense": 8.0}
    rows = [{"competitor": name, "seconds": s, "accuracy": 0.9} for name, s in seconds.items()]
    import_module("benchmarks.peers.early")._compare(rows)
    assert [row["times_rival"] for row in rows] == [4.0, 16.0, 8 / 9, 1.0]


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("intercept", [False, True])
def test_recomputed_certificate_agrees_with_libsvm(kernel, intercept):
    X, labels = load_patches(300)
    y = (2 * labels - 1).astype(np.int8)
    model = SVC(C=2.0, kernel=kernel, gamma=0.5, coef0=0.0, tol=1e-8).fit(X, y)
    facts = recompute.certify(X, y, model, C=2.0, gamma=0.5, intercept=intercept, kernel=kernel)
    margins = y * (model.decision_function(X) - model.intercept_)
    alpha = np.abs(model.dual_coef_[0])
    assert facts.dual == pytest.approx(alpha.sum() - 0.5 * alpha @ margins[model.support_], rel=1e-6)
    assert (facts.gap < 1e-4 * facts.primal) == intercept  # without one, this machine is not the optimum


@pytest.mark.parametrize("intercept", [False, True])
def test_a_recomputed_dual_value_is_a_lower_bound_whatever_the_coefficients(intercept):
    X, labels = load_patches(300)
    y = (2 * labels - 1).astype(np.int8)
    fitted = SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X, y)
    common = {"C": 2.0, "gamma": 0.5, "intercept": intercept}
    optimum = recompute.certify(X, y, fitted, **common).primal
    wrong = SimpleNamespace(support_=fitted.support_, dual_coef_=1.7 * fitted.dual_coef_ + 0.1)
    facts = recompute.certify(X, y, wrong, **common)
    assert facts.box > 0.1
    assert facts.dual <= optimum <= facts.primal


def test_searches_are_compared_by_their_grids():
    rows = [
        {"machine": "GridSearchCV, ours", "seconds": 8.0, "best": 1, "means": "0.5 0.9 0.8"},
        {"machine": "GridSearchCV, intelex", "seconds": 40.0, "best": 1, "means": "0.5 0.91 0.8"},
        {"machine": "exhaustive", "seconds": 4.0, "best": 1, "means": "0.51 0.9 0.8"},
        {"machine": "default", "seconds": 2.0, "best": 2, "means": "nan nan 0.8"},
    ]
    of = {row["machine"]: row for row in rows}
    done = [import_module("benchmarks.peers.tuning").compare(row, of) for row in rows]
    assert [row["ratio"] for row in done] == [5.0, 1.0, 10.0, 20.0]
    assert done[3]["regret"] == pytest.approx(10.0)
    assert done[2]["difference"] == pytest.approx(1.0)
    assert done[3]["difference"] == 0.0


def test_a_search_is_measured(monkeypatch):
    tuning = import_module("benchmarks.peers.tuning")
    X, y = load_patches(400, 3, random_state=0)
    monkeypatch.setattr(tuning, "load", lambda name, n: (X, y))
    grid = tuning.GRID._replace(Cs=np.array([0.1, 10.0]))
    rows = tuning.compared("letter", grid, Run(only=["default", "cold"], rows=400))
    assert {row["machine"] for row in rows} == {"default", "exhaustive, cold"}
    assert rows[0]["means"] == rows[1]["means"]
    assert all(len(row["means"].split()) == 8 for row in rows)  # 2 Cs, 4 gammas, one kernel


@pytest.fixture
def boosting(monkeypatch):
    """The script; its fits stay in this process and are made once, and its trees are single ones."""
    script = import_module("benchmarks.peers.boosting")
    monkeypatch.setattr(script.process, "run_apart", lambda function, *given, environment: function(*given))
    monkeypatch.setattr(script, "_fit_small", lambda make, kind: None)
    monkeypatch.setattr(script, "_seconds", lambda call, n: len(call().__dict__) / 10)
    monkeypatch.setattr(script, "HistGradientBoostingClassifier", lambda **_: DecisionTreeClassifier(random_state=0))
    return script


def test_searches_are_compared_with_trees(boosting):
    rows = boosting._compare("wine", Run(max_time=1.0))
    assert [row["machine"] for row in rows] == ["search", "trees", "trees, 500 × 63 leaves"]
    assert rows[0]["error_ratio"] == rows[0]["seconds_ratio"] == 1.0
    assert rows[1]["error_ratio"] == pytest.approx(rows[2]["error_ratio"])
    assert [
        machine.parameters.get("epsilons") is not None for machine in boosting._ablations("diabetes", 1.0).values()
    ] == [*(False, False, False, True, True, True)]


def test_errors_are_divided_and_none_counts_as_half_a_row(boosting):
    rows = []
    for name, own, other in (("a", 0.0, 0.02), ("b", 0.04, 0.01), ("c", 0.0, 0.0)):
        facts = {"set": name, "n": 100, "n_features": 2, "n_test": 100}
        ours = facts | {"machine": "search", "seconds": 6.0, "error": own}
        rows += boosting.compared([ours, facts | {"machine": "trees", "seconds": 2.0, "error": other}])
    *_, means, won = import_module("benchmarks._pages.tables").TABLES["boosting"](rows).splitlines()
    assert means.split(" | ")[-2:] == ["**1.00**", "**3** |"]
    assert won.split(" | ")[-2:] == ["1, 1", " |"]


def test_a_page_that_differs_is_named(monkeypatch, tmp_path, capsys):
    page = tmp_path / "README.md"
    page.write_text("<!-- table a -->\nold\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(pages, "README", page)
    monkeypatch.setattr(pages, "table", lambda name: "| new |\n")
    assert pages.main(["--check"]) == 1
    assert "README.md differs" in capsys.readouterr().out
    assert pages.main([]) == 0
    assert "| new |" in page.read_text(encoding="utf-8")
    assert pages.main(["--check"]) == 0


def test_paths_of_linear_machines_are_compared(monkeypatch):
    script = import_module("benchmarks.peers.linear_path")
    X, y = load_patches(400, 3, random_state=0)
    rows = sp.csr_array(X, dtype=np.float64)
    monkeypatch.setattr(script, "load", lambda name, n: script.Data(X, rows, y, y == np.unique(y)[1]))
    found = {row["machine"]: row for row in script.measure("a9a", Run(rows=None, repeats=1))}
    assert {"OCASClassifierCV", "C_path", "LIBLINEAR", "LIBLINEAR, squared hinge"} <= set(found)
    assert found["C_path"]["scores"] == found["OCASClassifierCV"]["scores"]
    assert all(row["score"] > 0.6 for row in found.values())
