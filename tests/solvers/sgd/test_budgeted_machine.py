"""Passes over rows against the papers' pseudo-code, step by step in float64."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import budget as naive
from widemargin.kernels.functions import Kernel, make_kernel
from widemargin.solvers.sgd import budgeted_machine as sgd
from widemargin.solvers.sgd.budgeted_machine import RULES, BudgetedMachine, MergingMachine, StepSettings, make_machine

LAM = 0.01


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgd, "TILE_STEPS", 8)


def data(n: int = 90, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and their signed weights (n,), no two of which are equal in magnitude."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0) * rng.uniform(0.5, 1.5, n)


def settings_for(kernel: Kernel, **options: Any) -> StepSettings:
    return StepSettings(kernel, LAM, **({"budget": 10, "average": False, "merge": "gss-precise"} | options))


def run(settings: StepSettings, X: Any, signed_weights: np.ndarray) -> BudgetedMachine:
    machine = make_machine(settings, X)
    machine.run(X, np.arange(X.shape[0]), signed_weights)
    return machine


def decide(machine: BudgetedMachine, kernel: naive.KernelFunction, Z: np.ndarray) -> np.ndarray:
    points, coef, intercept = machine.expansion()
    dense = points.toarray() if sp.issparse(points) else points
    return np.array([sum(c * kernel(p, z) for c, p in zip(coef, dense, strict=True)) + intercept for z in Z])


def rbf(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.exp(-0.4 * np.sum((np.asarray(p, np.float64) - q) ** 2)))


def polynomial(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.dot(np.asarray(p, np.float64), q) * 0.4 + 1.0) ** 2


def twin(
    kernel: naive.KernelFunction, X: np.ndarray, signed_weights: np.ndarray, maintain_budget: Any
) -> naive.Machine:
    machine = naive.Machine(kernel, LAM, 10)
    for x, p in zip(X.astype(np.float64), signed_weights, strict=True):
        machine.step(x, p, maintain_budget)
        machine.trace.append((list(machine.points), list(machine.coef)))
    return machine


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gss_paper_is_algorithm_1_line_by_line(form: Any) -> None:
    """Support vectors and coefficients are the twin's; those of merge="gss" are not."""
    X, signed_weights = data()
    slow = twin(rbf, X, signed_weights, naive.algorithm_1)
    kernel = make_kernel("rbf", gamma=0.4)
    fast = run(settings_for(kernel, merge="gss-paper"), form(X), signed_weights)
    points, coef, _ = fast.expansion()
    np.testing.assert_allclose(np.sort(coef), np.sort(slow.coef), rtol=1e-4)
    np.testing.assert_allclose(points[np.argsort(coef)], np.array(slow.points)[np.argsort(slow.coef)], atol=1e-4)
    assert fast.totals().mergers == slow.n_mergers > 20
    assert fast.totals().degradation == pytest.approx(slow.degradation, rel=1e-4)
    other = run(settings_for(kernel, merge="gss"), form(X), signed_weights).expansion()
    assert np.abs(np.sort(other.coef) - np.sort(slow.coef)).max() > 1e-3 * np.abs(slow.coef).max()


@pytest.mark.parametrize("first", ["gss-paper", "lookup-wd"])
@pytest.mark.parametrize("budget", [15, 47])
def test_a_state_continues_with_another_merge_rule(first: str, budget: int) -> None:
    X, signed_weights = data(200)
    settings = settings_for(make_kernel("rbf", gamma=4.0), merge=first, budget=budget, average=True)
    second = replace(settings, merge="lookup-wd" if first == "gss-paper" else "gss-paper")
    machine = make_machine(settings, X)
    machine.run(X, np.arange(100), signed_weights)
    other = make_machine(second, X, machine.state())
    for a, b in zip(machine.expansion(), other.expansion(), strict=True):
        np.testing.assert_array_equal(a, b)
    other.run(X, np.arange(100, 200), signed_weights)
    assert len(other) == budget


@pytest.mark.parametrize(("maintenance", "maintain_budget"), [("removal", naive.remove), ("projection", naive.project)])
@pytest.mark.parametrize(
    ("name", "function", "form"),
    [("rbf", rbf, np.asarray), ("rbf", rbf, sp.csr_array), ("poly", polynomial, np.asarray)],
)
def test_removal_and_projection_agree_with_twins(
    maintenance: str, maintain_budget: Any, name: str, function: Any, form: Any
) -> None:
    X, signed_weights = data(d=4)
    kernel = make_kernel(name, gamma=0.4, degree=2, coef0=1.0)
    slow = twin(function, X, signed_weights, maintain_budget)
    fast = run(settings_for(kernel, maintenance=maintenance), form(X), signed_weights)
    expected = np.array([slow.decision_values(z) for z in X])
    np.testing.assert_allclose(decide(fast, function, X), expected, atol=1e-3 * np.abs(expected).max())
    assert fast.totals().degradation == pytest.approx(slow.degradation, rel=1e-2)
    assert fast.totals().removals > 15


@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
def test_the_average_is_exact_without_budget_maintenance(maintenance: str) -> None:
    X, signed_weights = data(40)
    slow = naive.Machine(rbf, LAM, 100)
    for x, p in zip(X.astype(np.float64), signed_weights, strict=True):
        slow.step(x, p, naive.remove)
        slow.trace.append((list(slow.points), list(slow.coef)))
    settings = settings_for(make_kernel("rbf", gamma=0.4), maintenance=maintenance, budget=40, average=True)
    t = np.arange(1.0, 41)
    weights = (t + 1) * (t + 2) * (t + 3) / np.sum((t + 1) * (t + 2) * (t + 3))
    values = [[sum(c * rbf(p, z) for c, p in zip(a, b, strict=True)) for b, a in slow.trace] for z in X[:10]]
    fast = decide(run(settings, X, signed_weights), rbf, X[:10])
    np.testing.assert_allclose(fast, np.array(values) @ weights, atol=1e-4 * np.abs(values).max())


@pytest.mark.parametrize(
    ("maintenance", "merge"),
    [("merge", "lookup-wd"), ("merge", "gss-paper"), ("removal", "gss"), ("projection", "gss")],
)
def test_weights_of_the_average_grow_with_budget_maintenance(maintenance: str, merge: str) -> None:
    """By 3 / t with every step, and by 1 / budget with every merger, removal or projection."""
    X, signed_weights = data()
    machine = make_machine(settings_for(make_kernel("rbf", gamma=0.4), maintenance=maintenance, merge=merge), X)
    weights, n_before = [1.0], 0
    for t in range(1, len(X) + 1):
        machine.run(X, np.array([t - 1]), signed_weights)
        n_events = machine.totals().mergers + machine.totals().removals
        weights.append(weights[-1] * (1 + 3 / t + (n_events - n_before) / 10))
        n_before = n_events
    assert n_before > 15
    assert machine.sums[sgd.WEIGHT_SUM] == pytest.approx(sum(weights[1:]))
    assert machine.sums[sgd.STEP_SIZE_SUM] == pytest.approx(sum(w / t for t, w in enumerate(weights[1:], 1)))


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
def test_the_average_restarts_where_it_makes_more_mistakes(maintenance: str) -> None:
    """Page's cumulative sum of mistakes, limit 4, over every fourth row: with labels inverted half-way."""
    X, signed_weights = data(480)
    signed_weights = np.where(X[:, 0] > 0, 1.0, -1.0)  # separable: the machine of the last step makes few mistakes
    signed_weights[240:] *= -1.0
    settings = settings_for(make_kernel("rbf", gamma=0.4), maintenance=maintenance, budget=480, fit_intercept=True)
    averaged = make_machine(replace(settings, average=True), X)
    last, excess, restarts = make_machine(settings, X), 0, []
    trace: list[np.ndarray] = []
    weights: list[float] = []
    for t in range(len(X)):
        if t % 4 == 0 and weights:
            sign, f = np.sign(signed_weights[t]), trace[-1][t]
            average = np.dot(weights, [values[t] for values in trace[-len(weights) :]])
            excess = max(0, excess + int(sign * average <= 0) - int(sign * f <= 0))
            if excess >= 4:
                weights, excess = [], 0
                restarts.append(t)
        last.run(X, np.array([t]), signed_weights)
        averaged.run(X, np.array([t]), signed_weights)
        points, coef, intercept = last.expansion()
        trace.append(np.exp(-0.4 * ((X[:, None] - points) ** 2).sum(-1)) @ coef + intercept)
        weights.append((weights[-1] if weights else 1.0) * (1 + 3 / (t + 1)))
    assert restarts
    assert min(restarts) > 240
    expected = np.dot(weights, trace[-len(weights) :]) / np.sum(weights)
    np.testing.assert_allclose(decide(averaged, rbf, X[:20]), expected[:20], atol=1e-4 * np.abs(expected).max())
    assert averaged.counts[sgd.EXCESS_MISTAKES] == excess


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
def test_weights_beyond_float64(maintenance: str) -> None:
    """Weights grow by 1.5 with every merger: they are rescaled before they overflow, and old sums vanish."""
    X, signed_weights = data(3300)
    options = {"maintenance": maintenance, "budget": 2, "fit_intercept": True}
    settings = settings_for(make_kernel("rbf", gamma=0.4), average=True, **options)
    machine = run(settings, X, signed_weights)
    totals = machine.totals()
    assert totals.mergers + totals.removals > 1760  # 1.5^1760 is beyond float64
    averaged, last = machine.expansion(), run(replace(settings, average=False), X, signed_weights).expansion()
    assert np.isfinite(averaged.coef).all()
    np.testing.assert_allclose(averaged.coef, last.coef, rtol=0.1)
    np.testing.assert_allclose(averaged.intercept, last.intercept, rtol=0.1, atol=1e-3)


def test_points_of_small_scale_are_rescaled() -> None:
    X, signed_weights = data()
    settings = settings_for(make_kernel("rbf", gamma=0.4), merge="lookup-wd")
    plain, tiny = run(settings, X[:60], signed_weights[:60]), run(settings, X[:60], signed_weights[:60])
    tiny.arrays.points[:] *= np.float32(2.0**60)  # type: ignore[attr-defined]
    tiny.arrays.slots[sgd.SCALE] /= 2.0**60  # type: ignore[attr-defined]
    for machine in (plain, tiny):
        machine.run(X, np.arange(60, 90), signed_weights)
    assert (tiny.arrays.slots[sgd.SCALE] == 1).any()  # type: ignore[attr-defined]
    np.testing.assert_allclose(tiny.expansion().points, plain.expansion().points, atol=1e-5)
    np.testing.assert_allclose(tiny.expansion().coef, plain.expansion().coef, rtol=1e-4)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
def test_intercept_is_a_constant_feature(maintenance: str, average: bool) -> None:
    X, signed_weights = data(40)
    options = {"maintenance": maintenance, "budget": 40, "average": average}
    machine = run(settings_for(make_kernel("rbf", gamma=0.4), fit_intercept=True, **options), X, signed_weights)
    slow = naive.Machine(lambda p, q: rbf(p, q) + 1.0, LAM, 100)
    for x, p in zip(X.astype(np.float64), signed_weights, strict=True):
        slow.step(x, p, naive.remove)
    assert machine.expansion().intercept != 0
    if not average:
        np.testing.assert_allclose(decide(machine, rbf, X), [slow.decision_values(z) for z in X], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("merge", ["lookup-wd", "gss-paper"])
def test_the_only_support_vector_of_its_sign_is_removed(merge: str) -> None:
    X, _ = data(60)
    signed_weights = np.ones(60)
    signed_weights[3] = -0.1  # the smallest coefficient, and the only one of its sign
    machine = run(settings_for(make_kernel("rbf", gamma=50.0), budget=4, merge=merge), X, signed_weights)
    assert machine.totals().removals == 1
    assert np.all(machine.expansion().coef > 0)


def test_mergers_of_equal_points_add_their_coefficients() -> None:
    X = np.tile(np.array([[0.5, -1.0]], np.float32), (30, 1))
    machine = run(settings_for(make_kernel("rbf", gamma=0.4), budget=2), X, np.ones(30) * 1e-6)
    points, coef, _ = machine.expansion()
    np.testing.assert_allclose(points, X[: len(points)], atol=1e-6)
    assert coef.sum() == pytest.approx(30e-6 / (LAM * 30), rel=1e-9)  # the sum of all steps


@pytest.mark.parametrize("merge", RULES)
@pytest.mark.parametrize("size", [1e-300, 1e100])
def test_mergers_do_not_depend_on_the_unit_of_the_weights(merge: str, size: float) -> None:
    """Mergers depend on ratios of coefficients, which may be beyond float32."""
    X, _ = data(40)
    kernel = make_kernel("rbf", gamma=0.4)
    runs = [run(StepSettings(kernel, scale, budget=10, merge=merge), X, np.full(40, scale)) for scale in (1.0, size)]
    (points, coef, _), (others, sizes, _) = (machine.expansion() for machine in runs)
    assert runs[0].totals().mergers == runs[1].totals().mergers > 5
    np.testing.assert_allclose(others, points, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sizes, coef, rtol=1e-4)


def test_coefficients_are_exact_after_many_steps() -> None:
    """After 10^9 steps, as lam t w is kept and no step scales coefficients."""
    X, signed_weights = data(20)
    machine = run(settings_for(make_kernel("rbf", gamma=0.4), budget=50), X, signed_weights)
    assert isinstance(machine, MergingMachine)
    before = machine.expansion().coef * LAM * 20
    machine.counts[0] = 10**9
    np.testing.assert_allclose(machine.expansion().coef * LAM * 1e9, before, rtol=1e-12)


def test_rows_of_weight_zero_change_nothing_but_the_step_count() -> None:
    X, signed_weights = data(50)
    machine = run(settings_for(make_kernel("rbf", gamma=0.4)), X, signed_weights)
    coef = machine.coef[0].copy()
    machine.run(X, np.arange(50), np.zeros(50))
    np.testing.assert_array_equal(machine.coef[0], coef)
    assert machine.totals().steps == 100


def test_merging_needs_the_gaussian_kernel() -> None:
    with pytest.raises(ValueError, match="Gaussian"):
        make_machine(settings_for(make_kernel("linear")), np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_sparse_chunks_after_dense_ones(width: Any) -> None:
    """Dense rows are shifted by the first one: later sparse rows must be, too."""
    X, signed_weights = data(120, d=6)
    X[::2, :3] = 0
    settings = settings_for(make_kernel("rbf", gamma=0.4), merge="lookup-wd")
    dense, mixed = make_machine(settings, X), make_machine(settings, X)
    sparse = sp.csr_array(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(width), sparse.indptr.astype(width)
    for rows, machine in ((X, dense), (sparse, mixed)):
        machine.run(X, np.arange(40), signed_weights)
        machine.run(rows, np.arange(40, 120), signed_weights)
    assert dense.expansion().coef.size == 10
    for a, b in zip(dense.expansion(), mixed.expansion(), strict=True):
        np.testing.assert_array_equal(a, b)
