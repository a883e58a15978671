"""What the BSGD experiments compute themselves is right. The figures are theirs to measure."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest


def test_the_full_square_is_ours_mirrored():
    tables = import_module("evidence._bsgd.tables")
    m, kappa = np.array([0.3, 0.7, 0.9]), np.array([0.4, 0.4, 0.6])
    h, wd = tables._merge(m, kappa)
    assert h[0] == pytest.approx(1 - h[1])
    assert wd[0] == pytest.approx(wd[1])
    s = m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2)
    np.testing.assert_allclose(wd, m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2)
    assert tables._interpolate(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0.5]), np.array([0.25])) == 1.25


def test_a_merger_contains_its_search():
    runs = import_module("evidence._bsgd.runs")
    problem = runs.load("patches", 3000)
    run = runs.train(problem, 30, ["lookup-wd"], 2, 0)["lookup-wd"]
    state = runs._with_one_candidate(run.sgd, 1.0)
    assert (state["counts"][1], state["counts"][2]) == (1, 29)
    assert np.count_nonzero(state["slots"][0] > 0) == 1
    merger = runs.merger_seconds(problem, run.sgd, "lookup-wd")
    assert merger.search <= merger.whole


def test_mergers_are_averaged_over_the_rows_within_the_margin():
    runs = import_module("evidence._bsgd.runs")
    values = np.array([[2.0], [0.0], [0.0], [-2.0]])
    sgd = SimpleNamespace(model=lambda: SimpleNamespace(decision_values=lambda X: values))
    problem = SimpleNamespace(X=None, y=np.array([1, 1, -1, 1]))
    assert runs._positive_share(problem, sgd) == pytest.approx(2 / 3)


def test_the_published_machine_of_bsgd_is_that_of_the_last_step():
    runs = import_module("evidence._bsgd.runs")
    problem = import_module("measuring.problems").load_problem("patches", n_rows=400)
    rules = ("gss-paper", *runs.PUBLISHED)
    settings = [runs.settings_of(problem, 20, rule) for rule in rules]
    assert [(s.merge, s.average) for s in settings] == [("gss-paper", True), ("gss-paper", False), ("lookup-wd", False)]
