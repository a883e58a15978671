"""What the BSGD experiments compute themselves is right. The figures are theirs to measure."""

from types import SimpleNamespace

import numpy as np
import pytest

from evidence._bsgd import full_square, runs, tables
from measuring.problems import load_problem


def test_the_full_square_is_ours_mirrored():
    m, kappa = np.array([0.3, 0.7, 0.9]), np.array([0.4, 0.4, 0.6])
    h, wd = full_square.merge(m, kappa)
    assert h[0] == pytest.approx(1 - h[1])
    assert wd[0] == pytest.approx(wd[1])
    s = m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2)
    np.testing.assert_allclose(wd, m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2)
    assert tables._interpolate(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0.5]), np.array([0.25])) == 1.25


def test_a_merger_is_timed_on_one_candidate_of_a_full_budget():
    problem = runs.load("patches", 3000)
    run = runs.train(problem, 30, ["lookup-wd"], 2, 0)["lookup-wd"]
    state = runs._with_one_candidate(run.sgd, 1.0)
    assert (state["counts"][1], state["counts"][2]) == (1, 29)
    assert np.count_nonzero(state["slots"][0] > 0) == 1
    merger = runs.merger_seconds(problem, run.sgd, "lookup-wd")
    assert min(merger) > 0.0


def test_mergers_are_averaged_over_the_rows_within_the_margin():
    values = np.array([[2.0], [0.0], [0.0], [-2.0]])
    sgd = SimpleNamespace(model=lambda: SimpleNamespace(decision_values=lambda X: values))
    problem = SimpleNamespace(X=None, y=np.array([1, 1, -1, 1]))
    assert runs._positive_share(problem, sgd) == pytest.approx(2 / 3)


def test_the_published_machine_of_bsgd_is_that_of_the_last_step():
    problem = load_problem("patches", n_rows=400)
    rules = ("gss-paper", *runs.PUBLISHED[:2])
    settings = [runs.settings_of(problem, 20, rule) for rule in rules]
    assert [(s.merge, s.average) for s in settings] == [("gss-paper", True), ("gss-paper", False), ("lookup-wd", False)]


def test_the_program_with_the_full_square_merges_as_ours_does():
    """On the same rows, nearly as often: its table orders near copies otherwise."""
    problem = runs.load("patches", 2000)
    rule = "lookup-wd" + runs.LAST_STEP
    ours = runs.train(problem, 50, [rule], 3, 0)[rule]
    score, steps, mergers = full_square.train(problem, 50, 3, 0)
    assert steps == ours.steps
    assert mergers == pytest.approx(ours.mergers, rel=0.15)
    assert score == pytest.approx(runs.accuracy(problem, ours.sgd), abs=3.0)


def test_lemma_1_of_bsgd():
    """h jumps on {1/2} x [0, e^-2] and is continuous elsewhere; wd is continuous everywhere."""
    merge, step, kappa = full_square.merge, 1e-5, np.linspace(0.01, 0.99, 99)
    (h_low, wd_low), (h_high, wd_high) = (merge(np.full(99, m), kappa) for m in (0.5 - step, 0.5 + step))
    jumps = np.abs(h_high - h_low) > 0.1
    assert np.array_equal(jumps, kappa < np.exp(-2))
    assert np.abs(wd_high - wd_low).max() < 1e-3
    for m in (0.3, 0.45, 0.55, 0.8):
        (h, wd), (h_next, wd_next) = (merge(np.full(99, at), kappa) for at in (m, m + step))
        assert np.abs(h_next - h).max() < 1e-2
        assert np.abs(wd_next - wd).max() < 1e-3
