"""Every experiment of the papers runs on few rows, draws its picture, and leaves out what is not wanted."""

from importlib import import_module

import numpy as np
import pytest

from measuring import plots, report
from measuring.command import find_experiments
from measuring.experiment import Run, is_of
from widemargin.datasets import load_patches

EXPERIMENTS = find_experiments("evidence")
SMALL = {  # settings beside 400 rows
    "dc_svm/figure1": {"clusters": (4,)},
    "dc_svm/figure2": {"methods": ("cascade",)},
    "dc_svm/table1": {"levels": (2,), "partitions": ("kernel",)},
    "dc_svm/sweep": {"log2_C": (1,)},
    "dc_svm/table2": {"only": ["LTPU", "Cascade"]},
    "dc_svm/figure3": {"only": ["Cascade", "LTPU", "greedy"]},
    "dc_svm/figure4": {"only": ["Cascade"]},
    "dc_pred/ablation": {"clusters": 2},
    "dc_pred/figure3": {"seeds": 2},
    "bsgd/tables": {"budgets": (20,), "seeds": 1},
    "bsgd/figure2": {"sizes": (50,), "pairs": 100},
}
SETS = {"bsgd/figure2": "grid"}  # the others take patches
LEFT_OUT = ("ocas/large",)  # it has a test of its own


def _load_few(monkeypatch):
    X, labels = load_patches(500)
    signs = (2 * labels - 1).astype(np.int8)
    linear = import_module("measuring.linear_problems")
    small = linear.make_linear("patches", X[:200, :5], signs[:200])
    for module in ("reach", "selection", "scaling", "rounds", "authors"):
        monkeypatch.setattr(import_module(f"evidence._ocas.{module}"), "load_linear", lambda name, n_rows=None: small)
    parts = linear.Parts(small, small, small)
    monkeypatch.setattr(import_module("evidence._ocas.selection"), "load_parts", lambda name: parts)
    monkeypatch.setattr(import_module("evidence._ocas.scaling"), "SIZES", (100, 200))
    regression = import_module("evidence._dc_pred.regression")
    monkeypatch.setattr(regression, "_GRID", {"gamma": (0.06,), "C": (10.0,)})


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in LEFT_OUT])
def test_every_experiment_gives_rows_and_a_plot(monkeypatch, tmp_path, name):
    pytest.importorskip("matplotlib")
    if name in ("dc_svm/sweep", "dc_pred/compress"):
        pytest.importorskip("sklearnex")
    _load_few(monkeypatch)
    monkeypatch.setattr(report, "EVIDENCE", tmp_path)
    experiment, small = EXPERIMENTS[name], {"rows": 400, "C": (0.1,)} | SMALL.get(name, {})
    settings = {**experiment.settings, **{k: v for k, v in small.items() if k in (*experiment.settings, "only")}}
    if name.startswith("dc_svm"):
        settings |= {"C": 0.0} if "C" in experiment.settings else {}
    cell = SETS.get(name, "patches")
    found = list(experiment.measure(cell, Run(**settings)))
    rows = [row for part in found for row in (part if isinstance(part, list) else [part])]
    assert rows
    assert all(key in row for row in rows for key in experiment.keys)
    assert all(is_of(row, {experiment.keys[0]: cell}) for row in rows)
    known = [{key: row[key] for key in experiment.keys} | {"done": True} for row in rows]
    assert not list(experiment.measure(cell, Run(**settings, known=known)))
    assert all(table for table in experiment.tables(rows).values())
    if experiment.panels is not None:
        plots.plot_panels(tmp_path / "a.png", experiment.panels(rows))
        assert (tmp_path / "a.png").stat().st_size > 1000
    for row in rows:
        assert row.get("bound", 1.0) >= row.get("difference", 0.0) >= 0.0 or name.startswith("ocas")
        assert 0 < row.get("recall", 0.5) <= 1
        assert 0.5 < row.get("accuracy", 0.9) <= 1 or name == "dc_svm/sweep"
        assert row.get("relative_error", 0.0) > -1e-6


def test_budgets_of_all_cells():
    """Whole, the papers' experiments are given at most 150 minutes, and what the README shows 45."""
    benchmarks, readme = find_experiments("benchmarks"), import_module("benchmarks.all").README
    for experiments, minutes in ((EXPERIMENTS.values(), 150), ([benchmarks[name] for name in readme], 45)):
        cells = [(e, c if isinstance(c, tuple) else (c,)) for e in experiments for c in e.cells]
        assert sum(e.budget(cell) for e, cell in cells) <= 60 * minutes
