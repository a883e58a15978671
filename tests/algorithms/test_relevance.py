"""The loop of relevance against its naive twin, and what stops it."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import relevance as naive
from widemargin._memory import MemoryPlan
from widemargin._progress import Progress
from widemargin.algorithms.relevance import learn_relevance, mean_differences, rms_gradients, scale_columns
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).round(1) * RNG.integers(0, 2, size=(60, 4))
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)
COEF = RNG.normal(size=(2, 60))


def machine(rows: Any) -> KernelExpansion:
    """Any function of the rows would do for a machine that is fitted to them."""
    return KernelExpansion(make_kernel("rbf", gamma=0.3), rows, COEF, np.zeros(2))


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_mean_differences(form: Any, power: int) -> None:
    truth = naive.mean_differences(X, WEIGHTS, power)
    np.testing.assert_allclose(mean_differences(form(X), WEIGHTS, power), truth, rtol=1e-12)
    assert mean_differences(np.ones((5, 2)), np.ones(5), power).tolist() == [0.0, 0.0]
    assert mean_differences(np.ones((1, 2)), np.ones(1), power).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_loop_is_its_naive_twin(form: Any, power: int) -> None:
    with Progress() as progress:
        learned = learn_relevance(form(X), WEIGHTS, machine, 3, progress, RNG, power=power)
    truth = naive.learn(X, WEIGHTS, lambda rows: machine(rows).decision_gradients(rows), 3, power)
    np.testing.assert_allclose(learned.relevance, truth[0], rtol=1e-9)
    np.testing.assert_allclose(learned.scale, truth[1], rtol=1e-9)
    assert (learned.n_iter, learned.is_known) == (3, True)
    before = naive.mean_differences(X, WEIGHTS, power).sum()
    after = naive.mean_differences(scale_columns(X, learned.scale), WEIGHTS, power).sum()
    np.testing.assert_allclose(after, before)


def test_gradients_are_averaged_in_blocks_of_any_size() -> None:
    whole = rms_gradients(machine(X), X, WEIGHTS)
    np.testing.assert_allclose(rms_gradients(machine(X), X, WEIGHTS, memory=MemoryPlan(1)), whole, rtol=1e-12)


def test_a_machine_that_is_constant_says_nothing() -> None:
    def constant(rows: Any) -> KernelExpansion:
        return KernelExpansion(make_kernel("rbf", gamma=0.3), rows[:0], np.zeros((1, 0)), np.ones(1))

    with Progress() as progress:
        learned = learn_relevance(X, WEIGHTS, constant, 3, progress, RNG)
    assert (learned.n_iter, learned.is_known) == (1, False)
    assert learned.relevance.tolist() == learned.scale.tolist() == [1.0] * 4


def test_a_fit_that_is_stopped_ends_the_loop() -> None:
    with Progress(max_time=0) as progress:
        progress.go_on()
        learned = learn_relevance(X, WEIGHTS, machine, 3, progress, RNG)
    assert (learned.n_iter, learned.is_known) == (1, True)
