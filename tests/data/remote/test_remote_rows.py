"""Rows on the workers of a cluster: shuffled, looked up, computed again after a loss, and freed after use."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.data import LostPartitionError
from widemargin.data.remote.remote_rows import RemoteRows, open_remote_rows

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
N = 500
X = RNG.normal(size=(N, 3)).astype(np.float32)
KEPT = np.flatnonzero(RNG.random(N) < 0.9)
BLOCK_OF = RNG.integers(2, size=len(KEPT))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def processes() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


def go_on() -> None:
    """Nothing stops the fit."""


def open_rows(rows: Any = X, size: int = 120) -> Any:
    return open_remote_rows(da.from_array(rows, chunks=(size, -1)), KEPT, N, go_on)


def held_on(workers: Any, name: str = "") -> int:
    """Results of tasks whose names have a part `name`, in the workers' memory."""
    return sum(name in str(key) for worker in workers for key in worker.data)


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_are_the_same_before_and_after_the_shuffle(client: Any, make: Callable[..., Any]) -> None:
    array = da.from_array(X, chunks=(120, 2)).map_blocks(make) if make is np.asarray else None
    collection = da.from_array(X, chunks=(120, -1)).map_blocks(make) if array is None else array
    asked = RNG.permutation(len(KEPT))[:77]
    with open_remote_rows(collection, KEPT, N, go_on) as rows:
        assert rows.shape == (len(KEPT), 3)
        before = rows[asked]
        labels = rows.assign_labels(lambda part: (np.asarray(part.sum(axis=1)).ravel() > 0).astype(int))
        rows.shuffle(BLOCK_OF, 2)
        after = rows[asked]
        sums = rows.map_blocks(
            lambda part, values, numbers: (numbers, np.asarray(part.sum(axis=1)).ravel() + values),
            np.zeros(len(rows)),
            np.arange(len(rows)),
        )
    for found in (before, after):
        assert sp.issparse(found) == (make is sp.csr_array)
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X[KEPT][asked])
    np.testing.assert_array_equal(labels, X[KEPT].sum(axis=1) > 0)
    for block, (numbers, values) in enumerate(sums):
        np.testing.assert_array_equal(np.sort(numbers), np.flatnonzero(block == BLOCK_OF))
        np.testing.assert_allclose(values, X[KEPT][numbers].sum(axis=1), rtol=1e-5)


def test_mixed_partitions_take_the_wider_form(client: Any) -> None:
    parts = [X[:200].astype(np.float64), sp.csr_array(X[200:])]
    delayed = [da.from_delayed(_delayed(part), part.shape, part.dtype) for part in parts]
    with open_remote_rows(da.concatenate(delayed), KEPT, N, go_on) as rows:
        assert rows.dtype == np.float64
        rows.shuffle(BLOCK_OF, 2)
        np.testing.assert_array_equal(rows[np.arange(10)], X[KEPT][:10])


def _delayed(part: Any) -> Any:
    import dask

    return dask.delayed(part)


def test_rows_are_freed_after_use_and_after_a_failure(cluster: Any, client: Any) -> None:
    workers = cluster.workers.values()
    with open_rows() as rows:
        rows.shuffle(BLOCK_OF, 2)
        assert held_on(workers, "stack_rows") == 2
    wait_until(lambda: held_on(workers) == 0)

    def fail(part: Any) -> None:
        raise ZeroDivisionError

    with open_rows() as rows:
        rows.shuffle(BLOCK_OF, 2)
        with pytest.raises(ZeroDivisionError):
            rows.map_blocks(fail)
    wait_until(lambda: held_on(workers, "stack_rows") == 0)


@pytest.mark.slow
def test_partitions_leave_the_workers_once_they_are_shuffled(cluster: Any, client: Any) -> None:
    def read_slowly(part: Any) -> Any:
        time.sleep(0.2)
        return part

    workers = cluster.workers.values()
    gc.collect()
    gc.disable()  # nothing may wait for the next search for cycles
    try:
        slow = da.from_array(X, chunks=(120, -1)).map_blocks(read_slowly, dtype=X.dtype)
        with open_remote_rows(slow, KEPT, N, go_on) as rows:
            assert held_on(workers, "read_slowly") == 5
            rows.assign_labels(lambda part: read_slowly(np.zeros(len(part), int)))
            wait_until(lambda: held_on(workers, "_call_on_partitions") + held_on(workers, "_itself") == 0)
            rows.shuffle(BLOCK_OF, 2)
            wait_until(lambda: held_on(workers) == 2)
    finally:
        gc.enable()


def test_a_function_of_partitions_is_sent_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, pickled = RNG.normal(size=3), []

    class Router:
        def __reduce__(self) -> Any:
            pickled.append(self)
            return sum_of, (weight,)

        def __dask_tokenize__(self) -> str:  # else early versions of Dask pickle it, too, for the name of the task
            return "router"

    with open_rows(size=50) as rows:
        labels = rows.assign_labels(Router())  # type: ignore[arg-type]  # callable once it has arrived
    assert len(pickled) == 1
    np.testing.assert_array_equal(labels, X[KEPT] @ weight > 0)


def sum_of(weight: Any) -> Callable[[Any], Any]:
    return lambda part: part @ weight > 0


def test_rows_are_freed_when_the_client_is_lost(cluster: Any) -> None:
    client = distributed.Client(cluster)
    rows = RemoteRows(client, da.from_array(X, chunks=(120, -1)), KEPT, N, go_on)
    rows.shuffle(BLOCK_OF, 2)
    client.close()
    wait_until(lambda: held_on(cluster.workers.values()) == 0)


def test_rows_of_the_sample_are_not_asked_for_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_rows() as rows:
        chosen, values = rows.sample
        monkeypatch.setattr(rows, "_submit", None)
        np.testing.assert_array_equal(rows[chosen[::-1]], values[::-1])


def test_partitions_that_are_lost_while_their_workers_are_asked_for(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    who_has = client.who_has

    def lose_then_ask(futures: list[Any]) -> Any:
        client.cancel(futures[1:])
        return who_has(futures)

    monkeypatch.setattr(client, "who_has", lose_then_ask)
    with pytest.raises(LostPartitionError, match="were lost with their worker"), open_rows():
        pass


@pytest.mark.slow
def test_a_worker_whose_memory_is_full_is_an_error(cluster: Any, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widemargin.data.remote.client.MAX_WAIT", 0.5)
    monkeypatch.setattr("widemargin.data.remote.client._is_stuck", lambda worker: True)
    with open_rows() as rows:
        rows.shuffle(BLOCK_OF, 2)
        with pytest.raises(MemoryError, match="near its limit"):
            rows.map_blocks(lambda part: time.sleep(2.5))


@pytest.mark.slow
@pytest.mark.parametrize("run", range(3))
def test_a_worker_that_dies_during_the_shuffle(processes: Any, run: int) -> None:
    rng = np.random.default_rng(run)
    pids = sorted(processes.run(os.getpid).values())
    with open_rows() as rows:
        import threading

        killer = threading.Timer(float(rng.uniform(0, 0.1)), os.kill, (pids[run % 2], signal.SIGKILL))
        killer.start()
        rows.shuffle(BLOCK_OF, 2)
        np.testing.assert_array_equal(rows[np.arange(len(KEPT))], X[KEPT])
        killer.join()
        np.testing.assert_array_equal(rows[np.arange(len(KEPT))], X[KEPT])
