"""What the OCAS benchmark computes itself is right: objectives, ladders, rivals. The figures are its own to measure."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from evidence._ocas import large, ours, reach, rivals
from measuring import linear_problems as problems

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5)).astype(np.float32)
LABELS = np.where(X @ np.arange(5) + RNG.normal(size=200) > 0, 1, -1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_objective_is_the_naive_one(form: Any) -> None:
    classes = RNG.integers(3, size=200)
    W = RNG.normal(size=(3, 5))
    hinges = np.maximum(0.0, 1.0 - np.where(classes[:, None] == np.arange(3), 1, -1) * (X @ W.T))
    naive = 0.5 * (W**2).sum() + 2.0 * hinges.sum()
    assert problems.objective(problems.make_linear("x", form(X), classes), W, 2.0) == pytest.approx(naive)


def test_a_smaller_sample_is_the_beginning_of_a_larger_one() -> None:
    few, few_labels = problems.two_gaussians(50, 4)
    many, many_labels = problems.two_gaussians(100_050, 4)
    assert np.array_equal(many[:50], few)
    assert np.array_equal(many_labels[:50], few_labels)
    assert set(many_labels) == {-1, 1}


def test_a_ladder_is_climbed_and_refined() -> None:
    trials = reach.climb(lambda e: reach.Trial(e, 0.01 * e, 100 / e), lambda k: 2**k, goal=10.0, limit=1.0)
    assert [trial.effort for trial in trials[:5]] == [1, 2, 4, 8, 16]
    assert min(trial.effort for trial in trials if trial.objective <= 10) in (10, 11)
    given_up = reach.climb(lambda e: reach.Trial(e, 0.3 * e, 100.0 / e), lambda k: 2**k, goal=10.0, limit=1.0)
    assert [trial.effort for trial in given_up] == [1, 2]  # the next would take 1.2 seconds


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rivals_come_near_the_optimum(form: Any) -> None:
    problem = problems.make_linear("x", form(X), LABELS)
    best, bound = ours.reference(problem, 0.1, 10.0)
    assert bound <= best <= bound * (1 + 2e-6)
    for rival in rivals.RIVALS:
        W = rival.fit(rival.prepare(problem.X), problem, 0.1, 10_000 if rival.name == "Snap ML" else 500)
        assert bound <= problems.objective(problem, W, 0.1) <= 1.02 * best, rival.name


def test_what_was_not_reached_is_a_lower_bound() -> None:
    facts = {"set": "ijcnn1", "form": "dense", "n": 10, "d": 2, "C": 1.0, "best": 100.0, "bound": 99.95, "kind": "fit"}
    rows = [
        {**facts, "competitor": "OCAS", "seconds": 2.0, "objective": 100.05},
        {**facts, "competitor": "LIBLINEAR", "seconds": 3.0, "objective": 101.0},
        {**facts, "competitor": "LIBLINEAR", "seconds": 8.0, "objective": 100.2},
        {**facts, "competitor": "Pegasos", "seconds": 5.0, "objective": 100.1},
        {**facts, "competitor": "Pegasos", "seconds": 4.0, "objective": 100.11},
    ]
    (line,) = reach.summary(rows)
    assert (line["LIBLINEAR"], line["LIBLINEAR reached"]) == (8.0, False)
    assert (line["Pegasos"], line["Pegasos / OCAS"]) == (5.0, 2.5)


def test_large_problems_take_little_memory_beside_their_rows() -> None:
    for name in ("gaussians", "letters"):
        row = large.measure(name, 40_000, 1e-3)
        assert row["converged"], name
        assert row["extra_mb"] < 100, name
