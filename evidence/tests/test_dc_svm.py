"""What the DC-SVM experiments compute themselves is right. The figures are theirs to measure."""

import itertools
from importlib import import_module

import numpy as np
import pytest

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


def test_cascade_keeps_support_vectors_alone():
    X, y = load_patches(600)
    cascade = import_module("evidence._dc_svm.cascade").CascadeSVC(C=4.0, gamma=1.0, n_parts=8).fit(X, y)
    assert [parts for parts, _ in cascade.layers_] == [8, 4, 2, 1]
    found = [set(rows) for _, rows in cascade.layers_]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert cascade.score(X, y) > 0.9


@pytest.mark.parametrize("whiten", [True, False])
def test_kmeans_features_are_kernel_values(whiten):
    X, _ = load_patches(200)
    approximate = import_module("evidence._dc_svm.approximate")
    Z = approximate.KMeansFeatures(n_components=400, gamma=1.0, whiten=whiten).fit_transform(X)
    squares = np.square(X[:, None] - X).sum(axis=2)
    if whiten:  # as many centres as rows: Nystroem's approximation is exact
        np.testing.assert_allclose(Z @ Z.T, np.exp(-squares), atol=0.05)
    else:
        assert Z.shape == (200, 200)
        np.testing.assert_allclose(np.sort(Z.max(axis=1)), 1.0, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_writes_rows_and_a_plot(monkeypatch, tmp_path, name):
    pytest.importorskip("matplotlib")
    if name in NEEDS_INTELEX:
        pytest.importorskip("sklearnex")
    script = import_module("evidence.dc_svm")
    monkeypatch.setattr(script, "PAPER", script.PAPER._replace(results=tmp_path))
    size = [] if name == "scale" else ["--rows", "400"]
    script.main([name, "--sets", "patches", "--tries", "1", *size, *EXPERIMENTS[name]])
    rows = import_module("measuring.report").read_csv(tmp_path / f"{name}.csv")
    assert rows
    assert (tmp_path / f"{name}.png").stat().st_size > 1000
    for row in rows:
        assert row.get("bound", 1.0) >= row.get("difference", 0.0) >= 0.0
        assert 0 < row.get("recall", 0.5) <= 1
        assert 0.5 < row.get("accuracy", 0.9) <= 1 or name == "sweep"
        assert row.get("relative_error", 0.0) > -1e-6
