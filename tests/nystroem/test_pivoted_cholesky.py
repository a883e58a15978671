"""Randomly pivoted Cholesky: the probabilities of the pivots, their residual, what ends it."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from naive import nystroem as naive
from widemargin._native import Stopped
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import make_kernel
from widemargin.nystroem import pivoted_cholesky
from widemargin.nystroem.pivoted_cholesky import pivot_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))


def pivots_of(
    X: Any,
    m: int,
    *,
    seed: int = 0,
    weights: Any = None,
    gamma: float = 0.3,
    n_jobs: int = 1,
    go_on: Any = lambda: True,
) -> np.ndarray:
    kernel = make_kernel("rbf", gamma=gamma)
    samples = make_samples(X, kernel.sample_form)
    weights = np.ones(X.shape[0]) if weights is None else weights
    with ThreadTeam(n_jobs) as team:
        return pivot_rows(kernel, samples, m, np.random.default_rng(seed), team, weights=weights, go_on=go_on)


@pytest.mark.slow
def test_pivots_have_the_probabilities_of_one_draw_after_the_other() -> None:
    """Of all ordered pairs of four rows, against the definition."""
    rows, weights = np.array([[0.0], [0.1], [1.0], [3.0]]), np.array([1.0, 2.0, 1.0, 0.5])
    K, expected, n_draws = rbf_kernel(rows, gamma=0.3), {}, 600
    for pair in permutations(range(4), 2):
        probability, R = 1.0, K
        for s in pair:
            d = weights * np.maximum(R.diagonal(), 0.0)
            probability *= d[s] / d.sum()
            R = naive.pivoted_residual(R, np.array([s]))
        expected[pair] = probability
    kernel = make_kernel("rbf", gamma=0.3)
    samples, rng, team = make_samples(rows, kernel.sample_form), np.random.default_rng(1), ThreadTeam(1)
    counts = dict.fromkeys(expected, 0)
    for _ in range(n_draws):
        counts[tuple(pivot_rows(kernel, samples, 2, rng, team, weights=weights, go_on=lambda: True).tolist())] += 1
    found, wanted = (np.array(list(values.values())) for values in (counts, expected))
    errors = np.sqrt(wanted * (1 - wanted) / (n_draws))
    assert np.all(np.abs(found / found.sum() - wanted) < 5 * errors)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_factor_leaves_the_residual_of_the_definition(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    extend = pivoted_cholesky._extend

    def spy(*args: Any) -> None:
        extend(*args)
        seen.append(args[6].copy())

    monkeypatch.setattr(pivoted_cholesky, "_extend", spy)
    pivots = pivots_of(X.astype(dtype), 40)
    assert len(set(pivots.tolist())) == 40
    R = naive.pivoted_residual(rbf_kernel(X, gamma=0.3), pivots)
    np.testing.assert_allclose(seen[-1], R.diagonal(), atol=1e-10 if dtype == np.float64 else 1e-4)


def test_rows_do_not_depend_on_threads_or_form() -> None:
    wide = np.tile(X, (10, 1)) + 0.01 * RNG.normal(size=(3000, 4))
    expected = pivots_of(wide, 50)
    np.testing.assert_array_equal(pivots_of(wide, 50, n_jobs=2), expected)
    np.testing.assert_array_equal(pivots_of(sp.csr_array(wide), 50), expected)


def test_no_pivot_is_drawn_that_leaves_no_error() -> None:
    """Of 40 distinct rows, 30 with weights, no more than these; duplicates are not drawn."""
    repeated, weights = np.repeat(X[:40], 5, axis=0), np.repeat(np.arange(40) < 30, 5).astype(float)
    pivots = pivots_of(repeated.astype(np.float32), 100, weights=weights, gamma=3.0)
    assert len(pivots) == len(set((pivots // 5).tolist())) == 30
    assert pivots.max() < 150


def test_a_kernel_that_is_not_semidefinite_ends() -> None:
    kernel = make_kernel("sigmoid", gamma=1.0, coef0=-2.0)
    samples = make_samples(X, kernel.sample_form)
    pivots = pivot_rows(
        kernel, samples, 50, np.random.default_rng(0), ThreadTeam(1), weights=np.ones(300), go_on=lambda: True
    )
    assert len(pivots) == len(set(pivots.tolist())) <= 50


def test_stops_before_a_round() -> None:
    rounds = iter([True, False])
    with pytest.raises(Stopped):
        pivots_of(X, 200, go_on=lambda: next(rounds))
