"""One machine for each pair of classes: in groups on common kernel matrices, as each alone."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin import _progress
from widemargin._progress import Progress
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.algorithms import pairs_and_targets
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, train_machine
from widemargin.algorithms.pairs_and_targets import SeveralMachines
from widemargin.algorithms.trained_machines import TrainedMachine, TrainedMachines
from widemargin.data.labels import group_pairs
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.functions import RBF
from widemargin.solvers.dual.problem import PairProblems

KERNEL = RBF(0.2)


@pytest.mark.slow
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


def pairs_of_classes(sizes: list[int]) -> tuple[Samples, PairProblems]:
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = (rng.standard_normal((len(sizes), 4))[classes] + rng.standard_normal((len(classes), 4))).astype(np.float32)
    return make_samples(X, "distances"), PairProblems(classes, np.full(len(classes), 3.0), has_intercept=True)


def train_pairs(sizes: list[int], n_jobs: int = 1, max_time: float | None = None) -> TrainedMachines:
    samples, problems = pairs_of_classes(sizes)
    settings, rng = DCSVMSettings(n_jobs=n_jobs), np.random.default_rng(0)
    with Progress(max_time=max_time) as progress:
        return SeveralMachines(KERNEL, samples, problems, settings, progress, rng).run()


@pytest.mark.parametrize("stop_level", [0, 1])  # a group on one matrix; machines apart
def test_the_work_of_pairs_is_their_rows_squared(stop_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each machine that is trained apart counts when it is done, not with the last one."""
    done, advance = [], Progress.advance

    def count(progress: Progress, work: float = 1) -> None:
        advance(progress, work)
        done.append(progress.fraction)

    monkeypatch.setattr(Progress, "advance", count)
    samples, problems = pairs_of_classes([300, 200, 100])
    settings = DCSVMSettings(n_jobs=1, n_levels=stop_level, stop_level=stop_level)
    with Progress() as progress:
        SeveralMachines(KERNEL, samples, problems, settings, progress, np.random.default_rng(0)).run()
    work = np.cumsum([500**2, 400**2, 300**2])  # of most rows first
    np.testing.assert_allclose(done, work / work[-1] if stop_level else [1.0])


def train_each_alone(sizes: list[int]) -> list[TrainedMachine]:
    machines, (samples, problems) = [], pairs_of_classes(sizes)
    for p in range(len(problems)):
        rows, problem = problems[p]()
        data = KernelProblem(KERNEL, samples.take(rows), problem)
        with Progress() as progress:
            machines.append(train_machine(data, DCSVMSettings(n_jobs=1), progress, np.random.default_rng(0)))
        machines[-1].rows = rows
    return machines


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[30] * 7, [200, 20, 1, 30, 25, 5], [150, 140, 20, 20]])
def test_machines_of_a_group_are_those_of_each_pair_alone(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes of 150 rows have too many for a group here: they are trained apart."""
    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_ENTRIES", 120**2)
    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_PROBLEMS", 4)
    for ours, expected in zip(train_pairs(sizes), train_each_alone(sizes), strict=True):
        assert ours.result.converged
        np.testing.assert_array_equal(ours.rows, expected.rows)
        np.testing.assert_allclose(ours.result.beta, expected.result.beta, atol=2e-3)
        assert ours.result.objective == pytest.approx(expected.result.objective, rel=1e-5)


def train_pairs_of_unequal_work(monkeypatch: pytest.MonkeyPatch, share: float) -> TrainedMachines:
    """Machines of pairs that take (rows)^2 seconds each, in `share` of the time that all of them take."""
    clock, train_alone, sizes = 0.0, pairs_and_targets.train_machine, [300, 200, 40, 50, 60]

    def take_time(data: KernelProblem, *args: Any, **keywords: Any) -> Any:
        nonlocal clock
        clock += len(data.samples) ** 2
        return train_alone(data, *args, **keywords)

    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_ENTRIES", 1)
    monkeypatch.setattr(_progress, "perf_counter", lambda: clock)
    monkeypatch.setattr(pairs_and_targets, "train_machine", take_time)
    needed = sum((a + b) ** 2 for a, b in combinations(sizes, 2))
    return train_pairs(sizes, max_time=share * needed)


def test_enough_time_for_all_pairs_is_enough_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest pair takes a quarter of the time, more than its share if all pairs had equal ones."""
    assert all(machine.result.converged for machine in train_pairs_of_unequal_work(monkeypatch, 1.01))


def test_groups_do_not_depend_on_the_number_of_threads() -> None:
    one, two = train_pairs([60] * 5), train_pairs([60] * 5, n_jobs=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.result.beta, b.result.beta)
