"""The rows of a kernel machine on the workers of a dask cluster: clustered, shuffled, computed with and looked up.

First the rows are in the partitions of a dask collection, which pure tasks read; after `RemoteRows.shuffle` in blocks,
one for each worker and outside of dask's store (`block_store`); a task on a block is bound to the worker that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import chain, zip_longest
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._config import SMALL_BYTES
from ..._native import Stopped
from ..._types import Labels, RowIndices
from ..rows import positions
from .client import LostBlockError, active_client, collect_pure, running_workers, wait_for_partitions
from .partitions import as_rows, check_partition, check_widths, partitions_of
from .worker_blocks import Futures, WorkerBlocks

SAMPLE_ROWS = 10_000  # brought to this process, to be clustered, and for checks of their scale

T = TypeVar("T")
Form: TypeAlias = "tuple[np.dtype[Any], bool]"  # dtype, whether sparse


class PartitionInfo(NamedTuple):
    """What a task returns about a partition: rows, columns, dtype, whether it is sparse."""

    n_rows: int
    n_features: int
    dtype: Any
    is_sparse: bool


class RemoteRows:
    """Rows (n, d) of a dask collection, on its workers.

    Parameters
    ----------
    client : distributed.Client
    X : dask array or dask data frame
    kept : ndarray of int
        The rows of the collection that count, in ascending order: they are the rows 0 ... n - 1 here.
    n_total : int
        Rows that the collection should have.
    check : callable
        Called every 0.1 s while something is waited for. It raises an exception to end that.

    Raises
    ------
    ValueError
        If a partition holds NaN or infinity, or no numbers, or another number of columns than the first; or if X does
        not have `n_total` rows.
    LostPartitionError
        Here and later, if a lost partition cannot be computed again because it had been scattered by hand.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    token : str
        Of the fit: sent to the workers once it is stopped (`block_store.ended_test`).
    rows_of_blocks : list of ndarray of int
        After `shuffle`: the rows that are in each block, in its order.
    """

    def __init__(self, client: Any, X: Any, kept: RowIndices, n_total: int, check: Callable[[], None]) -> None:
        self.client = client
        self.check = check
        self.token = uuid4().hex
        self._sources = partitions_of(X)
        self._load_partitions(do_not_check)
        infos = _in_order(zip(self._groups, self._map(_inspect, self._groups, check=do_not_check), strict=True))
        check_widths([info.n_features for info in infos])
        n_found = sum(info.n_rows for info in infos)
        if n_found != n_total:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_found}, {n_total}]")
        self.dtype = np.result_type(*[info.dtype for info in infos])
        self.shape = len(kept), infos[0].n_features
        self._is_sparse = all(info.is_sparse for info in infos)
        self._form = self.dtype, self._is_sparse
        numbers = np.split(positions(kept, n_total), np.cumsum([info.n_rows for info in infos])[:-1])
        # Of each partition: whether all its rows count; places in it of those that do, and their numbers
        self._are_whole = [bool((rows >= 0).all()) for rows in numbers]
        self._places = [np.flatnonzero(rows >= 0) for rows in numbers]
        self._numbers = [rows[places] for rows, places in zip(numbers, self._places, strict=True)]
        self.rows_of_blocks: list[RowIndices] = []
        self.blocks: WorkerBlocks | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_workers(self) -> int:
        """Workers of the cluster, now."""
        return len(running_workers(self.client))

    # ----------------------------------------------------------------------------------------------------- partitions

    def _load_partitions(self, check: Callable[[], None]) -> None:
        """Compute the partitions, and put those that are on one worker into groups of at most `SMALL_BYTES`."""
        from distributed import CancelledError

        self._partitions = self.client.compute(self._sources)
        wait_for_partitions(self._partitions, check)
        where: dict[str, Any] = {}
        with suppress(CancelledError):  # lost since then: the next task on them says so
            where = self.client.who_has(self._partitions)
        sizes = self.client.nbytes(summary=False)
        self._groups: list[list[int]] = []
        self._group_workers: list[str] = []
        latest: dict[str, int] = {}
        bytes_left: dict[str, float] = {}
        for number, part in enumerate(self._partitions):
            worker, size = next(iter(where.get(part.key, ())), ""), sizes.get(part.key, 0)
            if worker not in latest or size > bytes_left[worker]:
                latest[worker], bytes_left[worker] = len(self._groups), SMALL_BYTES
                self._groups.append([])
                self._group_workers.append(worker)
            self._groups[latest[worker]].append(number)
            bytes_left[worker] -= size

    def _map(
        self,
        function: Callable[..., Any],
        groups: Sequence[Sequence[int]],
        *of_parts: list[Any],
        shared: tuple[Any, ...] = (),
        check: Callable[[], None] | None = None,
    ) -> list[Any]:
        """``function(*shared, partitions, their numbers, *their values)`` of every group: a list of results.

        Each of `of_parts` has a value for every partition. `shared` may hold futures, whose values are sent to each
        worker once.
        """
        tasks = [
            self.client.submit(
                function,
                *shared,
                [self._partitions[p] for p in group],
                group,
                *([values[p] for p in group] for values in of_parts),
                pure=False,
            )
            for group in groups
        ]
        return collect_pure(self.client, tasks, check or self.check)

    def map_partitions(
        self, function: Callable[..., Any], *of_rows: NDArray[Any], check: Callable[[], None] | None = None
    ) -> list[Any]:
        """``function(X, *values)`` of every partition, with the values of its rows out of each of `of_rows` (n,)."""
        values = [[all_values[rows] for rows in self._numbers] for all_values in of_rows]
        places = [None if is_whole else place for is_whole, place in zip(self._are_whole, self._places, strict=True)]
        once = self.client.submit(_itself, function, pure=False)
        results = self._map(_call_on_partitions, self._groups, places, *values, shared=(once,), check=check)
        return _in_order(zip(self._groups, results, strict=True))

    def assign_labels(self, function: Callable[[Any], Labels]) -> Labels:
        """The labels (n,) of all rows: ``function(X)`` (m,) of every partition's rows X (m, d), on the workers."""
        labels = np.empty(len(self), np.intp)
        for rows, part_labels in zip(self._numbers, self.map_partitions(function), strict=True):
            labels[rows] = part_labels
        return labels

    def release(self) -> None:
        """Have the cluster free partitions and blocks, even where a traceback still refers to their futures."""
        for future in [*filter(None, self._partitions), *(self.blocks.keys if self.blocks is not None else ())]:
            future.release()

    def __getitem__(self, rows: RowIndices) -> Any:
        """Some rows, brought to this process: an array or a CSR array of shape (m, d). It works in a stopped fit, too.

        Rows of `sample` are not asked for again.
        """
        place = positions(rows, len(self))
        if "sample" in self.__dict__:
            known, values = self.sample
            of_sample = positions(known, len(self))[rows]
            if (of_sample >= 0).all():
                return values[of_sample]
        numbers = self._numbers if self.blocks is None else self.rows_of_blocks
        chosen = [np.flatnonzero(place[part_rows] >= 0) for part_rows in numbers]
        if self.blocks is None:
            groups = [group for group in self._groups if any(len(chosen[p]) for p in group)]
            places = [part_places[here] for part_places, here in zip(self._places, chosen, strict=True)]
            found = self._map(_cut, groups, places, shared=(self._form,), check=do_not_check)
            used = [p for group in groups for p in group]
        else:
            used = [p for p, here in enumerate(chosen) if len(here)]
            found = self.blocks.call_by_message(_take_rows, [(chosen[p],) for p in used], only=used, check=do_not_check)
        if not found:
            return np.empty((0, self.shape[1]), self.dtype)
        return stack_rows(found)[positions(np.concatenate([numbers[p][chosen[p]] for p in used]), len(self))[rows]]

    @cached_property
    def sample(self) -> tuple[RowIndices, Any]:
        """At most `SAMPLE_ROWS` rows, at random but always the same: their numbers, ascending, and the rows."""
        n = len(self)
        chosen = np.arange(n)
        if n > SAMPLE_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n, SAMPLE_ROWS, replace=False))
        return chosen, self[chosen]

    # --------------------------------------------------------------------------------------------------------- blocks

    def shuffle(self, block_of: NDArray[np.intp], n_blocks: int) -> None:
        """Move row i to block ``block_of[i]``; a block is on one worker, in ascending order. Partitions are dropped.

        A row is sent at most once. A worker holds its share of the rows once, in partitions, pieces and its block, and
        what is on the way.
        """
        self.rows_of_blocks = [np.flatnonzero(block_of == block) for block in range(n_blocks)]
        self.blocks = WorkerBlocks(self.client, self._make_blocks, n_blocks, self.check, self.token)
        self.blocks.ensure()

    def map(self, function: Callable[..., Any], values: NDArray[Any], grace: float = 0.0) -> list[Any]:
        """``function(X, values)`` of every block, with the values (k, m) of its rows out of all (k, n).

        Once the fit is stopped, every worker's `ended_test` is true, and results are waited for `grace` seconds more.
        """
        assert self.blocks is not None
        check = _Grace(self.check, self.blocks.end, grace)
        arguments = [(function, values[:, rows]) for rows in self.rows_of_blocks]
        return self.blocks.call(_call_on_rows, arguments, check=check)

    def make_objects(self, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> WorkerObjects:
        """An object ``make(X, *arguments[number])`` of the rows of every block, in its worker's memory."""
        assert self.blocks is not None
        return WorkerObjects(self.blocks, make, arguments)

    def _make_blocks(self, workers: dict[int, str]) -> Generator[Futures, None, None]:
        """Start the tasks that make blocks and fill them: `make` of `WorkerBlocks`.

        A wave moves one group of partitions of each worker, so that all workers lose and gain rows at about one pace.
        """
        from .block_store import new_block

        if not self._partitions:
            self._load_partitions(self.check)
        submit = {p: partial(self.client.submit, workers=[worker], pure=False) for p, worker in workers.items()}
        keys = {p: submit[p](new_block, (len(self.rows_of_blocks[p]), self.shape[1]), *self._form) for p in workers}
        yield list(keys.values())
        place = {p: positions(self.rows_of_blocks[p], len(self)) for p in workers}
        try:
            for wave in self._waves():
                tasks = [
                    self._move(group, place[block], partial(submit[block], priority=1), keys[block])
                    for group in wave
                    for block in workers
                ]
                for p in chain(*wave):
                    self._partitions[p] = None  # dask keeps it until the tasks on it are done
                yield [task for task in tasks if task is not None]
        finally:
            self._partitions = []

    def _move(self, group: list[int], place: RowIndices, submit: Callable[..., Any], key: Any) -> Any:
        """The future of a task that adds a group's rows to the block `key`; None if no row of the group belongs there.

        `place` (n,) is the position of every row in the block, -1 for rows of other blocks.
        """
        from .block_store import add_rows

        chosen = [np.flatnonzero(place[self._numbers[p]] >= 0) for p in group]
        rows = np.concatenate([place[self._numbers[p][here]] for p, here in zip(group, chosen, strict=True)])
        if not len(rows):
            return None
        places = [self._places[p][here] for p, here in zip(group, chosen, strict=True)]
        parts = [self._partitions[p] for p in group]
        return submit(add_rows, key, rows, self.client.submit(_cut, self._form, parts, group, places, pure=False))

    def _waves(self) -> Iterator[list[list[int]]]:
        """The groups of partitions in waves: lists of groups, at most one of each worker."""
        of_workers: dict[str, list[list[int]]] = {}
        for group, worker in zip(self._groups, self._group_workers, strict=True):
            of_workers.setdefault(worker, []).append(group)
        for wave in zip_longest(*of_workers.values()):
            yield [group for group in wave if group is not None]


class WorkerObjects:
    """An object for each block, in its worker's memory: `run` starts tasks on them, `fetch` brings the results here.

    The objects are made by the first `run`. A task may change its object. One that is lost with its worker is made
    again by the next `run`, as it was at first.
    """

    def __init__(self, blocks: WorkerBlocks, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        self._blocks = blocks
        self._make = make
        self._arguments = arguments
        self._are_there = self._were_made = False
        self._token = uuid4().hex  # of these objects: a block has one object at a time

    def __len__(self) -> int:
        return len(self._arguments)

    def run(self, function: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> Futures:
        """Futures of ``function(object, *args)`` on the workers of all objects, or of some; args may hold futures."""
        if not self._are_there:
            self._make_missing()
        return self._blocks.run(_call_on_object, self._token, function, *args, only=only)

    def fetch(self, tasks: Futures) -> list[Any]:
        """The results of tasks of `run`. Raises LostBlockError if a worker is lost, or a result with it."""
        try:
            return self._blocks.fetch(tasks)
        except LostBlockError:
            self._are_there = False
            raise

    def _make_missing(self) -> None:
        """Make the objects that are not there. Raises LostBlockError if a worker is lost meanwhile."""
        is_there = [False] * len(self)
        if self._were_made:
            is_there = self._blocks.fetch(self._blocks.run(_has_object, self._token))
        missing = [number for number, found in enumerate(is_there) if not found]
        tasks = [
            self._blocks.run(_make_object, self._token, self._make, *self._arguments[number], only=[number])[0]
            for number in missing
        ]
        self._were_made = True
        self._blocks.fetch(tasks)
        self._are_there = True


class _Grace:
    """`check` with a delay: when it first raises `Stopped`, call `end`, and raise `Stopped` only `seconds` later."""

    def __init__(self, check: Callable[[], None], end: Callable[[], None], seconds: float) -> None:
        self._check = check
        self._end = end
        self._seconds = seconds
        self._deadline: float | None = None

    def __call__(self) -> None:
        try:
            self._check()
        except Stopped:
            if self._deadline is None:
                self._deadline = monotonic() + self._seconds
                self._end()
            if monotonic() > self._deadline:
                raise


@contextmanager
def open_remote_rows(X: Any, kept: RowIndices, n: int, check: Callable[[], None]) -> Iterator[RemoteRows]:
    """The rows `kept` of a dask collection of n rows, on the active client's cluster: see `RemoteRows`."""
    with active_client() as client:
        rows = RemoteRows(client, X, kept, n, check)
        try:
            yield rows
        finally:
            rows.release()


def count_rows(X: Any) -> int:
    """Rows of a dask collection, computed where they are not known."""
    if hasattr(X, "to_dask_array"):
        return len(X)
    return int(X.shape[0] if X.shape[0] == X.shape[0] else X.compute_chunk_sizes().shape[0])


def _in_order(by_group: Iterable[tuple[list[int], list[T]]]) -> list[T]:
    """The values of partitions, given by group, in the order of the partitions."""
    by_number = {number: value for group, values in by_group for number, value in zip(group, values, strict=True)}
    return [by_number[number] for number in range(len(by_number))]


def do_not_check() -> None:
    """A `check` that never ends a wait."""


# --------------------------------------------------------------------------------------------------- on the workers


def stack_rows(parts: Sequence[Any]) -> Any:
    """Rows of arrays or CSR arrays below one another."""
    if len(parts) == 1:
        return parts[0]
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def _itself(value: T) -> T:
    return value


def _inspect(parts: list[Any], numbers: list[int]) -> list[PartitionInfo]:
    rows = (check_partition(part, number) for part, number in zip(parts, numbers, strict=True))
    return [PartitionInfo(X.shape[0], X.shape[1], X.dtype, sp.issparse(X)) for X in rows]


def _call_on_partitions(
    function: Callable[..., Any],
    parts: list[Any],
    numbers: list[int],
    places: list[RowIndices | None],
    *values: list[Any],
) -> list[Any]:
    return [function(_rows_at(part, place), *more) for part, place, *more in zip(parts, places, *values, strict=True)]


def _cut(form: Form, parts: list[Any], numbers: list[int], places: list[RowIndices]) -> Any:
    """Rows at given places of some partitions, below one another, with the dtype and the storage of `form`."""
    dtype, is_sparse = form
    found = [_rows_at(part, place).astype(dtype, copy=False) for part, place in zip(parts, places, strict=True)]
    return stack_rows(found if is_sparse else [X.toarray() if sp.issparse(X) else X for X in found])


def _rows_at(part: Any, places: RowIndices | None) -> Any:
    X = as_rows(part)
    return X if places is None or len(places) == X.shape[0] else X[places]


def _take_rows(block: Any, places: RowIndices) -> Any:
    return block.X[places]


def _call_on_rows(block: Any, function: Callable[..., Any], values: NDArray[Any]) -> Any:
    return function(block.X, values)


def _has_object(block: Any, token: str) -> bool:
    return block.made is not None and block.made[0] == token


def _make_object(block: Any, token: str, make: Callable[..., Any], *args: Any) -> None:
    block.made = None  # that of another machine is freed first
    block.made = token, make(block.X, *args)


def _call_on_object(block: Any, token: str, function: Callable[..., Any], *args: Any) -> Any:
    if not _has_object(block, token):
        raise LostBlockError("a worker no longer has what it had made")
    return function(block.made[1], *args)
