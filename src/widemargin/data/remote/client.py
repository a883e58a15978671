"""The client of a dask cluster, and waiting for tasks: until they end, the fit is stopped, or a worker is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic
from typing import Any

_WORKER_CHECK = 1.0  # seconds between two checks whether all workers are still there
GRACE = 5.0  # seconds for all workers to return what they have once a fit is stopped
MAX_LOSSES = 5  # of workers, during one pass over the rows: then it is given up
MAX_WAIT = 60.0  # seconds without any worker or with full ones alone, and of the scheduler until it notices a loss


class LostBlockError(RuntimeError):
    """The result of a task that is bound to a worker was lost with it: it has to be computed again."""


class LostPartitionError(RuntimeError):
    """A partition was lost with its worker, and dask cannot compute it again."""


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
    """The results of tasks that are bound to the workers `owners`, if any. Calls `check` every 0.1 s meanwhile.

    Raises LostBlockError if an owner is gone, since its tasks would never end; MemoryError if the memory of an owner,
    or of all workers, is so full that dask starts no task there.
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
        stuck = sorted(worker for worker in owners or workers if _is_stuck(workers[worker]))
        can_go_on = len(stuck) < (1 if owners else len(workers))
        n_idle = 0 if can_go_on else n_idle + 1  # counted: this process may have been suspended
        if n_idle * _WORKER_CHECK > MAX_WAIT:
            if not workers:
                raise LostPartitionError(f"there has been no worker for {MAX_WAIT:g} seconds")
            raise MemoryError(
                f"worker {stuck[0]} has been too near its limit of {workers[stuck[0]]['memory_limit']} bytes for "
                f"{MAX_WAIT:g} seconds: it needs memory for its share of the rows and for its memory budget"
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
        await wait(tasks, timeout=0.1)
    except TimeoutError:
        return False
    return True


def _is_stuck(worker: dict[str, Any]) -> bool:
    """Whether a worker neither runs a task nor may start one."""
    return worker.get("status") == "paused" and not worker.get("metrics", {}).get("task_counts", {}).get("executing")


def do_not_check() -> None:
    """A `check` that never ends a wait."""


def wait_for_partitions(partitions: list[Any], check: Callable[[], None] = do_not_check) -> None:
    """Wait for the futures of all partitions, calling `check` every 0.1 s; raise the error of one that failed."""
    from distributed import CancelledError

    try:
        begin, client = monotonic(), partitions[0].client
        check()
        while not client.sync(_end_soon, partitions):
            check()
            if monotonic() - begin > MAX_WAIT and not running_workers(client):
                raise LostPartitionError(f"there has been no worker for {MAX_WAIT:g} seconds")
    except CancelledError as error:
        lost = [number for number, part in enumerate(partitions) if part.cancelled()]
        raise LostPartitionError(
            f"partitions {lost} of X were lost with their worker, and cannot be computed again"
        ) from error
    for part in partitions:
        if part.status == "error":
            raise part.exception()
