"""The compiled dual solvers against their naive twins: working sets, the violation, and rows added up."""

import gc
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import dual as naive
from widemargin._native import LEVEL, Stopped, Team, dual, kernels

Vector = NDArray[np.float64]
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
ALONE = Team(1)

quick = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([SINGLE, DOUBLE])


class Problem(NamedTuple):
    K: NDArray[np.float64]
    y: Vector
    upper: Vector

    @property
    def terms(self) -> Any:
        scale = 1.0 / np.sqrt(np.maximum(self.K.diagonal(), 1e-12 * max(self.K.diagonal().max(), 1e-300)))
        lo, hi = np.where(self.y > 0, 0.0, -self.upper), np.where(self.y > 0, self.upper, 0.0)
        return dual.SeparableTerms(self.y, lo, hi, scale)

    @property
    def Q(self) -> NDArray[np.float64]:
        return naive.signed(self.K, self.y)

    def objective(self, beta: Vector) -> float:
        return float(0.5 * beta @ self.K @ beta - self.y @ beta)

    def violation(self, beta: Vector, has_intercept: bool) -> float:
        signs = self.y if has_intercept else None
        return naive.violation(self.Q, -np.ones(len(beta)), self.upper, self.y * beta, signs)

    def optimum(self, has_intercept: bool) -> float:
        p, signs = -np.ones(len(self.y)), self.y if has_intercept else None
        return naive.objective(self.Q, p, naive.solve_qp(self.Q, p, self.upper, signs))


def make_problem(
    seed: int, m: int, *, rank: int = 4, ridge: float = 0.05, C: float = 1.0, unit: bool = True, zeros: bool = False
) -> Problem:
    """Labels, bounds and a kernel matrix of the given rank plus a ridge; `unit`: of unit diagonal."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(m, rank))
    if not unit:
        F *= 10.0 ** rng.uniform(-1.5, 1.5, size=(m, 1))
    K = F @ F.T
    K += ridge * np.diag(K.diagonal())
    if unit:
        d = 1.0 / np.sqrt(K.diagonal())
        K = d[:, None] * K * d
        np.fill_diagonal(K, 1.0)
    upper = C * rng.choice([0.0, 0.5, 1.0] if zeros else [0.5, 1.0, 2.0], size=m)
    return Problem(K, rng.choice([-1.0, 1.0], size=m), upper)


def make_tile(size: int, dtype: np.dtype) -> Any:
    return dual.Tile32(size) if dtype == SINGLE else dual.Tile64(size)


def solve(
    problem: Problem, *, size: int, tol: float, has_intercept: bool, dtype: np.dtype = DOUBLE, max_sets: int = 500
) -> tuple[Vector, Vector, int, float]:
    """Run `solve_working_sets` from zero: beta, decision values, working sets, violation left."""
    m = len(problem.y)
    beta, f = np.zeros(m), np.zeros(m)
    tile, work = make_tile(size, dtype), dual.WorkingSet(size, m)
    K = problem.K.astype(dtype)
    n_sets, _, _, violation = dual.solve_working_sets(
        ALONE, K, problem.terms, beta, f, tile, work, tol, has_intercept, max_sets
    )
    return beta, f, n_sets, violation


# --- working sets ----------------------------------------------------------------------------------------------------


@settings(quick, max_examples=50)
@given(
    seed=seeds,
    m=st.integers(1, 12),
    share=st.integers(1, 12),
    unit=st.booleans(),
    zeros=st.booleans(),
    C=st.sampled_from([1e-4, 0.1, 1.0, 50.0]),
    dtype=dtypes,
    has_intercept=st.booleans(),
)
def test_working_sets_solve_the_problem(
    seed: int, m: int, share: int, unit: bool, zeros: bool, C: float, dtype: np.dtype, has_intercept: bool
) -> None:
    """Those of any size without an intercept, those of all rows in float64 with one."""
    problem = make_problem(seed, m, ridge=0.1, C=C, unit=unit, zeros=zeros)
    if not unit:
        problem = problem._replace(upper=problem.upper / problem.K.diagonal())
    size, dtype = (m, DOUBLE) if has_intercept else (min(share, m), dtype)
    tol, error = (1e-7, 1e-9) if has_intercept else (1e-6, 1e-6) if dtype == DOUBLE else (1e-3, 1e-3)
    beta, f, _, violation = solve(problem, size=size, tol=tol, has_intercept=has_intercept, dtype=dtype, max_sets=3000)
    terms = problem.terms
    assert (beta >= terms.lo).all()
    assert (beta <= terms.hi).all()
    assert abs(beta.sum()) <= 1e-12 * (1 + np.abs(beta).sum()) or not has_intercept
    np.testing.assert_allclose(f, problem.K @ beta, rtol=min(error, 1e-6), atol=error)
    assert violation < tol
    assert problem.violation(beta, has_intercept) < tol * (1 + 1e-6) + (1e-4 if dtype == SINGLE else 1e-12)
    # sum_i u_i v_i bounds what is left of the objective
    left = 2 * tol * problem.upper.sum() + (1e-6 if has_intercept else 1e-9)
    assert problem.objective(beta) <= problem.optimum(has_intercept) + left + (1e-3 if dtype == SINGLE else 0.0)


@pytest.mark.parametrize("order", ["mixed", "sorted by label", "one of a kind"])
@pytest.mark.parametrize("size", [3, 6])
def test_small_working_sets_solve_the_equality_problem(size: int, order: str) -> None:
    """A working set of one kind of label cannot move, whichever rows have the largest violations."""
    problem = make_problem(3, 24, ridge=0.1)
    y = {
        "mixed": np.where(np.arange(24) % 2, 1.0, -1.0),
        "sorted by label": np.where(np.arange(24) < 12, 1.0, -1.0),
        "one of a kind": np.where(np.arange(24) == 20, 1.0, -1.0),
    }[order]
    problem = problem._replace(y=y)
    beta, _, _, violation = solve(problem, size=size, tol=1e-6, has_intercept=True, max_sets=20_000)
    assert violation < 1e-6
    assert beta.any()
    assert problem.objective(beta) == pytest.approx(problem.optimum(True), abs=1e-5)


@quick
@given(seed=seeds, m=st.integers(2, 10), share=st.integers(1, 10), has_intercept=st.booleans(), dtype=dtypes)
def test_no_working_set_increases_the_objective(
    seed: int, m: int, share: int, has_intercept: bool, dtype: np.dtype
) -> None:
    problem = make_problem(seed, m, rank=2, ridge=0.0, C=5.0)  # singular: many solutions
    beta, f = np.zeros(m), np.zeros(m)
    size = min(share, m)
    tile, work = make_tile(size, dtype), dual.WorkingSet(size, m)
    K = problem.K.astype(dtype)
    values = [0.0]
    for _ in range(30):
        done, *_ = dual.solve_working_sets(ALONE, K, problem.terms, beta, f, tile, work, 1e-3, has_intercept, 1)
        values.append(problem.objective(beta))
        if done == 0:
            break
    assert np.diff(values).max() <= (1e-9 if dtype == DOUBLE else 1e-4)


@pytest.mark.parametrize(("upper", "size", "expected"), [(10.0, 2, 1.5), (1.2, 2, 1.2), (10.0, 3, 1.0)])
def test_steps_that_meet_no_bound_are_longer_where_a_working_set_is_a_small_part(
    upper: float, size: int, expected: float
) -> None:
    """By a half of the step to the optimum, 1 here, but not beyond a bound; and the optimum is found."""
    K, one, zero = np.eye(8), np.ones(8), np.zeros(8)
    args = dual.SeparableTerms(one, zero, np.full(8, upper), one), zero.copy(), zero.copy()
    tile, work = dual.Tile64(size), dual.WorkingSet(size, 8)
    dual.solve_working_sets(ALONE, K, *args, tile, work, 1e-9, False, 1)
    assert args[1][args[1] != 0.0].tolist() == [expected] * size
    *_, violation = dual.solve_working_sets(ALONE, K, *args, tile, work, 1e-9, False, 1000)
    assert violation < 1e-9
    np.testing.assert_allclose(args[1], one)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_identical_rows_end(has_intercept: bool) -> None:
    """Rank one: every pair has curvature 0."""
    y = np.where(np.arange(9) % 2, 1.0, -1.0)
    problem = Problem(np.ones((9, 9)), y, np.full(9, 3.0))
    beta, _, _, violation = solve(problem, size=4, tol=1e-6, has_intercept=has_intercept)
    assert violation < 1e-6
    assert problem.violation(beta, has_intercept) < 1e-6


@pytest.mark.parametrize("has_intercept", [False, True])
def test_rows_of_zero_norm_go_to_their_bound(has_intercept: bool) -> None:
    K = np.eye(6)
    K[[0, 1], [0, 1]] = 0.0  # k(x, x) = 0: the decision value is 0 whatever beta is
    problem = Problem(K, np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), np.full(6, 2.0))
    beta, _, _, violation = solve(problem, size=6, tol=1e-8, has_intercept=has_intercept)
    assert violation < 1e-8
    assert beta[:2].tolist() == [2.0, -2.0]
    np.testing.assert_allclose(beta[2:], [1, -1, 1, -1], atol=1e-7)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_a_kernel_of_zeros_puts_everything_at_its_bound(dtype: np.dtype) -> None:
    problem = Problem(np.zeros((5, 5)), np.array([1.0, -1.0, 1.0, -1.0, 1.0]), np.full(5, 2.0))
    terms = dual.SeparableTerms(problem.y, problem.terms.lo, problem.terms.hi, np.ones(5))
    beta, f = np.zeros(5), np.zeros(5)
    tile, work = make_tile(5, dtype), dual.WorkingSet(5, 5)
    K = np.zeros((5, 5), dtype)
    *_, violation = dual.solve_working_sets(ALONE, K, terms, beta, f, tile, work, 1e-3, False, 50)
    assert violation == 0
    assert beta.tolist() == [2.0, -2.0, 2.0, -2.0, 2.0]


@quick
@given(seed=seeds, m=st.integers(2, 10), has_intercept=st.booleans(), dtype=dtypes)
def test_indefinite_matrices_end_inside_the_box(seed: int, m: int, has_intercept: bool, dtype: np.dtype) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(m, m))
    noise[0, 0] = 1.0  # elsewhere the diagonal may be anything: the scale is made of the largest
    problem = make_problem(seed, m, C=2.0)._replace(K=noise + noise.T)
    beta, _, n_sets, _ = solve(problem, size=m, tol=1e-3, has_intercept=has_intercept, dtype=dtype, max_sets=200)
    assert n_sets <= 200
    assert np.isfinite(beta).all()
    assert (beta >= problem.terms.lo).all()
    assert (beta <= problem.terms.hi).all()
    assert abs(beta.sum()) <= (1e-5 if dtype == SINGLE else 1e-9) or not has_intercept
    assert problem.objective(beta) <= 1e-3


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_bounded_coordinates_equal_their_bound(dtype: np.dtype) -> None:
    """To the last digit: free coordinates are found by comparison."""
    problem = make_problem(5, 10, ridge=1.0, C=0.1 / 3)
    alpha = naive.solve_qp(problem.Q, -np.ones(10), problem.upper)
    beta, *_ = solve(problem, size=10, tol=1e-6, has_intercept=False, dtype=dtype)
    for bound in (np.zeros(10), problem.upper):
        at_bound = alpha == bound
        assert at_bound.any() == (bound > 0).all()
        np.testing.assert_array_equal((problem.y * beta)[at_bound], bound[at_bound])


def test_a_second_call_continues_the_first() -> None:
    problem = make_problem(6, 30, ridge=0.02, C=10.0)
    at_once, *_ = solve(problem, size=6, tol=1e-5, has_intercept=False, max_sets=10_000)
    beta, f = np.zeros(30), np.zeros(30)
    tile, work = make_tile(6, DOUBLE), dual.WorkingSet(6, 30)
    for _ in range(10_000):
        done, _, _, violation = dual.solve_working_sets(
            ALONE, problem.K, problem.terms, beta, f, tile, work, 1e-5, False, 1
        )
        if violation < 1e-5 or not done:
            break
    np.testing.assert_array_equal(beta, at_once)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_working_set_is_the_newer_half_of_the_last_one_and_the_largest_violators(has_intercept: bool) -> None:
    m, size = 400, 32
    rng = np.random.default_rng(0)
    target = rng.uniform(1.0, 2.0, m) * rng.choice([-1.0, 1.0], m)  # K = 1: the violations at zero
    terms = dual.SeparableTerms(target, np.full(m, -9.0), np.full(m, 9.0), np.ones(m))
    beta, f = np.zeros(m), np.zeros(m)
    tile, work, n_moved = dual.Tile64(size), dual.WorkingSet(size, m), 0
    for n_new in (size, size // 2, size // 2):  # in the second and the third, one half is kept, and at its optimum
        dual.solve_working_sets(ALONE, np.eye(m), terms, beta, f, tile, work, 1e-6, has_intercept, 1)
        n_moved += n_new
        moved = beta != 0.0
        assert np.count_nonzero(moved) == n_moved
        for side in (target > 0.0, target < 0.0) if has_intercept else (target != 0.0,):
            violation = np.abs(target[side])
            least = np.sort(violation)[-(n_moved // 2 if has_intercept else n_moved)]
            assert violation[moved[side]].min() > least - 4.0 / 256.0  # the largest, but for a bin of the histogram


# --- violation, choice, products -------------------------------------------------------------------------------------


@quick
@given(seed=seeds, m=st.integers(1, 9), has_intercept=st.booleans(), zeros=st.booleans())
def test_kkt_violation_is_the_naive_one(seed: int, m: int, has_intercept: bool, zeros: bool) -> None:
    problem = make_problem(seed, m, zeros=zeros)
    rng = np.random.default_rng(seed)
    terms = problem.terms
    beta = rng.choice([0.0, 0.3, 1.0], size=m) * (terms.lo + terms.hi)
    f, out = problem.K @ beta, np.full(m, np.nan)
    intercept, worst = dual.kkt_violation(terms, beta, f, has_intercept, out)
    assert worst == pytest.approx(problem.violation(beta, has_intercept), abs=1e-12)
    if not has_intercept:
        assert intercept == 0
        assert np.abs(out).max() == pytest.approx(worst, abs=1e-12)
    g = f - problem.y + intercept
    expected = np.where(beta < terms.hi, np.maximum(-g, 0), 0) - np.where(beta > terms.lo, np.maximum(g, 0), 0)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    if has_intercept and worst > 0:
        assert out.max() == pytest.approx(worst / 2)
        assert out.min() == pytest.approx(-worst / 2)


@pytest.mark.parametrize("at", ["upper", "lower", "both"])
def test_kkt_violation_where_no_coordinate_can_rise_or_none_fall(at: str) -> None:
    """The intercept must be finite."""
    hi = np.zeros(4) if at == "both" else np.ones(4)
    beta = np.ones(4) if at == "upper" else np.zeros(4)
    terms = dual.SeparableTerms(np.ones(4), np.zeros(4), hi, np.ones(4))
    intercept, worst = dual.kkt_violation(terms, beta, np.full(4, 3.0), True, np.empty(4))
    assert worst == 0
    assert np.isfinite(intercept)


@quick
@given(kept=st.lists(st.integers(0, 39), unique=True).map(sorted), dtype=dtypes, spare=st.integers(0, 3))
def test_remove_rows(kept: list[int], dtype: np.dtype, spare: int) -> None:
    K = np.random.default_rng(0).normal(size=(40, 40 + spare)).astype(dtype)
    chosen = np.array(kept, np.int64)
    expected = K[np.ix_(chosen, chosen)]
    kernels.remove_rows(ALONE, K, chosen)
    np.testing.assert_array_equal(K[: len(kept), : len(kept)], expected)


def test_many_rows_are_removed_by_all_threads() -> None:
    rng = np.random.default_rng(0)
    K = rng.normal(size=(2300, 2500)).astype(SINGLE)
    kept = np.sort(rng.choice(2300, 1700, replace=False))
    expected = K[np.ix_(kept, kept)]
    kernels.remove_rows(Team(2), K, kept)
    np.testing.assert_array_equal(K[:1700, :1700], expected)


@pytest.mark.parametrize("kept", [[1, 1], [2, 1], [0, 5], [-1, 2]])
def test_kept_rows_that_are_not_ascending_are_refused(kept: list[int]) -> None:
    K = np.eye(5)
    with pytest.raises((ValueError, IndexError), match="kept"):
        kernels.remove_rows(ALONE, K, np.array(kept))
    np.testing.assert_array_equal(K, np.eye(5))


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("shape", [(0, 5, 2), (1, 1, 1), (30, 7, 3), (20, 5000, 2), (9, 4, 0)])
def test_add_product(shape: tuple[int, int, int], dtype: np.dtype) -> None:
    r, c, k = shape
    rng = np.random.default_rng(0)
    K = rng.normal(size=(r, c)).astype(dtype)
    coef, out = rng.normal(size=(k, r + 3)), rng.normal(size=(k, c + 2))
    coef[rng.uniform(size=coef.shape) < 0.5] = 0.0
    K[~coef[:, 2:-1].any(axis=0)] = np.nan  # is not read
    expected = out.copy()
    expected[:, 1:-1] += coef[:, 2:-1] @ np.nan_to_num(K).astype(DOUBLE)
    kernels.add_product(K, coef[:, 2 : r + 2], out[:, 1 : c + 1])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


# --- threads, and what ends a call early -----------------------------------------------------------------------------


def test_a_sum_does_not_depend_on_the_columns_after_it() -> None:
    """Columns that do not fill a vector register are rounded as the others, but in builds without vectorised fma."""
    is_checked = "libasan" in os.environ.get("LD_PRELOAD", "")
    tolerance = 1e-13 if LEVEL == "v2" or is_checked else 0.0
    rng = np.random.default_rng(0)
    K, coef = rng.normal(size=(53, 24)).astype(np.float32), rng.normal(size=(2, 53))
    whole = np.zeros((2, 24))
    kernels.add_product(K, coef, whole)
    for n in range(1, 24):
        part = np.zeros((2, n))
        kernels.add_product(np.ascontiguousarray(K[:, :n]), coef, part)
        np.testing.assert_allclose(part, whole[:, :n], rtol=tolerance, atol=tolerance)


def large_problem(m: int = 5000, C: float = 10.0) -> tuple[NDArray[np.float32], Vector, Any]:
    """Enough rows for tiles and decision values to be shared out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    squares = (X * X).sum(axis=1)
    K = np.exp(-0.5 * (squares[:, None] + squares - 2 * X @ X.T)).astype(np.float32)
    return K, y, dual.SeparableTerms(y, np.minimum(0.0, C * y), np.maximum(0.0, C * y), np.ones(m))


@pytest.mark.parametrize("C", [0.1, 1e4])
def test_float32_steps_keep_the_sum_of_the_coefficients(C: float) -> None:
    K, y, terms = large_problem(2000, C)
    beta, f = np.zeros(len(y)), np.zeros(len(y))
    dual.solve_working_sets(Team(1), K, terms, beta, f, dual.Tile32(512), dual.WorkingSet(512, len(y)), 1e-3, True, 40)
    assert np.abs(beta).max() == C
    assert abs(beta.sum()) <= 1e-13 * np.abs(beta).sum()
    assert ((beta >= terms.lo) & (beta <= terms.hi)).all()
    np.testing.assert_allclose(f, K.astype(DOUBLE) @ beta, atol=1e-11 * np.abs(beta).sum())


def test_an_interrupt_leaves_a_point_with_its_decision_values() -> None:
    K, y, terms = large_problem(2500, C=1000.0)
    beta, f, team = np.zeros(len(y)), np.zeros(len(y)), Team(2)
    tile, work = dual.Tile32(512), dual.WorkingSet(512, len(y))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            dual.solve_working_sets(team, K, terms, beta, f, tile, work, 1e-12, False, 10**9)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert beta.any()
    np.testing.assert_allclose(f, K.astype(DOUBLE) @ beta, atol=1e-7)


# --- arguments that do not fit ---------------------------------------------------------------------------------------


def working_set_arguments(m: int = 6, dtype: np.dtype = DOUBLE) -> dict[str, Any]:
    problem = make_problem(0, m)
    return {
        "team": ALONE,
        "K": problem.K.astype(dtype),
        "terms": problem.terms,
        "beta": np.zeros(m),
        "f": np.zeros(m),
        "tile": make_tile(4, dtype),
        "working_set": dual.WorkingSet(4, m),
        "tol": 1e-3,
        "has_intercept": False,
        "max_sets": 3,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("K", np.lib.stride_tricks.as_strided(np.zeros(12), (6, 6), (8, 8))),
        ("terms", lambda: make_problem(0, 5).terms),
        ("tile", lambda: dual.Tile64(3)),
        ("tile", lambda: dual.Tile64(5)),
        ("working_set", lambda: dual.WorkingSet(5, 6)),
        ("working_set", lambda: dual.WorkingSet(4, 5)),
        ("working_set", lambda: dual.WorkingSet(4, 7)),
    ],
)
def test_arguments_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    arguments = working_set_arguments()
    dual.solve_working_sets(**arguments)
    value = value() if callable(value) else value  # bound objects: made when they are wanted
    with pytest.raises((TypeError, ValueError)):
        dual.solve_working_sets(**{**arguments, name: value})


def test_float32_tiles_are_for_float32_kernels() -> None:
    dual.solve_working_sets(**{**working_set_arguments(), "K": np.eye(6, dtype=np.float32)})  # a float64 tile
    with pytest.raises(TypeError):
        dual.solve_working_sets(**{**working_set_arguments(), "tile": dual.Tile32(4)})


@pytest.mark.parametrize("K", [np.eye(8)[:, :7], np.eye(9)[1:8, 1:8]])
def test_a_larger_matrix_is_read_in_its_leading_rows_and_columns(K: NDArray[np.float64]) -> None:
    arguments = {**working_set_arguments(), "K": K, "tol": 1e-9}
    *_, violation = dual.solve_working_sets(**arguments)
    assert violation < 1e-9
    np.testing.assert_allclose(arguments["f"], K[:6, :6] @ arguments["beta"])


@pytest.mark.parametrize("size", [-1, 8193, 2**62])
def test_tiles_and_working_sets_of_impossible_size_are_refused(size: int) -> None:
    for make in (dual.Tile32, dual.Tile64, lambda q: dual.WorkingSet(q, 10)):
        with pytest.raises(ValueError, match="size"):
            make(size)
    with pytest.raises(ValueError, match="n_rows"):
        dual.WorkingSet(4, -1)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_no_rows(has_intercept: bool, dtype: np.dtype) -> None:
    empty, tile = np.empty(0), make_tile(0, dtype)
    terms, K = dual.SeparableTerms(empty, empty, empty, empty), np.empty((0, 0), dtype)
    args = K, terms, empty.copy(), empty.copy(), tile, dual.WorkingSet(0, 0), 1e-3, has_intercept, 9
    assert dual.solve_working_sets(ALONE, *args) == (0, 0, 0.0, 0.0)
    assert dual.kkt_violation(terms, empty, empty, has_intercept, empty.copy()) == (0.0, 0.0)


def test_terms_keep_their_arrays() -> None:
    terms = make_problem(0, 1000).terms
    target = terms.target
    del terms
    gc.collect()
    assert set(np.unique(target)) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="read-only"):
        target[0] = 3.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e308, 5e-324])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("entries", "tiles"), [(SINGLE, SINGLE), (DOUBLE, DOUBLE)])
def test_solve_working_sets_ends_on_nan_and_infinity(
    entries: np.dtype, tiles: np.dtype, has_intercept: bool, bad: float
) -> None:
    problem = make_problem(0, 40)
    for where in ("K", "beta", "f", "target", "lo", "hi", "scale", "everything"):
        parts = {"beta": np.zeros(40), "f": np.zeros(40), "K": problem.K.copy()}
        parts |= {name: getattr(problem.terms, name).copy() for name in ("target", "lo", "hi", "scale")}
        for name, part in parts.items():
            if where in (name, "everything"):
                part.ravel()[:: 1 if where == "everything" else 7] = bad
        terms = dual.SeparableTerms(*(parts[name] for name in ("target", "lo", "hi", "scale")))
        with np.errstate(over="ignore"):
            K = parts["K"].astype(entries)
        args = terms, parts["beta"], parts["f"], make_tile(16, tiles), dual.WorkingSet(16, 40), 1e-3, has_intercept, 10
        assert dual.solve_working_sets(ALONE, K, *args)[0] <= 10
        dual.kkt_violation(terms, parts["beta"], parts["f"], has_intercept, np.empty(40))


def test_rows_changed_after_their_check_do_no_harm() -> None:
    rows, starts = np.arange(6), np.array([0, 3, 6])
    beta, f = np.zeros(6), np.zeros(6)
    terms = dual.SeparableTerms(np.ones(6), np.zeros(6), np.ones(6), np.ones(6))
    problems = dual.Subproblems64(np.eye(6), rows, starts, terms, beta, f, False)
    rows[:], starts[:] = 2**40, [0, -(2**40), 2**40]
    problems.solve(ALONE, np.full(2, 1e-6), np.full(2, 100), 10.0)
    np.testing.assert_allclose(beta, 1.0)


# --- tiles computed from rows ----------------------------------------------------------------------------------------


def kernel_problem(
    m: int, d: int, name: str = "rbf", dtype: Any = SINGLE
) -> tuple[NDArray[Any], Vector | None, NDArray[Any], Any, Vector]:
    """Rows, |x|^2 for the RBF kernel, K, the terms of a C-SVM, and labels."""
    rng = np.random.default_rng(m + d)
    X, gamma = rng.normal(size=(m, d)).astype(dtype), 0.7 / max(d, 1)
    K, squares = np.empty((m, m), dtype), None
    if name == "rbf":
        squares = (X.astype(np.float64) ** 2).sum(axis=1)
        kernels.kernel_matrix(X, squares, X, squares, gamma, K)
    else:
        kernels.kernel_matrix(X, None, X, None, gamma, K)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    terms = dual.SeparableTerms(y, np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0), np.ones(m))
    return X, squares, K, terms, y


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("m", "d", "size"), [(700, 9, 512), (90, 33, 17), (40, 0, 8)])
def test_tiles_computed_from_rows_are_those_read_from_the_matrix(
    name: str, has_intercept: bool, m: int, d: int, size: int
) -> None:
    X, squares, K, terms, _ = kernel_problem(m, d, name)
    found, team = [], Team(2)
    for rows in (None, dual.EntryRows32(X, squares, 0.7 / max(d, 1))):
        beta, f, tile, work = np.zeros(m), np.zeros(m), dual.Tile32(size), dual.WorkingSet(size, m)
        counts = [
            dual.solve_working_sets(team, K, terms, beta, f, tile, work, 1e-3, has_intercept, 1, rows) for _ in range(6)
        ]
        found.append((beta, f, counts))
    team.close()
    for of_matrix, of_rows in zip(*found, strict=True):
        np.testing.assert_array_equal(of_matrix, of_rows)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("m", "d", "size"), [(1500, 9, 512), (90, 33, 17), (40, 0, 8)])
def test_working_sets_without_a_matrix_are_those_with_one(
    dtype: Any, has_intercept: bool, m: int, d: int, size: int
) -> None:
    X, squares, K, terms, _ = kernel_problem(m, d, dtype=dtype)
    make_rows, make_tile = {SINGLE: (dual.EntryRows32, dual.Tile32), DOUBLE: (dual.EntryRows64, dual.Tile64)}[dtype]
    rows, tol = make_rows(X, squares, 0.7 / max(d, 1)), 1e-3
    expected = np.zeros(m), np.zeros(m)
    dual.solve_working_sets(
        ALONE, K, terms, *expected, make_tile(size), dual.WorkingSet(size, m), tol, has_intercept, 10**6, rows
    )
    found = []
    for n_threads, max_sets in ((1, 10**6), (2, 10**6), (2, 3)):  # in one call, and in calls that go on
        team, beta, f = Team(n_threads), np.zeros(m), np.zeros(m)
        state = terms, beta, f, make_tile(size), dual.WorkingSet(size, m), tol, has_intercept
        while True:
            n_sets, _, _, violation = dual.solve_from_rows(team, rows, *state, max_sets)
            if n_sets < max_sets:
                break
        team.close()
        assert violation < tol
        np.testing.assert_allclose(f, K.astype(np.float64) @ beta, rtol=0, atol=1e-5)
        found.append((beta, f))
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    objectives = [0.5 * beta @ f - beta @ terms.target for beta, f in (expected, found[0])]
    assert objectives[1] == pytest.approx(objectives[0], abs=1e-3 * tol * m)


@pytest.mark.parametrize("seconds", [0.0, 0.004])
def test_decision_values_of_stopped_working_sets_are_those_of_their_coefficients(seconds: float) -> None:
    X, squares, K, _, y = kernel_problem(2000, 5)
    lo, hi = np.where(y > 0, 0.0, -30.0), np.where(y > 0, 30.0, 0.0)  # takes many times 4 ms
    terms = dual.SeparableTerms(y, lo, hi, np.ones(2000))
    beta, f, team, rows = np.zeros(2000), np.zeros(2000), Team(2), dual.EntryRows32(X, squares, 0.14)
    state = terms, beta, f, dual.Tile32(512), dual.WorkingSet(512, 2000)
    team.stop_after(seconds)
    n_sets, _, _, violation = dual.solve_from_rows(team, rows, *state, 1e-12, True, 10**9)
    team.close()
    assert violation > 1e-12
    assert (n_sets > 0) == beta.any()
    np.testing.assert_allclose(f, K.astype(np.float64) @ beta, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("power", "dtype"), [(1, DOUBLE), (2, SINGLE)])
def test_kept_entries_are_those_computed_again(power: int, dtype: Any) -> None:
    """With memory for all rows, for some or none, before the solve or in it, by one solve or by several at once."""
    rng, m = np.random.default_rng(0), 900
    X = np.sort(rng.normal(scale=9, size=(m, 1)), axis=0) + rng.uniform(size=(m, 3))
    X, y = X.astype(dtype), np.where(rng.random(m) < 0.5, 1.0, -1.0)
    K = np.exp(-0.7 * (np.abs(X[:, None].astype(np.float64) - X) ** power).sum(axis=2))
    terms = dual.SeparableTerms(y, np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0), np.ones(m))
    squares = (X.astype(np.float64) ** 2).sum(axis=1) if power == 2 else None
    make_rows, tile = {SINGLE: (dual.EntryRows32, dual.Tile32), DOUBLE: (dual.EntryRows64, dual.Tile64)}[dtype]

    def make(n_bytes: int) -> Any:
        return make_rows(X, squares, 0.7, 30.0 / 0.7, np.empty(n_bytes, np.uint8)[1:])

    def solve(rows: Any, n_threads: int) -> tuple[Vector, float]:
        team, beta, f = Team(n_threads), np.zeros(m), np.zeros(m)
        state = terms, beta, f, tile(512), dual.WorkingSet(512, m)
        while dual.solve_from_rows(team, rows, *state, 1e-3, True, 3)[0] == 3:
            pass
        team.close()
        np.testing.assert_allclose(f, K @ beta, rtol=0, atol=1e-3)
        return beta, 0.5 * beta @ f - beta @ y

    _, objective = solve(make_rows(X, squares, 0.7, 30.0 / 0.7), 1)
    for n_bytes in (1, 60, 2000, 500_000, 10**8):
        rows, filled, lent = make(n_bytes), make(n_bytes), make(n_bytes)
        filled.fill(ALONE)
        with ThreadPoolExecutor(3) as pool:
            several, beside = (list(pool.map(solve, [one] * 3, [1] * 3)) for one in (filled, lent))
        np.testing.assert_array_equal(several[0][0], several[1][0])
        for _, found in (solve(rows, 2), solve(rows, 1), *several, *beside):
            assert found == pytest.approx(objective, abs=1e-2)


def test_entries_that_were_not_filled_are_not_read() -> None:
    X, squares, K, terms, _ = kernel_problem(1500, 5)
    rows, team = dual.EntryRows32(X, squares, 0.14, 1e3, np.empty(10**8, np.uint8)), Team(2)
    team.stop_after(0.0)
    with pytest.raises(Stopped):
        rows.fill(team)
    team.resume()
    beta, f = np.zeros(1500), np.zeros(1500)
    dual.solve_from_rows(team, rows, terms, beta, f, dual.Tile32(512), dual.WorkingSet(512, 1500), 1e-2, True, 4)
    team.close()
    np.testing.assert_allclose(f, K.astype(np.float64) @ beta, rtol=0, atol=1e-4)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_working_sets_of_many_rows_do_not_depend_on_the_threads(has_intercept: bool) -> None:
    """Violations, and the histograms of their sizes, of three blocks of rows, on one thread and on three."""
    m, rng = 20_000, np.random.default_rng(0)
    X = rng.normal(size=(m, 3)).astype(np.float32)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    terms = dual.SeparableTerms(y, np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0), np.ones(m))
    rows, found = dual.EntryRows32(X, (X.astype(np.float64) ** 2).sum(axis=1), 1.0), []
    for n_threads in (1, 3):
        team, beta, f = Team(n_threads), np.zeros(m), np.zeros(m)
        state = terms, beta, f, dual.Tile32(512), dual.WorkingSet(512, m)
        counts = dual.solve_from_rows(team, rows, *state, 1e-3, has_intercept, 12)
        team.close()
        found.append((beta, f, counts))
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    out = np.empty(m)
    assert dual.kkt_violation(terms, beta, f, has_intercept, out) == found[0][2][2:]


def test_rows_of_another_kernel_matrix_are_refused() -> None:
    X, _, K, terms, _ = kernel_problem(40, 3)
    squares = np.ones(40)
    state, rest = (np.zeros(40), np.zeros(40)), (1e-3, False, 1)
    of_all, of_some = dual.EntryRows32(X, squares, 1.0), dual.EntryRows32(X[:39], squares[:39], 1.0)
    scaled = dual.SeparableTerms(terms.target, terms.lo, terms.hi, np.full(40, 2.0))

    def with_matrix(tile: Any, terms: Any, rows: Any) -> None:
        dual.solve_working_sets(ALONE, K, terms, *state, tile, dual.WorkingSet(8, 40), *rest, rows)

    def without_matrix(tile: Any, terms: Any, rows: Any) -> None:
        dual.solve_from_rows(ALONE, rows, terms, *state, tile, dual.WorkingSet(8, 40), *rest)

    for run in (with_matrix, without_matrix):
        with pytest.raises(ValueError, match=r"len\(rows\)"):
            run(dual.Tile32(8), terms, of_some)
        with pytest.raises(TypeError):
            run(dual.Tile64(8), terms, of_all)
        with pytest.raises(ValueError, match="scale"):
            run(dual.Tile32(8), scaled, of_all)
    with pytest.raises(ValueError, match="squares"):
        dual.EntryRows32(X, squares[:39], 1.0)
    assert len(dual.EntryRows32(X, squares, 1.0)) == 40
    assert not state[0].any()
