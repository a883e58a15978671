"""Workers: order, errors, nesting, and the threads of BLAS."""

import multiprocessing
import operator
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from widemargin import _threads
from widemargin._config import config_context, get_config
from widemargin._native import Stopped, Team
from widemargin._threads import (
    ThreadTeam,
    blas_limit,
    effective_n_jobs,
    openmp_limit,
    row_blocks,
    run,
    run_interruptibly,
)


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def configured_block_bytes() -> int:
    return get_config()["block_bytes"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def test_effective_n_jobs() -> None:
    cores = joblib.cpu_count()
    assert effective_n_jobs(None) == effective_n_jobs(-1) == cores
    assert effective_n_jobs(7) == 7
    assert effective_n_jobs(-1000) == 1
    with pytest.raises(ValueError, match="n_jobs"):
        effective_n_jobs(0)
    with pytest.raises(ValueError, match="n_jobs must be at most 4096, got 4097"):
        effective_n_jobs(4097)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_none_means_one_inside_a_worker_of_joblib(backend: str) -> None:
    results = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(effective_n_jobs)(None) for _ in range(3))
    assert results == [1, 1, 1]


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_always_one_inside_our_own_workers(n_jobs: int | None) -> None:
    assert run([partial(effective_n_jobs, n_jobs)] * 3, n_jobs=2) == [1, 1, 1]
    with ThreadTeam(2) as team:
        assert team.map(effective_n_jobs, [n_jobs] * 3) == [1, 1, 1]
    assert effective_n_jobs(3) == 3


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_results_come_in_order(n_jobs: int) -> None:
    def late(k: int) -> int:
        time.sleep(0.002 * (5 - k))
        return k

    assert run((partial(late, k) for k in range(5)), n_jobs) == [0, 1, 2, 3, 4]
    with ThreadTeam(n_jobs) as team:
        assert team.map(late, iter(range(5))) == [0, 1, 2, 3, 4]
        assert team.map(late, []) == []


def helpers() -> set[int]:
    meeting = threading.Barrier(2, timeout=10)

    def name(_: int) -> int:
        meeting.wait()
        return threading.get_ident()

    with ThreadTeam(2) as team:
        return set(team.map(name, range(2))) - {threading.get_ident()}


def test_teams_that_follow_each_other_share_their_threads() -> None:
    assert helpers() == helpers()


def test_a_helper_that_sleeps_wakes_up() -> None:
    with ThreadTeam(2) as team:
        for pause in (0.0, 0.0005, 0.02):
            time.sleep(pause)
            assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]


def exits_in_helpers(n: int) -> list[Callable[[], None]]:
    """Tasks for n threads at once: all but the caller's leave."""
    main = threading.get_ident()
    meeting = threading.Barrier(n, timeout=10)  # nobody passes unless all are there together

    def leave() -> None:
        meeting.wait()
        if threading.get_ident() != main:
            raise SystemExit(3)

    return [leave] * n


def test_errors_of_several_helpers_do_not_upset_the_next_call() -> None:
    with ThreadTeam(3) as team:
        with pytest.raises(SystemExit):
            team.map(operator.call, exits_in_helpers(3))
        for _ in range(50):
            assert team.map(lambda k: time.sleep(0.0002) or k, range(6)) == list(range(6))


def test_a_team_that_is_stopped_begins_nothing_until_it_is_released() -> None:
    done = []
    with ThreadTeam(2) as team:
        team.native.stop()
        with pytest.raises(Stopped):
            team.map(done.append, range(10))
    assert not done
    with ThreadTeam(2) as team:
        assert team.map(abs, [-1, -2]) == [1, 2]


def test_a_team_stops_at_its_time() -> None:
    with ThreadTeam(2) as team:
        team.native.stop_after(0.05)
        start = time.perf_counter()
        with pytest.raises(Stopped):
            team.map(lambda _: time.sleep(0.01), range(1000))
        assert 0.04 < time.perf_counter() - start < 4.0


def test_two_threads_may_share_a_team() -> None:
    with ThreadTeam(2) as team, ThreadPoolExecutor(4) as pool:
        sums = pool.map(lambda k: sum(team.map(abs, [-k] * 50)), range(40))
        assert list(sums) == [50 * k for k in range(40)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_starts_its_own_threads() -> None:
    helpers()
    forked = multiprocessing.get_context("fork").Process(target=helpers)
    forked.start()
    forked.join(timeout=30)
    assert forked.exitcode == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    """Another thread holds every lock and a limit of BLAS; OpenMP's threads have begun."""
    code = """
import os, signal, sys, threading
import numpy as np
from widemargin import DCSVMClassifier, _threads
from widemargin.estimators import _estimator
from widemargin.kernels import scratch
from widemargin.partition import kmeans

X = np.random.default_rng(0).normal(size=(6000, 3))
kmeans.kmeans(X, 4, np.random.default_rng(0))
model = DCSVMClassifier()
are_held = threading.Event()

class Slow:
    is_waiting = True

    @_threads.cached_property
    def value(self):
        if self.is_waiting:
            are_held.set()
            threading.Event().wait()
        return 1

def hold():
    with _threads.blas_limit(1), kmeans._silence, _estimator.all_or_nothing(model):
        locks = _threads._blas.lock, _threads._openmp_blocks._changed, scratch._lock, kmeans._silence._lock
        for lock in (*locks, _estimator._lock_of_locks):
            lock.acquire()
        Slow().value

threading.Thread(target=hold, daemon=True).start()
are_held.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)  # ends a child that hangs
    with _threads.blas_limit(2), scratch.Scratch(8):
        kmeans.kmeans(X, 4, np.random.default_rng(0))
    other = Slow()
    other.is_waiting = False
    other.value
    model.fit(X[:100], X[:100, 0] > 0)
    os._exit(len(_threads._blas.limits) + kmeans._silence._n_threads)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes_sparse_manhattan_distances() -> None:
    """GNU's OpenMP would wait there for threads that only the parent has."""
    code = """
import os, signal
import scipy.sparse as sp
from widemargin.estimators import _near_gamma
from widemargin.model_selection import _adaptive_search

X = sp.random_array((300, 50), density=0.3, format="csr", rng=0)

def compute():
    return _near_gamma._distances("laplacian", X).sum(), _adaptive_search._distances(X, X, 1).sum()

of_parent = compute()
child = os.fork()
if child == 0:
    signal.alarm(30)  # ends a child that hangs
    os._exit(compute() != of_parent)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_the_interpreter_ends_after_loops_of_openmp() -> None:
    """Its end would end a daemon thread inside of one, and GNU's OpenMP the process."""
    code = """
import threading, time
from widemargin._threads import openmp_limit

is_inside = threading.Event()

def cluster():
    with openmp_limit(1):
        is_inside.set()
        time.sleep(0.5)
        print("whole", flush=True)
    with openmp_limit(1):
        print("begun at the end")

threading.Thread(target=cluster, daemon=True).start()
is_inside.wait()
"""
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, check=True, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("whole\n", "")


def test_a_task_runs_here_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run_interruptibly(threading.get_ident, lambda: True) == threading.get_ident()


def test_a_team_without_all_of_its_threads_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = Team(2)
    monkeypatch.setattr(_threads, "_team_pool", _threads._TeamPool())  # that of all tests may have a team of 5
    with monkeypatch.context() as scarce:
        scarce.setattr(_threads, "Team", lambda n_threads, is_spinning=True: smaller)
        with ThreadTeam(5) as team:
            assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]
    assert smaller.n_threads == 1  # it is closed
    with ThreadTeam(5) as team:
        assert team.native.n_threads == 5


def test_openmp_has_no_more_threads_than_the_system_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _threads.openmp_threads() == joblib.cpu_count()
    monkeypatch.setattr(_threads, "Team", lambda n_threads, is_spinning: Team(1))
    assert _threads.openmp_threads() == 1


def test_one_worker_stays_in_the_calling_thread() -> None:
    names = run([threading.get_ident] * 3, n_jobs=1) + run([threading.get_ident], n_jobs=2)
    with ThreadTeam(1) as team:
        names += team.map(lambda _: threading.get_ident(), range(3))
    names += ThreadTeam(2).map(lambda _: threading.get_ident(), range(3))  # not entered
    assert set(names) == {threading.get_ident()}


def test_a_nested_map_of_the_same_team_does_not_wait_for_itself() -> None:
    with ThreadTeam(2) as team:
        assert team.map(lambda k: team.map(partial(operator.mul, k), [1, 2]), [1, 2, 3]) == [[1, 2], [2, 4], [3, 6]]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_earliest_error_is_raised_and_the_rest_dropped(n_jobs: int) -> None:
    done = []

    def work(k: int) -> None:
        if k in (1, 2):
            raise KeyError(k)
        done.append(k)

    with ThreadTeam(n_jobs) as team:
        with pytest.raises(KeyError):
            team.map(work, range(1000))
        assert len(done) < 999
        assert team.map(abs, [-1, -2]) == [1, 2]  # the team lives on
    with pytest.raises(KeyError, match="1"):
        run([partial(work, 1), partial(work, 0)], n_jobs)


def test_an_index_error_of_a_task_is_not_swallowed() -> None:
    with ThreadTeam(2) as team, pytest.raises(IndexError):
        team.map([1, 2].__getitem__, [0, 1, 2])


def test_blas_has_one_thread_while_several_work(two_blas_threads: None) -> None:
    assert run([blas_threads] * 3, n_jobs=2) == [{1}] * 3
    assert run([blas_threads] * 3, n_jobs=1) == [{2}] * 3
    with ThreadTeam(2) as team:
        assert team.map(lambda _: blas_threads(), range(3)) == [{1}] * 3
        assert blas_threads() == {2}


def test_blas_limits_that_overlap_are_restored_by_the_last(two_blas_threads: None) -> None:
    first, second = blas_limit(1), blas_limit(2)
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {2}
    with blas_limit(1):
        assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_blas_is_limited_from_any_thread(two_blas_threads: None) -> None:
    """One after the other, and from a second thread while the first is alive."""
    with blas_limit(1):
        assert blas_threads() == {1}

    def other() -> list[set[int]]:
        with blas_limit(1):
            inside = blas_threads()
        return [inside, blas_threads()]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(other).result() == [{1}, {2}]
    with blas_limit(1):
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_interrupt_on_the_way_into_a_limit_leaves_none(
    two_blas_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = _threads._blas_libraries()[0]
    set_threads, is_interrupted = library.set_num_threads, iter([True])

    def interrupt(n: int) -> None:
        set_threads(n)
        if next(is_interrupted, False):
            raise KeyboardInterrupt

    monkeypatch.setattr(library, "set_num_threads", interrupt)
    with pytest.raises(KeyboardInterrupt), blas_limit(1):
        pass
    assert blas_threads() == {2}
    with blas_limit(1):
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_openmp_loops_are_limited_in_the_block_alone() -> None:
    import sklearn.cluster  # noqa: F401 - loads its OpenMP

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}

    before = threads()
    with openmp_limit(1):
        assert threads() == {1}
    assert threads() == before


def test_the_users_backend_runs_the_tasks() -> None:
    with joblib.parallel_config("loky"), config_context(block_bytes=77):
        assert run([configured_block_bytes] * 2, n_jobs=2) == [77, 77]
        assert run([partial(effective_n_jobs, 4)] * 2, n_jobs=2) == [1, 1]


def test_a_task_that_is_left_behind_runs_on() -> None:
    """In the caller's configuration; its errors are raised in the caller."""
    has_begun, is_over, has_ended = threading.Event(), threading.Event(), threading.Event()
    values = []

    def task() -> None:
        has_begun.set()
        is_over.wait(60)
        values.append(configured_block_bytes())
        has_ended.set()

    with pytest.raises(Stopped), config_context(block_bytes=4711):
        run_interruptibly(task, lambda: not has_begun.is_set())
    assert values == []
    is_over.set()
    assert has_ended.wait(60)
    assert values == [4711]
    with pytest.raises(Stopped):
        run_interruptibly(lambda: values.append(0), lambda: False)
    assert values == [4711]
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 // 0, lambda: True)
    here = threading.current_thread()
    assert run_interruptibly(lambda: threading.current_thread(), lambda: True) is not here
    assert run_interruptibly(lambda: threading.current_thread(), lambda: True, work=1e3) is here


def test_row_blocks() -> None:
    assert row_blocks(0, 3) == []
    blocks = row_blocks(7, 3)
    assert [k for block in blocks for k in range(7)[block]] == list(range(7))
    assert [block.stop - block.start for block in blocks] == [3, 3, 1]
    with pytest.raises(ValueError, match="size"):
        row_blocks(3, 0)


def test_a_call_of_a_team_costs_microseconds() -> None:
    with ThreadTeam(2) as team:
        seconds = []
        for _ in range(200):
            start = time.perf_counter()
            team.map(abs, [1, 2, 3, 4])
            seconds.append(time.perf_counter() - start)
    assert sorted(seconds)[50] < 1e-3  # about 30 microseconds; the bound leaves room for a busy machine
