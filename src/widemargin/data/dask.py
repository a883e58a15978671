"""The design matrix of a dask array or data frame: partitions that stay on the workers that computed them.

`matvec` is a map over the partitions (one number a sample comes back), `rmatvec` a map-reduce (one vector comes back).
A partition's tasks are bound to the worker that holds it, so that samples are never sent. If a worker is lost, dask
computes its partitions again elsewhere, and the pass is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from time import monotonic, sleep
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._threads import ThreadTeam
from .._types import Matrix
from .abstract_matrix import DesignMatrix, LocalMatrix, LostBlockError
from .csr import check_sparse
from .design_matrix import is_dask_collection, make_design_matrix

_FAN_IN = 8  # partial sums that one task adds
_WORKER_CHECK = 1.0  # seconds between two checks whether all workers are still there
_STOP_CHECK = 0.1  # seconds between two checks whether the fit was stopped
_MAX_LOSSES = 5  # workers lost during one pass, after which it is given up
_MAX_WAIT = 60.0  # seconds that the scheduler may take to notice a loss


class LostPartitionError(RuntimeError):
    """A partition was lost with its worker, and dask cannot compute it again."""


class PartitionedMatrix(DesignMatrix):
    """Samples whose partitions are futures on a cluster.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of distributed.Future
        Of the `LocalMatrix` of each partition, in the memory of a worker.
    lengths : sequence of int
        Samples of each partition.
    n_features : int
    team : ThreadTeam
        A pass ends with `Stopped` once this team is stopped.
    """

    def __init__(
        self, client: Any, partitions: list[Any], lengths: Sequence[int], n_features: int, team: ThreadTeam
    ) -> None:
        self._client = client
        self._partitions = partitions
        self._check = team.check
        self._cuts = np.cumsum([0, *lengths])
        self.shape = (int(self._cuts[-1]), n_features)
        self.row_bytes = 8 * n_features  # at most

    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n): a map."""

        def submit(owners: list[str]) -> list[Any]:
            once = self._client.submit(_copy, W, pure=False)  # sent once, then from worker to worker
            return self._map(_matvec, [once] * len(self._partitions), owners)

        return np.concatenate(self._pass(submit), axis=1)

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X (k, d): a map-reduce, in the order of the partitions."""
        coef = coef if base is None else coef - base
        slices = [np.ascontiguousarray(own) for own in np.split(coef, self._cuts[1:-1], axis=1)]

        def submit(owners: list[str]) -> list[Any]:
            return self._reduce(self._map(_rmatvec, slices, owners))

        total: Matrix = self._pass(submit)[0]
        return total

    def _map(self, fn: Callable[..., Any], pieces: list[Any], owners: list[str]) -> list[Any]:
        """Futures of ``fn(partition, piece)`` on the workers `owners` that have the partitions."""
        jobs = zip(self._partitions, pieces, owners, strict=True)
        return [self._client.submit(fn, part, piece, workers=[owner], pure=False) for part, piece, owner in jobs]

    def _reduce(self, tasks: list[Any]) -> list[Any]:
        """The future of the sum of the results, in a list: a tree of sums of at most `_FAN_IN`."""
        while len(tasks) > 1:
            groups = [tasks[start : start + _FAN_IN] for start in range(0, len(tasks), _FAN_IN)]
            tasks = [self._client.submit(_add_up, group, pure=False) for group in groups]
        return tasks

    def _pass(self, submit: Callable[[list[str]], list[Any]]) -> list[Any]:
        """Results of the tasks that `submit(owners)` starts, all of them again if a worker is lost meanwhile."""
        for _ in range(_MAX_LOSSES):
            owners = self._owners()
            with suppress(LostBlockError):
                return collect(self._client, submit(owners), self._check, set(owners))
        raise LostPartitionError(f"{_MAX_LOSSES} workers were lost during one pass over the data")

    def _owners(self) -> list[str]:
        """The address of each partition's worker. Waits until those of a lost worker have been computed again."""
        from distributed import CancelledError

        begin = monotonic()
        while True:
            wait_for_partitions(self._partitions, self._check)
            where: dict[str, Any] = {}
            with suppress(CancelledError):  # lost since then: `wait_for_partitions` says which, in the next iteration
                where = self._client.who_has(self._partitions)
            owners = [next(iter(where.get(part.key, ())), None) for part in self._partitions]
            if all(owners):
                return owners  # type: ignore[return-value]  # all are strings
            if monotonic() - begin > _MAX_WAIT:
                lost = [number for number, owner in enumerate(owners) if owner is None]
                raise LostPartitionError(f"partitions {lost} of X are on no worker, after {_MAX_WAIT:g} seconds")
            self._check()
            sleep(0.05)  # the scheduler has noticed the loss, this process has not


@contextmanager
def open_design_matrix(X: Any, team: ThreadTeam, max_bytes: int = 2**30) -> Iterator[DesignMatrix]:
    """Hold the samples ready inside a ``with`` block: a dask collection on its cluster, all other data where they are.

    Parameters
    ----------
    X, team, max_bytes : as of `make_design_matrix`, or of `open_partitions`
    """
    if not is_dask_collection(X):
        yield make_design_matrix(X, team, max_bytes)
        return
    with open_partitions(X, team) as partitioned:
        yield partitioned


@contextmanager
def open_partitions(X: Any, team: ThreadTeam) -> Iterator[PartitionedMatrix]:
    """Hold the partitions of X in the memory of the cluster inside a ``with`` block.

    Parameters
    ----------
    X : dask array or dask data frame of shape (n, d)
        Of numbers. Partitions may be NumPy arrays, data frames or sparse arrays; float32 stays float32, everything
        else becomes float64. An array whose columns are divided too is joined first.
    team : ThreadTeam
        As of `PartitionedMatrix`.

    Yields
    ------
    PartitionedMatrix
        On the active client's cluster; where there is none, in threads of this process.

    Raises
    ------
    ValueError
        If a partition holds NaN or infinity, no numbers, or another number of columns than the first: naming it.
    LostPartitionError
        Here and during a pass, if a lost partition cannot be computed again because it had been scattered by hand.
    """
    with active_client() as client:
        given = client.compute(partitions_of(X))
        partitions = [client.submit(_as_matrix, part, number, pure=False) for number, part in enumerate(given)]
        del given  # the cluster keeps the matrices alone
        wait_for_partitions(partitions)
        shapes = client.gather(client.map(_shape, partitions, pure=False))
        check_widths([n_features for _, n_features in shapes])
        yield PartitionedMatrix(client, partitions, [n for n, _ in shapes], shapes[0][1], team)


def check_widths(widths: Sequence[int]) -> None:
    """Raise a ValueError unless all partitions have as many columns as the first."""
    for number, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"X must have the same columns everywhere: partition {number} has {width}, partition 0 has {widths[0]}"
            )


def partitions_of(X: Any) -> list[Any]:
    """The partitions of a dask collection, all columns in each, as delayed objects."""
    partitions: list[Any] = np.ravel((X.rechunk({1: -1}) if hasattr(X, "rechunk") else X).to_delayed()).tolist()
    return partitions


@contextmanager
def active_client() -> Iterator[Any]:
    """The active client; where there is none, one whose worker is in threads of this process.

    Meanwhile dask does not warn of large graphs: tasks take a few numbers for each row with them.

    Raises
    ------
    LostPartitionError
        In place of any error, once the client has been closed.
    """
    try:
        import dask
        from distributed import Client, get_client
    except ImportError as error:
        raise ImportError("fitting a dask collection needs distributed: pip install 'dask[distributed]'") from error
    with ExitStack() as stack:
        stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}))
        try:
            client = get_client()
        except ValueError as error:
            if "No global client" not in str(error):
                raise
            client = stack.enter_context(Client(processes=False, dashboard_address=None))
        try:
            yield client
        except Exception as error:
            if client.status == "running":
                raise
            raise LostPartitionError(
                f"the dask client is {client.status}: it must stay open until the fit has ended"
            ) from error


def running_workers(client: Any) -> dict[str, Any]:
    """The scheduler's record of each worker, by address."""
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def collect(client: Any, tasks: list[Any], check: Callable[[], None], owners: set[str]) -> list[Any]:
    """The results of tasks that are bound to the workers `owners`. Calls `check` every 0.1 s meanwhile.

    Raises LostBlockError if an owner is gone, since its tasks would never end; MemoryError if an owner's memory is so
    full that dask starts no task there.
    """
    from distributed import CancelledError

    gather, timeout, n_idle = partial(client.gather, tasks, asynchronous=True), _WORKER_CHECK, 0
    while True:
        lost: BaseException | None = None
        try:
            if _are_done(client, tasks, check):
                results: list[Any] = client.sync(gather, callback_timeout=timeout)
                return results
        except (TimeoutError, CancelledError) as error:
            timeout *= 2
            lost = error if isinstance(error, CancelledError) else None
        workers = running_workers(client)
        if not owners <= set(workers):
            raise LostBlockError("a worker was lost")
        if lost is not None:
            raise LostPartitionError(
                "partitions of X were lost with their worker, and cannot be computed again"
            ) from lost
        stuck = sorted(owner for owner in owners if _is_stuck(workers[owner]))
        n_idle = 0 if workers and not stuck else n_idle + 1  # counted: this process may have been suspended
        if n_idle * _WORKER_CHECK > _MAX_WAIT:
            if not workers:
                raise LostPartitionError(f"there has been no worker for {_MAX_WAIT:g} seconds")
            raise MemoryError(
                f"worker {stuck[0]} has been too near its limit of {workers[stuck[0]]['memory_limit']} bytes for "
                f"{_MAX_WAIT:g} seconds: it needs memory for its share of the rows and for memory_budget"
            )


def collect_pure(client: Any, tasks: list[Any], check: Callable[[], None]) -> list[Any]:
    """The results of tasks that dask may run on any worker, and runs again where one is lost."""
    from distributed import KilledWorker

    try:
        return collect(client, tasks, check, set())
    except KilledWorker as error:
        raise LostPartitionError(f"partitions of X were lost again and again: {error}") from error


def _are_done(client: Any, tasks: list[Any], check: Callable[[], None]) -> bool:
    """Wait for tasks, at most a second, calling `check` every 0.1 s; whether they have ended."""
    end = monotonic() + _WORKER_CHECK
    while monotonic() < end:
        check()
        if client.sync(_end_soon, tasks):
            return True
    return False


async def _end_soon(tasks: list[Any]) -> bool:
    """Whether tasks end within 0.1 s.

    To be run by `Client.sync`. A timeout that this raised would be referred to by the frames in its own traceback, and
    workers would keep the results of the tasks until Python's next search for cycles.
    """
    from distributed import wait

    try:
        await wait(tasks, timeout=_STOP_CHECK)
    except TimeoutError:
        return False
    return True


def _is_stuck(worker: dict[str, Any]) -> bool:
    """Whether a worker neither runs a task nor may start one."""
    return worker.get("status") == "paused" and not worker.get("metrics", {}).get("task_counts", {}).get("executing")


def wait_for_partitions(partitions: list[Any], check: Callable[[], None] = lambda: None) -> None:
    """Wait for the futures of all partitions, calling `check` every 0.1 s; raise the error of one that failed."""
    from distributed import CancelledError

    try:
        begin, client = monotonic(), partitions[0].client
        check()
        while not client.sync(_end_soon, partitions):
            check()
            if monotonic() - begin > _MAX_WAIT and not running_workers(client):
                raise LostPartitionError(f"there has been no worker for {_MAX_WAIT:g} seconds")
    except CancelledError as error:
        lost = [number for number, part in enumerate(partitions) if part.cancelled()]
        raise LostPartitionError(
            f"partitions {lost} of X were lost with their worker, and cannot be computed again"
        ) from error
    for part in partitions:
        if part.status == "error":
            raise part.exception()


# --------------------------------------------------------------------------------------------------- on the workers


def check_partition(partition: Any, number: int) -> Any:
    """The partition by `as_rows`. Raises a ValueError that names it unless all its values are finite numbers."""
    try:
        X = as_rows(partition)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: partition {number} does not ({error})") from error
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(f"Input X contains NaN or infinity, in partition {number}")
    return X


def _as_matrix(partition: Any, number: int) -> LocalMatrix:
    """A partition as a design matrix for one thread: the worker's other threads have other partitions."""
    return make_design_matrix(check_partition(partition, number), ThreadTeam(1))


def as_rows(partition: Any) -> Any:
    """A partition as a float32 or float64 array in C order, or as a checked CSR array."""
    if sp.issparse(partition):
        check_sparse(partition)
        partition = sp.csr_array(partition)
        return partition.astype(_float_of(partition.dtype), copy=False)
    values = np.asarray(partition)
    return np.ascontiguousarray(values, dtype=_float_of(values.dtype))


def _float_of(dtype: Any) -> type:
    return np.float32 if dtype == np.float32 else np.float64


def _shape(matrix: Any) -> tuple[int, int]:
    n, d = matrix.shape
    return n, d


def _copy(W: Matrix) -> Matrix:
    return W.copy()


def _matvec(matrix: LocalMatrix, W: Matrix) -> Matrix:
    return matrix.matvec(W)


def _rmatvec(matrix: LocalMatrix, coef: Matrix) -> Matrix:
    return matrix.rmatvec(coef)


def _add_up(sums: list[Matrix]) -> Matrix:
    return sum(sums[1:], sums[0])
