"""A design matrix on a cluster of processes: the same products and machine, also when a worker dies."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import OCASClassifier
from widemargin._native import Stopped
from widemargin._threads import ThreadTeam
from widemargin.data import LostPartitionError
from widemargin.data.remote.client import collect
from widemargin.data.remote.partitioned_matrix import open_partitions
from widemargin.data.remote.remote_rows import open_remote_rows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 7))
Y = np.where(X @ RNG.normal(size=7) + RNG.normal(size=600) > 0, "yes", "no")
EXACT = {"tol": 1e-7}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def local() -> OCASClassifier:
    return OCASClassifier(**EXACT).fit(X, Y)


def kill(client: Any, worker: str) -> None:
    """End a worker's process as the system would when memory runs out, and wait until the scheduler has seen it."""
    pid = client.run(os.getpid, workers=[worker])[worker]
    os.kill(pid, signal.SIGKILL)


def same(model: OCASClassifier, other: OCASClassifier) -> bool:
    assert model.converged_
    close = abs(model.objective_ - other.objective_) <= 2e-7 * other.objective_
    return bool(close and np.allclose(model.coef_, other.coef_, atol=1e-3))


def test_products_and_where_partitions_are(client: Any) -> None:
    with open_partitions(da.from_array(X, chunks=(150, 3)), ThreadTeam(1)) as rows:  # columns divided as well
        W, coef = RNG.normal(size=(3, 7)), RNG.normal(size=(3, 600))
        before = client.who_has(rows._partitions)
        for _ in range(3):
            assert np.allclose(rows.matvec(W), W @ X.T)
            assert np.allclose(rows.rmatvec(coef), coef @ X)
        assert rows.shape == X.shape
        assert client.who_has(rows._partitions) == before
        assert all(len(workers) == 1 for workers in before.values())
    moved = client.run(lambda dask_worker: [list(t["keys"]) for t in dask_worker.transfer_outgoing_log])
    keys = [key for log in moved.values() for keys in log for key in keys]
    assert not [key for key in keys if str(key).startswith("_as_matrix")]


@pytest.mark.parametrize("chunk", [100, 250, 600])
def test_array_gives_the_local_machine(client: Any, local: OCASClassifier, chunk: int) -> None:
    model = OCASClassifier(**EXACT).fit(da.from_array(X, chunks=(chunk, 7)), da.from_array(Y, chunks=chunk))
    assert same(model, local)
    assert (model.predict(X) == local.predict(X)).all()
    assert model.n_features_in_ == 7


def test_frame_keeps_its_names_and_weights(client: Any) -> None:
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcdefg"))
    weights = RNG.uniform(size=600)
    model = OCASClassifier(**EXACT, fit_intercept=False).fit(dd.from_pandas(frame, npartitions=3), Y, weights)
    assert same(model, OCASClassifier(**EXACT, fit_intercept=False).fit(frame, Y, weights))
    assert list(model.feature_names_in_) == list("abcdefg")


def test_sparse_partitions_and_classes(client: Any) -> None:
    sparse = sp.csr_array(np.where(X > 0.5, X, 0.0))
    classes = RNG.integers(3, size=600)
    parts = da.from_array(sparse.toarray(), chunks=(200, 7)).map_blocks(sp.csr_array)
    model = OCASClassifier(tol=1e-5).fit(parts, classes)
    other = OCASClassifier(tol=1e-5).fit(sparse, classes)
    assert model.coef_.shape == (3, 7)
    assert model.objective_ == pytest.approx(other.objective_, rel=3e-5)


def test_crammer_singer(client: Any) -> None:
    classes, how = RNG.integers(3, size=600), {"multi_class": "crammer_singer", "tol": 1e-5}
    model = OCASClassifier(**how).fit(da.from_array(X, chunks=(200, 7)), classes)
    assert model.objective_ == pytest.approx(OCASClassifier(**how).fit(X, classes).objective_, rel=3e-5)


def test_without_a_cluster_threads_of_this_process_do(local: OCASClassifier) -> None:
    assert same(OCASClassifier(**EXACT).fit(da.from_array(X, chunks=(200, 7)), Y), local)


class KillAfter:
    """Wraps `matvec`: kills the worker that holds most partitions at a given round."""

    def __init__(self, client: Any, rounds: int) -> None:
        self.client, self.rounds, self.calls, self.killed = client, rounds, 0, False

    def __call__(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def matvec(rows: Any, W: Any) -> Any:
            self.calls += 1
            if self.calls == self.rounds:
                owners = [owner for where in self.client.who_has(rows._partitions).values() for owner in where]
                kill(self.client, max(set(owners), key=owners.count))
                self.killed = True
            return original(rows, W)

        return matvec


def test_a_worker_that_dies_mid_fit(client: Any, local: OCASClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    from widemargin.data.remote.partitioned_matrix import PartitionedMatrix

    killer = KillAfter(client, rounds=4)
    monkeypatch.setattr(PartitionedMatrix, "matvec", killer(PartitionedMatrix.matvec))
    start = time.perf_counter()
    model = OCASClassifier(**EXACT).fit(da.from_array(X, chunks=(100, 7)), Y)
    assert killer.killed
    assert killer.calls > 4
    assert same(model, local)
    assert time.perf_counter() - start < 60


def test_partitions_that_cannot_be_computed_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from widemargin.data.remote.partitioned_matrix import PartitionedMatrix

    parts = client.scatter([X[:300], X[300:]], hash=False)  # put there by hand: no recipe
    collection = da.concatenate([da.from_delayed(delayed(part), (300, 7), float) for part in parts])
    monkeypatch.setattr(PartitionedMatrix, "matvec", KillAfter(client, rounds=3)(PartitionedMatrix.matvec))
    model = OCASClassifier(**EXACT)
    with pytest.raises(LostPartitionError, match=r"partitions \[.*\] of X were lost with their worker"):
        model.fit(collection, Y)
    assert not hasattr(model, "coef_")


def delayed(future: Any) -> Any:
    import dask

    return dask.delayed(future)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda part: np.where(part == X[430, 2], np.nan, part), "NaN or infinity, in partition 4"),
        (lambda part: np.full(part.shape, "abc"), "X must hold numbers: partition 0"),
    ],
)
def test_bad_partitions_are_named(client: Any, spoil: Callable[[Any], Any], message: str) -> None:
    model = OCASClassifier()
    with pytest.raises(ValueError, match=message):
        model.fit(da.from_array(X, chunks=(100, 7)).map_blocks(spoil, dtype=float), Y)
    assert not hasattr(model, "n_features_in_")


def test_labels_of_another_length(client: Any) -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        OCASClassifier().fit(da.from_array(X, chunks=(200, 7)), Y[:-1])


def test_a_pass_ends_when_the_team_is_stopped(client: Any) -> None:
    def slow(block: Any) -> Any:
        time.sleep(30)
        return block

    team = ThreadTeam(1)
    with open_partitions(da.from_array(X, chunks=(150, 7)), team) as rows:
        tasks = [client.submit(slow, part, pure=False) for part in rows._partitions]
        team.native.stop_after(0.3)
        start = time.perf_counter()
        with pytest.raises(Stopped):
            collect(client, tasks, team.check, set(client.scheduler_info()["workers"]))
        assert time.perf_counter() - start < 5
        client.cancel(tasks)


def test_a_partition_that_is_lost_while_its_worker_is_asked_for(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    who_has = client.who_has

    def lose_then_ask(blocks: list[Any]) -> Any:
        client.cancel(blocks[1:])
        return who_has(blocks)

    with open_partitions(da.from_array(X, chunks=(300, 7)), ThreadTeam(1)) as rows:
        monkeypatch.setattr(client, "who_has", lose_then_ask)
        with pytest.raises(LostPartitionError, match=r"partitions \[1\] of X were lost with their worker"):
            rows.matvec(np.zeros((1, 7)))


def test_partitions_that_never_come_back_are_given_up(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widemargin.data.remote.partitioned_matrix.MAX_WAIT", 0.2)
    with open_partitions(da.from_array(X, chunks=(300, 7)), ThreadTeam(1)) as rows:
        monkeypatch.setattr(client, "who_has", lambda blocks: {})
        with pytest.raises(LostPartitionError, match=r"partitions \[0, 1\] of X are on no worker"):
            rows.matvec(np.zeros((1, 7)))


def test_a_client_that_is_closed_during_a_fit_is_named(client: Any) -> None:
    rows = da.from_array(X, chunks=(150, 7))
    opened = partial(open_partitions, rows, ThreadTeam(1)), partial(open_remote_rows, rows, np.arange(600), 600, int)

    def use_after_closing(open_rows: Callable[[], Any], own: Any) -> None:
        with open_rows() as held:
            own.close()
            held.matvec(np.ones((1, 7))) if hasattr(held, "matvec") else held[np.arange(3)]

    def held_tasks() -> set[Any]:
        return {task for tasks in client.has_what().values() for task in tasks}

    before = held_tasks()  # of tests before, whose objects are not collected yet
    for open_rows in opened:
        with distributed.Client(client.cluster) as own, own.as_current():  # noqa: SIM117
            with pytest.raises(LostPartitionError, match="the dask client is closed: it must stay open"):
                use_after_closing(open_rows, own)
    deadline = time.monotonic() + 30  # the scheduler forgets a client's tasks some time after it has left
    while held_tasks() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not held_tasks() - before
