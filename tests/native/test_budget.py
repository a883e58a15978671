"""Compiled steps on a budget: against the papers' pseudo-code, and with arguments and states that lie."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import budget as naive
from widemargin._native import budget
from widemargin._native import csr as native_csr
from widemargin.data.csr import make_csr
from widemargin.solvers.sgd.budgeted_machine import RULES
from widemargin.solvers.sgd.lookup_table import tabulate

GAMMA, LAM, BUDGET = 0.4, 0.01, 10
quick = settings(max_examples=25, deadline=None, derandomize=True)
FRONT, BACK, MERGERS, REMOVALS, WEIGHT, DEGRADATION = 1, 2, 4, 5, 3, 6
POINTS = ("points", "slots", "counts", "sums", "shift")


@pytest.fixture(scope="module")
def grids() -> Any:
    return budget.MergeGrids(tabulate(200))


def rbf(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.exp(-GAMMA * np.sum((np.asarray(p, np.float64) - q) ** 2)))


def data(n: int = 120, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.3, 0, rng.normal(size=(n, d))).astype(np.float32)
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0) * rng.uniform(0.5, 1.5, n)


def csr(X: np.ndarray) -> Any:
    return make_csr(sp.csr_array(X))


def run(state: Any, X: Any, order: Any, signed_weights: Any, grids: Any, rule: str = "lookup-wd") -> None:
    state.run(X, order, signed_weights, grids, rule, GAMMA, 1 / LAM, False)


def slow_machine(
    X: np.ndarray, signed_weights: np.ndarray, make_room: Callable[[naive.Machine], None]
) -> naive.Machine:
    machine = naive.Machine(rbf, LAM, BUDGET)
    for x, weight in zip(X.astype(np.float64), signed_weights, strict=True):
        machine.step(x, weight, make_room)
    return machine


def search(own: Any, coef: Any, log_kappa: Any, sizes: Any, grids: Any, rule: str) -> tuple[np.ndarray, np.ndarray]:
    partners, found = np.full(len(own), 99, np.int64), np.full((len(own), 2), np.nan)
    budget.find_partners(own, coef, log_kappa, sizes, grids, rule, partners, found)
    return partners, found


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "gss-paper"])  # whose h is inexact
@settings(quick, max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.01, 0.3, 2.0, 30.0]), sign=st.sampled_from([1.0, -1.0])
)
def test_search_finds_what_an_exhaustive_one_finds(
    rule: str, seed: int, spread: float, sign: float, grids: Any
) -> None:
    rng = np.random.default_rng(seed)
    coef = sign * rng.uniform(1, 10, (3, 20))
    log_kappa = (-spread * rng.exponential(size=(3, 20))).astype(np.float32)
    sizes = rng.integers(1, 21, 3)
    partners, found = search(np.full(3, sign), coef, log_kappa, sizes, grids, rule)
    for p, (h, lost) in enumerate(found):
        a, kappa = np.append(sign, coef[p, : sizes[p]]), np.exp(np.append(0, log_kappa[p, : sizes[p]].astype(float)))
        _, _, least = naive.find_partner(0, a, kappa)
        assert 0 <= partners[p] < sizes[p]
        total = sign + a[partners[p] + 1]
        real = total**2 * naive.degradation(h, a[partners[p] + 1] / total, kappa[partners[p] + 1])
        assert lost == pytest.approx(real, rel=2e-3, abs=1e-9 * total**2)
        assert real <= least * (1 + 2e-3) + 1e-6 * total**2


@quick
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.01, 0.3, 2.0, 30.0]))
def test_gss_paper_finds_the_h_of_golden_section_search(seed: int, spread: float, grids: Any) -> None:
    rng = np.random.default_rng(seed)
    coef, log_kappa = rng.uniform(1, 10, (20, 1)), -spread * rng.exponential(size=(20, 1))
    log_kappa = log_kappa.astype(np.float32)
    _, found = search(np.ones(20), coef, log_kappa, np.ones(20, np.int64), grids, "gss-paper")
    for (h, lost), a, e in zip(found, coef[:, 0], log_kappa[:, 0].astype(float), strict=True):
        m = a / (a + 1)
        expected = naive.golden_section(lambda x, m=m, e=e: float(naive.s(x, m, np.exp(e))), 0.0, 1.0, 0.01)
        values = [float(naive.s(x, m, np.exp(e))) for x in (h, expected)]
        assert h == pytest.approx(expected, abs=1e-9) or values[0] == pytest.approx(values[1], rel=1e-6)
        assert lost == pytest.approx((a + 1) ** 2 * naive.degradation(h, m, np.exp(e)), rel=1e-3, abs=1e-9 * a**2)


@pytest.mark.parametrize("rule", RULES)
def test_search_passes_over_what_is_beyond_its_sizes(rule: str, grids: Any) -> None:
    coef, log_kappa = np.full((2, 40), 2.0), np.full((2, 40), -1.0, np.float32)
    log_kappa[:, 17:] = 0
    partners, found = search(np.ones(2), coef, log_kappa, np.array([17, 0]), grids, rule)
    assert 0 <= partners[0] < 17
    assert partners[1] == -1
    assert found[1].tolist() == [0, 0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [np.nan, -np.inf, 0.0, 1e-320, 1e308])
def test_search_among_numbers_that_are_none(rule: str, value: float, grids: Any) -> None:
    for own, a, e in ((value, 2.0, -1.0), (1.0, value, -1.0), (1.0, 2.0, value)):
        coef, log_kappa = np.full((2, 20), 2.0), np.full((2, 20), -1.0, np.float32)
        with np.errstate(over="ignore"):
            coef[0, ::3], log_kappa[0, ::3], coef[1], log_kappa[1] = a, e, a, e
        partners, _ = search(np.full(2, own), coef, log_kappa, np.array([19, 20]), grids, rule)
        assert np.all((partners >= 0) & (partners < 20))


@pytest.mark.parametrize(
    ("grids", "error"),
    [
        (np.ones((2, 3, 3)), TypeError),
        (np.ones((2, 1, 1), np.float32), ValueError),
        (np.full((2, 3, 3), np.nan, np.float32), ValueError),
        (np.full((2, 3, 3), 1.5, np.float32), ValueError),
    ],
)
def test_grids(grids: np.ndarray, error: type[Exception]) -> None:
    with pytest.raises(error):
        budget.MergeGrids(grids)


def test_the_largest_grid_is_that_which_float32_numbers() -> None:
    with pytest.raises(ValueError, match="4096"):
        budget.MergeGrids(np.zeros((2, 4097, 4097), np.float32))


@pytest.mark.parametrize("form", [np.asarray, csr])
@pytest.mark.parametrize("rule", RULES)
def test_merging_is_the_papers(rule: str, form: Any, grids: Any) -> None:
    X, signed_weights = data()
    slow = slow_machine(X, signed_weights, naive.algorithm_1 if rule == "gss-paper" else naive.merge)
    state = budget.MergingState(X.shape[1], BUDGET)
    run(state, form(X), np.arange(len(X)), signed_weights, grids, rule)
    assert state.counts[MERGERS] == slow.n_mergers > 20
    assert state.sums[DEGRADATION] == pytest.approx(slow.degradation, rel=1e-2)
    used = np.flatnonzero(state.slots[0])
    points = (state.points * state.slots[3])[:, used].T
    coef = state.slots[0, used] / (LAM * len(X))
    f = [sum(c * rbf(p, x) for c, p in zip(coef, points, strict=True)) for x in X]
    expected = np.array([slow.decision_values(x) for x in X])
    np.testing.assert_allclose(f, expected, atol=3e-3 * np.abs(expected).max())


@pytest.mark.parametrize("rule", RULES)
def test_dense_and_sparse_rows_and_strided_ones_are_the_same(rule: str, grids: Any) -> None:
    X, signed_weights = data(200, 7)
    wide, order = np.zeros((200, 20), np.float32), np.random.default_rng(1).permutation(200)
    wide[:, 3:10] = X
    states = []
    for rows in (X, csr(X), wide[:, 3:10]):
        states.append(budget.MergingState(7, BUDGET))
        for part in np.array_split(order, 3):
            run(states[-1], rows, part, signed_weights, grids, rule)
    for state in states[1:]:
        for name in POINTS:
            np.testing.assert_array_equal(getattr(state, name), getattr(states[0], name))


def test_rows_whose_columns_repeat_are_read_within_their_bounds(grids: Any) -> None:
    """More entries than features: such rows never come from an estimator."""
    rows = native_csr.CSRMatrix(np.ones(60, np.float32), np.zeros(60, np.int32), np.array([0, 0, 50, 60]), 1)
    state = budget.MergingState(1, 2)
    run(state, rows, np.array([0, 1, 2, 1]), np.array([1.0, 1.0, -1.0]), grids)
    assert state.counts[0] == 4


def test_arrays_outlive_their_machine() -> None:
    state = budget.MergingState(1000, 100)
    arrays = [getattr(state, name) for name in POINTS]
    del state
    gc.collect()
    for array in arrays:
        array[:] = 1
    assert [array.shape for array in arrays] == [(1000, 112), (4, 112), (7,), (7,), (1000,)]


@pytest.mark.parametrize("features", [0, 3])
@pytest.mark.parametrize("most", [1, 15, 16, 200])
def test_sizes_of_machines(features: int, most: int, grids: Any) -> None:
    rng = np.random.default_rng(0)
    X, signed_weights = rng.normal(size=(300, features)).astype(np.float32), rng.choice([-1.0, 1.0], 300)
    state = budget.MergingState(features, most)
    assert state.points.shape[1] % 32 == 16
    run(state, X, np.arange(300), signed_weights, grids)
    assert state.counts[FRONT] + state.counts[BACK] == most
    assert np.count_nonzero(state.slots[0]) == most


@pytest.mark.parametrize("sizes", [[1, 5], [-1, 1]])
def test_sizes_of_a_search_are_those_of_its_arrays(sizes: list[int], grids: Any) -> None:
    arrays = np.ones(2), np.ones((2, 4)), np.zeros((2, 4), np.float32), np.array(sizes)
    with pytest.raises(IndexError):
        budget.find_partners(*arrays, grids, "gss", np.empty(2, np.int64), np.empty((2, 2)))


@pytest.mark.parametrize("order", [[0, 6], [-1]])
@pytest.mark.parametrize("form", [np.asarray, csr])
def test_steps_are_of_rows(form: Any, order: list[int], grids: Any) -> None:
    state, X = budget.MergingState(3, 2), np.ones((6, 3), np.float32)
    with pytest.raises(IndexError):
        state.run(form(X), np.array(order), np.ones(6), grids, "gss", 1.0, 1.0, True)
    assert not state.counts.any()


@pytest.mark.parametrize("steps", [budget.removal_steps, budget.projection_steps])
@pytest.mark.parametrize(("first", "most"), [(11, 10), (-1, 10), (10, 0)])
def test_a_block_begins_within_its_columns(first: int, most: int, steps: Any) -> None:
    arrays = np.zeros((2, 14)), np.zeros((14, 14)), np.zeros(7, np.int64), np.eye(7)[WEIGHT]
    with pytest.raises(ValueError, match=r"K|budget|first"):
        steps(np.zeros((4, 14), np.float32), first, np.ones(14), np.ones(4), *arrays, most, 1.0, False)


@pytest.mark.parametrize(("n_features", "most"), [(-1, 5), (3, 0), (3, -2), (2**31, 5), (3, 2**31)])
def test_machines_of_no_size(n_features: int, most: int) -> None:
    with pytest.raises(ValueError, match=r"n_features|budget"):
        budget.MergingState(n_features, most)


@pytest.mark.parametrize(
    "counts",
    [
        (0, -1, 0, 0, 0, 0, 0),
        (0, 0, -1, 0, 0, 0, 0),
        (0, 11, 0, 0, 0, 0, 0),
        (0, 6, 5, 0, 0, 0, 0),
        (0, 2**62, 2**62, 0, 0, 0, 0),  # their sum overflows
        (0, 2**63 - 1, 2**63 - 1, 0, 0, 0, 0),
        (-5, 0, 0, 0, 0, 0, 0),
        (2**63 - 1, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, -(2**63), 0, 0),
    ],
)
def test_counts_that_cannot_be(counts: tuple[int, ...], grids: Any) -> None:
    X, signed_weights = data()
    state = budget.MergingState(X.shape[1], BUDGET)
    state.counts[:] = counts
    with pytest.raises(ValueError, match="counts"):
        run(state, X, np.arange(len(X)), signed_weights, grids)
    K, arrays = np.zeros((2, 14), np.float32), (np.zeros((2, 14)), np.zeros((14, 14)))
    for steps in (budget.removal_steps, budget.projection_steps):
        with pytest.raises(ValueError, match="counts"):
            steps(K, 10, np.ones(14), np.ones(2), *arrays, state.counts, state.sums, BUDGET, 1.0, False)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("what", "n_points"),
    [
        ("random", (10, 0)),
        ("random", (3, 4)),
        ("nan", (0, 10)),
        ("swapped", (3, 4)),
        ("swapped", (0, 10)),
        ("zero", (10, 0)),
    ],
)
def test_states_that_cannot_be(what: str, n_points: tuple[int, int], rule: str, grids: Any) -> None:
    """Whatever was written into a machine: numbers that mean nothing, but no slot beyond the last."""
    X, signed_weights = data()
    state, rng = budget.MergingState(X.shape[1], BUDGET), np.random.default_rng(0)
    state.slots[:] = rng.normal(size=state.slots.shape)  # signs in the wrong places, points in empty slots
    state.points[:] = rng.normal(size=state.points.shape)
    if what == "swapped":
        state.slots[0] = np.where(np.arange(state.slots.shape[1]) < n_points[0], -1e-3, 1e-3)
    elif what != "random":
        value = {"nan": np.nan, "zero": 0.0}[what]
        state.slots[:, ::2] = state.sums[::2] = state.points[1] = state.shift[1] = value
    state.counts[FRONT : BACK + 1] = n_points
    for rows in (X, csr(X)):
        run(state, rows, np.arange(len(X)), signed_weights, grids, rule)
        front, back = state.counts[FRONT : BACK + 1]
        assert min(front, back) >= 0
        assert front + back <= BUDGET


def test_rows_that_are_no_numbers(grids: Any) -> None:
    X, signed_weights = data()
    X[5], X[9], X[14], signed_weights[20], signed_weights[31] = np.nan, np.inf, 3e38, np.nan, np.inf
    for rule in RULES:
        state = budget.MergingState(X.shape[1], BUDGET)
        for gamma in (GAMMA, np.nan, np.inf, -1.0):
            state.run(X, np.arange(len(X)), signed_weights, grids, rule, gamma, np.nan, True)
            assert state.counts[FRONT] + state.counts[BACK] <= BUDGET


def test_two_threads_on_one_machine(grids: Any) -> None:
    """Its numbers are then nobody's, but nothing breaks."""
    X, signed_weights = data(2000)
    state = budget.MergingState(X.shape[1], BUDGET)
    with ThreadPoolExecutor(4) as pool:
        for rows in (X, csr(X)) * 4:
            pool.submit(run, state, rows, np.arange(len(X)), signed_weights, grids)
    assert state.counts[FRONT] + state.counts[BACK] <= BUDGET


class Fixed:
    """The arrays of a machine whose points stay, with room for all rows: columns are never closed up."""

    def __init__(self, n: int) -> None:
        self.coef, self.inverse = np.zeros((2, n)), np.zeros((n, n))
        self.counts, self.sums = np.zeros(7, np.int64), np.eye(7)[WEIGHT]

    def run(self, steps: Any, K: np.ndarray, first: int, signed_weights: np.ndarray) -> None:
        rule = BUDGET, 1 / LAM, False
        diagonal = np.ones(K.shape[1])
        steps(K, first, diagonal, signed_weights, self.coef, self.inverse, self.counts, self.sums, *rule)


def test_a_dependent_point_is_projected_at_once() -> None:
    K = np.ones((2, 2), np.float32)
    fast = Fixed(2)
    fast.run(budget.projection_steps, K, 0, np.array([1.0, -5.0]))
    np.testing.assert_allclose(fast.coef[0], [-4, 0])
    assert fast.counts[FRONT] == 1
