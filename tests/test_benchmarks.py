"""The scripts of benchmarks/ run, and what they compute themselves is right. The figures are theirs to measure."""

import itertools

import numpy as np
import pytest
from sklearn.svm import SVC

from widemargin.datasets import load_patches

EXPERIMENTS = {
    "figure1": ["--clusters", "4"],
    "figure2": ["--methods", "cascade"],
    "table1": ["--levels", "2", "--partitions", "kernel"],
    "clustering": [],
    "sweep": ["--log2-C", "1"],
    "early": ["--levels", "1", "--partitions", "input"],
    "table2": ["--only", "LTPU", "Cascade"],
    "figure3": ["--only", "Cascade", "LTPU"],
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


def test_tables_in_pages_are_those_of_the_results(benchmark_module):
    pages = benchmark_module("pages")
    for path in pages.PAGES:
        assert path.read_text(encoding="utf-8") == pages.render(path), f"{path.name}: run python benchmarks/pages.py"


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
    script.main([name, "--sets", "patches", *size, *EXPERIMENTS[name]])
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
    tuning.main(arguments)
    assert benchmark_module("_report").read_csv(path) == first
