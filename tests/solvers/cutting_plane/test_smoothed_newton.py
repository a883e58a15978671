"""Newton's method on smoothed hinges: its planes hold, it reaches the optimum, and gives up where it does not."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import cutting_plane as naive
from planes import always, assert_planes_hold, begun, true_risk
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.data.design_matrix import LocalAugmentedMatrix
from widemargin.solvers.cutting_plane import smoothed_newton as newton
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss
from widemargin.solvers.cutting_plane.smoothed_newton import NewtonDescent, SmoothedHessian


def problem(seed: int, n: int, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [0.3, 1.0, 4.0] + 0.4
    signed = np.sign(X[:, 1] + rng.normal(size=n)) * rng.choice([0.0, 0.5, 1.0, 3.0], n)
    return (np.round(X), np.sign(signed)) if ties else (X, signed)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1), has_intercept=st.booleans(), ties=st.booleans(), C=st.sampled_from([1e-4, 0.1, 100])
)
def test_planes_lie_below_the_risk(seed: int, has_intercept: bool, ties: bool, C: float) -> None:
    X, signed = problem(seed, 200, ties=ties)
    rows, machine = begun(X, signed, C, has_intercept=has_intercept)
    NewtonDescent(rows, machine, 2.0).run(1e-6, always)
    rng = np.random.default_rng(seed)
    points = [machine.w[0] + scale * rng.normal(size=3) for scale in (0.0, 0.1, 1.0, 10.0)]
    assert_planes_hold(machine.master, points, X, signed, has_intercept=has_intercept)
    objective = 0.5 * machine.w[0] @ machine.w[0] + C * true_risk(X, signed, machine.w[0], has_intercept=has_intercept)
    assert np.isclose(machine.objective, objective, rtol=1e-9)
    assert machine.bound <= machine.objective * (1 + 1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("C", "form"), [(1e-4, "csr"), (0.01, "F"), (1.0, "float32"), (1.0, "C")])
def test_a_handful_of_steps(has_intercept: bool, C: float, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, signed = problem(1, 20_000)
    forms = {"C": X, "F": np.asfortranarray(X), "csr": sp.csr_array(X), "float32": X.astype(np.float32)}
    rows, machine = begun(forms[form], signed, C, has_intercept=has_intercept)
    monkeypatch.setattr(newton, "_MAX_STEPS", 16)
    assert NewtonDescent(rows, machine, 2.0).run(1e-4, always)
    assert machine.gap <= 1e-4 * machine.objective
    shift = float(machine.intercept[0])
    risk = naive.intercept_risk(X @ machine.w[0], signed, shift)
    assert np.isclose(machine.objective, 0.5 * machine.w[0] @ machine.w[0] + C * risk, rtol=1e-6)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_rows_without_a_kink(has_intercept: bool) -> None:
    """Equal rows: the method ends, and point and objective are finite."""
    for X in (np.zeros((50, 3)), np.ones((50, 3)), np.full((50, 3), 1e150)):
        signed = np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
        rows, machine = begun(X, signed, 1.0, has_intercept=has_intercept)
        NewtonDescent(rows, machine, 2.0).run(1e-6, always)
        assert np.isfinite(machine.w).all()
        assert np.isfinite(machine.objective)


def test_steps_that_are_too_long_end_the_method() -> None:
    """Separable rows and a large C: nearly no sample is near the kink at the minimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X *= np.exp(rng.normal(size=(300, 1)) * 4)
    rows, machine = begun(X, np.sign(X[:, 0] + 1e-3), 1e6, has_intercept=False)
    assert not NewtonDescent(rows, machine, 2.0).run(1e-9, always)


@pytest.mark.slow
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_approach_comes_close_to_the_optimum(has_intercept: bool, C: float) -> None:
    X, signed = problem(4, 20_000)
    rows, machine = begun(X, signed, C, has_intercept=has_intercept)
    descent = NewtonDescent(rows, machine, 2.0)
    assert descent.approach(1e-2, always)
    assert machine.master.n_planes == 2  # the zero plane, and that of the start: `approach` adds none
    value = 0.5 * descent.point[0] @ descent.point[0]
    value += C * true_risk(X, signed, descent.point[0], has_intercept=has_intercept)
    assert NewtonDescent(rows, machine, 2.0).run(1e-4, always)
    assert value <= machine.objective * 1.01


@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_step_is_newtons_for_the_samples_near_the_kink(has_intercept: bool) -> None:
    X, signed = problem(5, 150)
    rows, machine = begun(X, signed, 0.1, has_intercept=has_intercept)
    f, gradient = np.random.default_rng(0).normal(size=(1, 150)), np.array([[1.0, -2.0, 0.5]])
    step = SmoothedHessian(rows, machine.loss, 0.1).step(gradient, f, 0.3, 0.5)
    curvatures = 0.1 / (2 * 0.5) * np.abs(signed) * (np.abs(1 - np.sign(signed) * (f[0] + 0.3)) <= 0.5)
    centred = X - (curvatures @ X / curvatures.sum() if has_intercept else 0.0)
    np.testing.assert_allclose(step[0], -np.linalg.solve(np.eye(3) + (centred.T * curvatures) @ centred, gradient[0]))


def test_a_step_that_fails_with_a_kept_hessian_gets_a_new_one() -> None:
    X, signed = problem(6, 2000)
    rows, machine = begun(X, signed, 0.01, has_intercept=False)
    descent = NewtonDescent(rows, machine, 2.0)
    descent._hessian._kept = lambda gradient: 1e3 * gradient  # steps are much too long
    assert descent.run(1e-3, always)
    assert machine.gap <= 1e-3 * machine.objective


def test_stopped_before_the_first_step() -> None:
    X, signed = problem(3, 500)
    rows, machine = begun(X, signed, 1.0, has_intercept=False)
    start = machine.w
    assert NewtonDescent(rows, machine, 2.0).run(1e-9, lambda: False)
    np.testing.assert_array_equal(machine.w, start)


def test_the_sample_of_a_hessian_is_random() -> None:
    chosen, rng = np.arange(0, 5000, 5), np.random.default_rng(0)
    some, every = newton._draw(chosen, rng.random(100))
    assert len(some) == 100
    assert every == 10.0
    assert np.all(np.diff(some) >= 0)
    assert len(set((some // 5) % 10)) > 5  # whatever the period
    all_of_them, every = newton._draw(chosen, rng.random(1000))
    assert all_of_them is chosen
    assert every == 1.0


@pytest.mark.parametrize("kind", ["C", "F", "csr"])
def test_gathered_rows_are_places_in_an_array(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(9, 4)) * (np.arange(4) != 2)
    chosen = np.array([0, 3, 3, 8])
    rows = make_design_matrix({"C": X, "F": np.asfortranarray(X), "csr": sp.csr_array(X)}[kind], ThreadTeam(1))
    augmented = LocalAugmentedMatrix(rows)
    for some, exact in ((rows, X), (augmented, np.column_stack([X, np.ones(9)]))):
        array, places = some.gather(chosen)
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array[places], exact[chosen])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
@pytest.mark.parametrize("width", [1e-6, 1.0])
def test_slopes_at_large_decision_values(offset: float, width: float) -> None:
    """They are between 0 and 1 and sum to plane_balance, or there are none."""
    rng = np.random.default_rng(0)
    signed = rng.choice([-1.0, 1.0, 3.0], 2000)
    f = (offset + np.sign(signed) + width * rng.normal(size=2000))[None]
    for plane_balance in (0.0, 100.0):
        smoothed = InterceptHingeLoss(signed, ThreadTeam(1), plane_balance).smoothed(f, width)
        if smoothed is not None:
            slopes = -smoothed.coef[0] / signed
            assert slopes.min() >= 0.0
            assert slopes.max() <= 1.0
            assert np.isclose(smoothed.coef.sum(), plane_balance, atol=1e-9)
        assert smoothed is not None or offset == 1e12 or (offset, width) == (1e6, 1e-6)
