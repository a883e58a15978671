"""The scripts of benchmarks/ run, and what they compute themselves is right. The figures are theirs to measure."""

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.peers import sklearn_tests
from measuring import command, pages, process, recompute, report, tables
from measuring.experiment import Run
from widemargin.datasets import load_patches

ROOT = Path(__file__).parents[2]
TRIALS = "boosting", "early", "one_row", "processes", "shrinking", "small_data"


def test_measuring_is_below_benchmarks_and_evidence():
    """But for the command that makes the pages of both."""
    above = {"benchmarks": "evidence", "evidence": "benchmarks", "measuring": "benchmarks|evidence"}
    for folder, names in above.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            found = re.findall(rf"^ *(?:from|import) (?:{names})\b.*", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert not found or path.name == "pages.py", path


def test_csv_rows_come_back(tmp_path):
    path = tmp_path / "a.csv"
    rows = [{"set": "a", "n": 1, "seconds": 2.5, "commit": "569e37262"}, {"set": "b", "n": 1, "native": True}]
    report.write_csv(path, [*rows, {"set": "c", "seconds": 0.123456789012, "n": None}])
    assert report.read_csv(path) == [*rows, {"set": "c", "seconds": 0.123456789}]
    assert "# cores: " in path.read_text()
    assert report.read_csv(tmp_path / "none.csv") == []


def test_every_marker_of_docs_stands_alone_and_has_a_table():
    for path in sorted((pages.README.parent / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert "\n<!-- end -->" not in text, f"{path.name}: the site's build makes its tables"
        assert "<!-- table" not in pages.with_tables(text)
        found = {name: pages.table(name) for name in re.findall("<!-- table (.*) -->", text)}
        assert all(table.startswith(("| ", "Not measured yet")) for table in found.values())


def test_a_table_names_its_run_and_is_refused_where_it_compares_several(monkeypatch, tmp_path, capsys):
    one = {"set": "a", "commit": "a", "machine_card": "m", "date": "2026-11-27", "threads": 2, "others": 0.0}
    assert tables.source([one, one]) == "\n*m; commit a; 2026-11-27; 2 threads.*\n"
    assert tables.source([one], "C = 1.") == "\nC = 1. *m; commit a; 2026-11-27; 2 threads.*\n"
    other = one | {"set": "b", "commit": "b"}
    assert tables.of_one_run([one, other | {"commit": "c"}, other, other]) == [one, other, other]
    assert "*m; commit a, b; " in tables.source([one, one | {"set": "b", "commit": "b"}])
    assert "***Rows of several runs" in tables.source([one, one | {"commit": "b"}])
    page = tmp_path / "README.md"
    page.write_text("<!-- table a -->\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(pages, "README", page)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setitem(pages._TABLES, "a", lambda rows: "")
    monkeypatch.setitem(pages._tables.TABLES, "a", lambda rows: "")
    monkeypatch.setattr(pages._claims, "PAPERS", ())
    report.write_csv(tmp_path / "a.csv", [one, one | {"commit": "b"}])
    assert pages.main(["--strict"]) == 1
    assert "a: 1 rows of other runs" in capsys.readouterr().out
    assert "commit b" not in pages.table("a")
    report.write_csv(tmp_path / "a.csv", [one])
    assert pages.main(["--strict"]) == 0
    assert pages.main(["--check"]) == 1
    assert "README.md differs" in capsys.readouterr().out
    assert pages.main([]) == pages.main(["--check"]) == 0
    assert "*m; commit a" in page.read_text(encoding="utf-8")


def test_readme_and_pictures_are_those_of_the_results(monkeypatch, tmp_path):
    """A picture is stale where a row of its results has changed."""
    assert pages.main(["--check"]) == 0, "run python measuring/pages.py"
    for name, more in {"scale.csv": "exact,9,1,1,1,1,1,90\n", "folds.csv": ""}.items():
        (tmp_path / name).write_text(report.RESULTS.joinpath(name).read_text() + more)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert import_module("benchmarks._pages.pictures").is_stale("scale")


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
        assert left <= min(x) <= max(x) <= right
        assert low <= min(y) <= max(y) <= high
    assert all(left <= bar.get_x() and bar.get_x() + bar.get_width() <= right for bar in axes.patches)
    labels = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for k, a in enumerate(labels) for b in labels[:k])
    paths = [line.get_transform().transform_path(line.get_path()) for line in curves]
    assert not any(path.intersects_bbox(label, filled=False) for path in paths for label in labels)


def test_speed_table_divides_the_time_of_the_rival_by_ours(monkeypatch, tmp_path):
    seconds = {"widemargin": 2.0, "widemargin, no level": 5.0, "widemargin, no intercept": 3.0}
    seconds |= {"sklearnex": 9.0, "sklearnex, CSR": 8.0, "widemargin, CSR": 4.0}
    row = {"set": "a", "n": 1000, "n_features": 3, "limit_seconds": 0.5}
    rows = [row | {"competitor": c, "seconds": s, "predict_us": 10 * s} for c, s in seconds.items()]
    report.write_csv(tmp_path / "kernel_svm.csv", rows)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    line = pages.with_written_tables("<!-- table kernel_svm -->\nan old line\n<!-- end -->\n").splitlines()[3]
    assert line == "| a | 1,000 × 3 | 4.00 s | 5.00 s | 3.00 s | 8.00 s | 2.00 | 2.00 | 8.00 |"


def test_early_table_has_the_fastest_that_loses_little_or_the_one_that_loses_least():
    machines = {"widemargin": (2.0, 0.0), "sklearnex": (9.0, 0.0)}
    machines |= {"early, level 1": (0.5, 0.4), "early, level 2": (0.1, 0.9)}
    row = {"n": 1000, "n_features": 3, "n_clusters": 4, "solving_seconds": 0.25, "predict_us": 1.5}
    rows = [
        {"set": name, "competitor": competitor, "seconds": seconds, "points_lost": lost + extra}
        | {"times_exact": 2.0 / seconds, "times_rival": 9.0 / seconds}
        | row
        for name, extra in (("a", 0.0), ("b", 0.2))
        for competitor, (seconds, lost) in machines.items()
    ]
    rows += [{**rows[3], "competitor": "early, level 3", "seconds": 0.4, "points_lost": 0.5, "times_exact": 5.0}]
    lines = pages._TABLES["early"](rows).splitlines()[2:]
    assert lines[0].startswith("| a | 1,000 × 3 | 2.00 s | 9.00 s | 0.40 s | 4 | 5.0 |")
    assert lines[1] == "| b | 1,000 × 3 | 2.00 s | 9.00 s | 0.50 s | 4 | 4.0 | 18.0 | 0.60 | 50% | 1.50 |"


def test_early_machines_are_compared_with_the_faster_form_of_the_rival():
    seconds = {"widemargin": 2.0, "early, level 1": 0.5, "sklearnex": 9.0, "sklearnex, dense": 8.0}
    scores = {"accuracy": 0.9, "held_accuracy": 0.9}
    rows = [{"competitor": name, "seconds": s} | scores for name, s in seconds.items()]
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


def test_errors_are_divided_and_none_counts_as_half_a_row():
    boosting = import_module("benchmarks.peers.boosting")
    rows = []
    for name, own, other in (("a", 0.0, 0.02), ("b", 0.04, 0.01), ("c", 0.0, 0.0)):
        facts = {"set": name, "n": 100, "n_features": 2, "n_test": 100}
        ours = facts | {"machine": "search", "seconds": 6.0, "error": own}
        rows += boosting.compared([ours, facts | {"machine": "trees", "seconds": 2.0, "error": other}])
    *_, means, won = import_module("benchmarks._pages.tables").TABLES["boosting"](rows).splitlines()
    assert means.split(" | ")[-2:] == ["**1.00**", "**3** |"]
    assert won.split(" | ")[-2:] == ["1, 1", " |"]


@pytest.mark.parametrize("name", ["early_millions", *(pytest.param(n, marks=pytest.mark.slow) for n in TRIALS)])
def test_benchmarks_without_downloads_have_a_trial(name):
    """Its rows have the keys, and the columns of the table."""
    if name == "early":
        pytest.importorskip("sklearnex")
    experiment = command.find_experiments("benchmarks")[name]
    options = SimpleNamespace(sets=None, only=[], quick=True, again=False, redraw=False, tries=1)
    rows: list[dict[str, object]] = []
    assert not command.run_experiment(experiment, options, experiment.settings, rows)
    assert rows
    assert all(key in row for row in rows for key in experiment.keys)
    assert name not in pages._TABLES or name == "shrinking" or pages._TABLES[name](rows).count("\n") > 2


def test_every_failure_has_a_reason_and_every_reason_a_test():
    rows = report.results("sklearn_tests")
    assert len(rows) > 400
    assert not [row["test"] for row in rows if row["outcome"] == "failed"]
    reasons = {difference.name for difference in sklearn_tests.read_differences()}
    assert {row["difference"] for row in rows if row["outcome"] == "difference"} == reasons


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sklearn.tests") is None, reason="scikit-learn came without its tests")
def test_a_run_of_one_file_is_explained():
    rows = process.run_apart(sklearn_tests.measure, "tests/test_kernel_ridge.py", timeout=300)
    assert "passed" in {row["outcome"] for row in rows} <= {"passed", "skipped", "difference"}
