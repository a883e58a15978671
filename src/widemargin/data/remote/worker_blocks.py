"""Blocks of rows on the workers of a dask cluster, and tasks on them, bound to the worker that has the block.

The blocks are in the workers' `block_store`. dask knows a small key of each, and nothing of what tasks do to a block:
this process notices the loss of a worker, and has its blocks made again elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from time import monotonic, sleep
from typing import Any, TypeAlias, TypeVar

from ..._native import Stopped
from .client import GRACE, MAX_LOSSES, MAX_WAIT, LostBlockError, LostPartitionError, collect, running_workers

T = TypeVar("T")
Futures: TypeAlias = "list[Any]"


class WorkerBlocks:
    """Blocks, each on one worker: `run` starts tasks on them, `fetch` brings their results here, `call` does both.

    `call_by_message` is for functions of a few milliseconds, for which scheduling a task would take longer.

    Parameters
    ----------
    client : distributed.Client
    make : callable
        A generator function: ``make(workers)`` starts the tasks that make some blocks, where `workers` is a dict from
        a block's number to its worker, and yields their futures in lists: first those of the blocks' keys, in the
        order of the dict, then those of the tasks that bring rows, wave after wave.
    n_blocks : int
    check : callable
        Called every 0.1 s while something is waited for. It raises an exception to end that.
    token : str
        Of the fit: sent to all workers once `check` has raised `Stopped`.

    Attributes
    ----------
    keys : list of distributed.Future
        Of the key of each block in its worker's `block_store`.
    """

    def __init__(
        self,
        client: Any,
        make: Callable[[dict[int, str]], Generator[Futures, None, None]],
        n_blocks: int,
        check: Callable[[], None],
        token: str,
    ) -> None:
        self._client = client
        self._make = make
        self._check = check
        self._token = token
        self.keys: Futures = []
        self._workers = [""] * n_blocks
        self._are_there = False
        self._n_expected = 1

    def __len__(self) -> int:
        return len(self._workers)

    def run(self, function: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> Futures:
        """Futures of ``function(block, *args)`` on the workers of all blocks, or of some; args may hold futures."""
        self.ensure()
        return [self._submit(p, function, *args) for p in (range(len(self)) if only is None else only)]

    def fetch(self, tasks: Futures, check: Callable[[], None] | None = None) -> list[Any]:
        """The results of tasks of `run`. Raises LostBlockError if a worker is lost, or a result with it."""
        from distributed import KilledWorker

        try:
            return collect(self._client, tasks, check or self._check, set(self._workers))
        except (KilledWorker, LostBlockError) as error:
            self._are_there = False
            raise LostBlockError(str(error)) from error
        except Stopped:
            self.end()
            raise

    def call(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        only: Sequence[int] | None = None,
        check: Callable[[], None] | None = None,
    ) -> list[Any]:
        """``function(block, *arguments[i])`` of all blocks, or of the i-th of some; again if a worker is lost."""
        numbers = range(len(self)) if only is None else only

        def attempt() -> list[Any]:
            self.ensure(check)
            tasks = [self._submit(p, function, *args) for p, args in zip(numbers, arguments, strict=True)]
            return self.fetch(tasks, check)

        return self._repeat(attempt, "during one pass over X")

    def call_by_message(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        only: Sequence[int],
        check: Callable[[], None] | None = None,
    ) -> list[Any]:
        """As `call`, in the thread that handles a worker's messages: no task is scheduled, the result is the reply.

        `check` is called only while lost blocks are made again.
        """

        def attempt() -> list[Any]:
            self.ensure(check)
            try:
                if not {self._workers[p] for p in only} <= running_workers(self._client).keys():
                    raise LostBlockError("a worker was lost")  # a message to it would be tried for 30 s
                return list(self._client.sync(self._send_all, function, arguments, only))
            except (OSError, LostBlockError) as error:
                self._are_there = False
                raise LostBlockError(str(error)) from error

        return self._repeat(attempt, "during one pass over X")

    async def _send_all(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], only: Sequence[int]
    ) -> list[Any]:
        from .block_store import call_by_message

        workers = [self._workers[p] for p in only]
        replies = await asyncio.gather(
            *[
                self._client.run(call_by_message, self.keys[p].key, function, *args, workers=[worker])
                for p, worker, args in zip(only, workers, arguments, strict=True)
            ]
        )
        return [reply[worker] for reply, worker in zip(replies, workers, strict=True)]

    def end(self) -> None:
        """Send the fit's token to the workers: it was stopped."""
        from .block_store import end_fit

        self._client.run(end_fit, self._token, on_error="ignore")

    def ensure(self, check: Callable[[], None] | None = None) -> None:
        """Make the blocks that are on no worker, and wait for them."""
        if not self._are_there:
            self._repeat(lambda: self._make_missing(check or self._check), "while X was read")
            self._are_there = True

    def _repeat(self, action: Callable[[], T], when: str) -> T:
        """The result of the action, again if a worker is lost meanwhile; `when` is for the message."""
        for _ in range(MAX_LOSSES):
            try:
                return action()
            except LostBlockError as error:
                lost = error
        raise LostPartitionError(f"workers were lost {MAX_LOSSES} times {when}: {lost}") from lost

    def _submit(self, block: int, function: Callable[..., Any], *args: Any) -> Any:
        from .block_store import call_on_block

        where = {"workers": [self._workers[block]], "pure": False}
        return self._client.submit(call_on_block, self.keys[block], function, *args, **where)

    def _make_missing(self, check: Callable[[], None]) -> None:
        from .block_store import BlockStore, has_block

        try:
            self._client.register_plugin(BlockStore())
        except OSError as error:  # of a worker that dies meanwhile
            raise LostBlockError(f"a worker was lost: {error}") from error
        workers = set(self._wait_for_workers(check))
        known = [p for p, worker in enumerate(self._workers) if worker in workers]
        asked = [self._client.submit(has_block, self.keys[p], workers=[self._workers[p]], pure=False) for p in known]
        found = collect(self._client, asked, check, {self._workers[p] for p in known})
        there = {p for p, is_there in zip(known, found, strict=True) if is_there}
        load = {worker: sum(self._workers[p] == worker for p in there) for worker in sorted(workers)}
        places = {}
        for block in range(len(self)):
            if block not in there:
                places[block] = self._workers[block] = min(load, key=lambda worker: load[worker])
                load[places[block]] += 1
        with closing(self._make(places)) as waves:
            keys = dict(zip(places, next(waves), strict=True))
            self.keys = [keys[block] if block in keys else self.keys[block] for block in range(len(self))]
            for tasks in waves:
                collect(self._client, tasks, check, set(places.values()))

    def _wait_for_workers(self, check: Callable[[], None]) -> set[str]:
        """The workers' addresses: of as many as there were at first, or of those that are left if some don't return."""
        begin = monotonic()
        while True:
            workers = running_workers(self._client)
            waited = monotonic() - begin
            if len(workers) >= self._n_expected or (workers and waited > GRACE):
                self._n_expected = max(self._n_expected, min(len(workers), len(self)))
                return set(workers)
            if waited > MAX_WAIT:
                raise LostPartitionError(f"there has been no worker for {MAX_WAIT:g} seconds")
            check()
            sleep(0.05)
