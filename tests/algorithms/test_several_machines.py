"""One machine for each pair of classes: in groups on common kernel matrices, as each alone."""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin._progress import Progress
from widemargin.algorithms import dc_svm
from widemargin.algorithms.dc_svm import DCSVMSettings, KernelProblem, train
from widemargin.algorithms.several_machines import train_several
from widemargin.data.labels import group_pairs
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.solvers.dual.certificate import pair_problem
from widemargin.solvers.results import TrainedMachine


@given(st.lists(st.integers(1, 40), min_size=2, max_size=12), st.integers(1, 120))
def test_groups_have_each_pair_once_and_few_rows(sizes: list[int], most_rows: int) -> None:
    groups = group_pairs(sizes, most_rows)
    k = len(sizes)
    assert sorted(p for _, pairs in groups for p in pairs) == list(range(k * (k - 1) // 2))
    members = list(combinations(range(k), 2))
    for n_rows, pairs in groups:
        classes = {number for p in pairs for number in members[p]}
        assert sum(sizes[number] for number in classes) <= n_rows
        assert n_rows <= max(most_rows, 2 * max(sizes))


def trained_pairs(sizes: list[int], n_jobs: int = 1) -> tuple[list[TrainedMachine], list[TrainedMachine]]:
    """The machines of all pairs of classes of these sizes, trained together and each alone."""
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = (rng.standard_normal((len(sizes), 4))[classes] + rng.standard_normal((len(classes), 4))).astype(np.float32)
    samples, kernel, settings = make_samples(X, "distances"), RBF(0.2), DCSVMSettings(fit_intercept=True, n_jobs=n_jobs)
    upper = np.full(len(classes), 3.0)
    problems = [partial(pair_problem, classes, upper, *pair) for pair in combinations(range(len(sizes)), 2)]
    with Progress() as progress:
        together = train_several(kernel, samples, problems, settings, progress, rng, class_sizes=sizes)
    alone = []
    for make in problems:
        rows, problem = make()
        with Progress() as progress:
            data = KernelProblem(kernel, samples.take(rows), problem)
            alone.append(train(data, settings, progress, rng))
        alone[-1].rows = rows
    return together, alone


@pytest.mark.parametrize("sizes", [[30] * 7, [200, 20, 1, 30, 25, 5], [150, 140, 20, 20]])
def test_machines_of_a_group_are_those_of_each_pair_alone(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes of 150 rows have too many for a group here: they are trained apart."""
    monkeypatch.setattr(dc_svm, "_SMALL_ENTRIES", 120**2)
    monkeypatch.setattr(dc_svm, "_SMALL_PROBLEMS", 4)
    together, alone = trained_pairs(sizes)
    for ours, expected in zip(together, alone, strict=True):
        assert ours.result.converged
        np.testing.assert_array_equal(ours.rows, expected.rows)
        np.testing.assert_allclose(ours.result.beta, expected.result.beta, atol=2e-3)
        assert ours.result.objective == pytest.approx(expected.result.objective, rel=1e-5)


def test_pairs_of_small_classes_share_kernel_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    solve = dc_svm.solve_on_whole_matrix

    def count(kernel: Any, samples: Any, parts: Any, *rest: Any) -> Any:
        shapes.append((len(samples), len(parts)))
        return solve(kernel, samples, parts, *rest)

    monkeypatch.setattr(dc_svm, "solve_on_whole_matrix", count)
    monkeypatch.setattr(dc_svm, "_SMALL_ENTRIES", 100**2 // 8)
    together, _ = trained_pairs([10] * 12)
    assert len(together) == 66
    shared = shapes[:-66]  # the last ones are those of each pair alone
    assert sum(n_parts for _, n_parts in shared) == 66
    assert len(shared) == 6  # three blocks of classes
    assert max(n for n, _ in shared) <= 100


def test_groups_do_not_depend_on_the_number_of_threads() -> None:
    one, two = trained_pairs([60] * 5)[0], trained_pairs([60] * 5, n_jobs=2)[0]
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.result.beta, b.result.beta)
