"""`acceleration=None` is Algorithm 1 of the paper, line by line."""

import numpy as np
import pytest
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin import OCASClassifier
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms.ocas import OCASSettings, OCASTraining
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane.losses import HingeLoss

Data = tuple[NDArray[np.float64], NDArray[np.float64]]

ROUNDS = 9


def problem(seed: int) -> Data:
    """Normal data; with an odd seed some rows are long, and the first step is beyond 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 6)) * [0.2, 1.0, 2.0, 5.0, 1.0, 0.5]
    y = np.sign(X[:, 0] + 0.3 * X[:, 1] + 0.5 * rng.normal(size=100))
    if seed % 2:
        X[:, 1] = y * np.abs(X[:, 1]) * np.where(np.arange(100) < 90, 1.0, -0.3)
        X[:6, 1] *= 100.0
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("mu", "line_search"), [(0.1, True), (0.5, True), (1.0, True), (0.1, False)])
def test_line_by_line(seed: int, C: float, mu: float, line_search: bool) -> None:
    """The same w_t, F_t(w_t), w_b and plane in each round, until a sample is on its margin to rounding."""
    X, y = problem(seed)
    team = ThreadTeam(1)
    settings = OCASSettings(C=C, tol=1e-12, mu=mu, line_search=line_search, is_plain=True)
    training = OCASTraining(make_design_matrix(X, team), [HingeLoss(y, team)], settings, Progress(), team)
    training.make_machines()
    (machine,) = training.machines
    first, *others = naive.ocas(X, y, C, mu, ROUNDS, line_search=line_search)
    training.set_risk_weight(C)
    training.begin(None, C)  # the first round, at w = 0
    training.update_bounds()
    np.testing.assert_array_equal(first.w_b, 0.0)
    np.testing.assert_allclose(machine.master.normals[1], first.normal, rtol=1e-12)
    assert np.isclose(machine.master.offsets[1], first.offset)
    n_compared = 0
    for k, expected in enumerate(others):
        np.testing.assert_allclose(machine.search_point[0], expected.w_t, rtol=1e-5, atol=1e-6)
        assert np.isclose(machine.bound, expected.bound, rtol=1e-8)
        training.run_round()
        if line_search:
            np.testing.assert_allclose(machine.w[0], expected.w_b, rtol=1e-5, atol=1e-6)
        if np.abs(1 - y * (X @ expected.w_c)).min() < 1e-6:
            break  # either subgradient of that sample's hinge will do
        np.testing.assert_allclose(machine.master.normals[k + 2], expected.normal, rtol=1e-9, atol=1e-9)
        assert np.isclose(machine.master.offsets[k + 2], expected.offset, rtol=1e-9)
        n_compared += 1
    assert n_compared >= 2


def test_plain_fit_of_few_samples_takes_rounds() -> None:
    X, y = problem(0)
    options = {"fit_intercept": False, "tol": 1e-6}
    plain = OCASClassifier(acceleration=None, **options).fit(X, y)
    assert plain.converged_
    assert plain.n_iter_ > 2
    np.testing.assert_array_equal(plain.history_["n_planes"], 2 + np.arange(1, plain.n_iter_ + 1))
    assert np.isclose(plain.objective_, OCASClassifier(**options).fit(X, y).objective_, rtol=2e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_plain_fit_of_many_samples_has_no_other_rounds(fit_intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 5))
    y = X[:, 0] + rng.normal(size=40_000) > 0
    plain = OCASClassifier(C=0.01, acceleration=None, fit_intercept=fit_intercept).fit(X, y)
    assert plain.converged_
    assert np.median(plain.history_["seconds_active_rows"]) < 1e-3
    np.testing.assert_array_equal(plain.history_["n_planes"], 2 + np.arange(1, plain.n_iter_ + 1))
