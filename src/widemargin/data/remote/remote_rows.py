"""The rows of a kernel machine on the workers of a dask cluster: clustered, shuffled, computed with and looked up.

They are in the partitions of a dask collection, and after `RemoteRows.shuffle` in blocks, one for each worker. All
tasks are pure: where a worker is lost, dask computes again what it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._config import SMALL_BYTES
from ..._native import Stopped
from ..._threads import cached_property
from ..._types import AnyArray, DType, Labels, Mask, RowIndices
from ..rows import positions
from .client import GRACE, active_client, collect_pure, do_not_check, running_workers, wait_for_partitions
from .partitions import as_rows, check_partition, check_widths, partitions_of

SAMPLE_ROWS = 10_000  # brought to this process, to be clustered, and for checks of their scale

T = TypeVar("T")
Form: TypeAlias = "tuple[DType, bool]"  # dtype, whether sparse


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
        Of the fit: sent to the workers once it is stopped (`ended_test`).
    """

    def __init__(self, client: Any, X: Any, kept: RowIndices, n_total: int, check: Callable[[], None]) -> None:
        self.client = client
        self.check = check
        self.token = uuid4().hex
        self._partitions: list[Any] = client.compute(partitions_of(X))
        self._load_partitions()
        inspected = collect_pure(client, self._submit(_inspect, self._groups), do_not_check)
        infos = _in_order(zip(self._groups, inspected, strict=True))
        check_widths([info.n_features for info in infos])
        n_found = sum(info.n_rows for info in infos)
        if n_found != n_total:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_found}, {n_total}]")
        self.dtype = np.result_type(*[info.dtype for info in infos])
        self.shape = len(kept), infos[0].n_features
        self._form = self.dtype, all(info.is_sparse for info in infos)
        numbers = np.split(positions(kept, n_total), np.cumsum([info.n_rows for info in infos])[:-1])
        # Of each partition: whether all its rows count; places in it of those that do, and their numbers
        self._are_whole = [bool((rows >= 0).all()) for rows in numbers]
        self._places = [np.flatnonzero(rows >= 0) for rows in numbers]
        self._numbers = [rows[places] for rows, places in zip(numbers, self._places, strict=True)]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_workers(self) -> int:
        """Workers of the cluster, now."""
        return len(running_workers(self.client))

    def _load_partitions(self) -> None:
        """Wait for the partitions, and put those that are on one worker into groups of at most `SMALL_BYTES`."""
        from distributed import CancelledError

        wait_for_partitions(self._partitions)
        where: dict[str, Any] = {}
        with suppress(CancelledError):  # lost since then: the next task on them says so
            where = self.client.who_has(self._partitions)
        sizes = self.client.nbytes(summary=False)
        self._groups: list[list[int]] = []
        latest: dict[str, int] = {}
        bytes_left: dict[str, float] = {}
        for number, part in enumerate(self._partitions):
            worker, size = next(iter(where.get(part.key, ())), ""), sizes.get(part.key, 0)
            if worker not in latest or size > bytes_left[worker]:
                latest[worker], bytes_left[worker] = len(self._groups), SMALL_BYTES
                self._groups.append([])
            self._groups[latest[worker]].append(number)
            bytes_left[worker] -= size

    def _submit(
        self,
        function: Callable[..., Any],
        groups: Sequence[Sequence[int]],
        *of_parts: list[Any],
        shared: tuple[Any, ...] = (),
    ) -> list[Any]:
        """Futures of ``function(*shared, partitions, their numbers, *their values)`` of every group.

        Each of `of_parts` has a value for every partition. `shared` may hold futures, whose values are sent to each
        worker once.
        """
        return [
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

    def map_partitions(
        self, function: Callable[..., Any], *of_rows: AnyArray, check: Callable[[], None] | None = None
    ) -> list[Any]:
        """``function(X, *values)`` of every partition, with the values of its rows out of each of `of_rows` (n,)."""
        values = [[all_values[rows] for rows in self._numbers] for all_values in of_rows]
        places = [None if is_whole else place for is_whole, place in zip(self._are_whole, self._places, strict=True)]
        once = self.client.submit(_itself, function, pure=False)
        tasks = self._submit(_call_on_partitions, self._groups, places, *values, shared=(once,))
        results = collect_pure(self.client, tasks, check or self.check)
        return _in_order(zip(self._groups, results, strict=True))

    def map_blocks(self, function: Callable[..., Any], *of_rows: AnyArray) -> list[Any]:
        """`map_partitions` after `shuffle`, of a function that returns soon once `ended_test` of this fit is true.

        Its results are waited for a few seconds after a stop.
        """
        return self.map_partitions(function, *of_rows, check=_Grace(self.check, self._end))

    def _end(self) -> None:
        self.client.run(_note_end, self.token, on_error="ignore")

    def assign_labels(self, function: Callable[[Any], Labels]) -> Labels:
        """The labels (n,) of all rows: ``function(X)`` (m,) of every partition's rows X (m, d), on the workers."""
        labels = np.empty(len(self), np.intp)
        for rows, part_labels in zip(self._numbers, self.map_partitions(function), strict=True):
            labels[rows] = part_labels
        return labels

    def shuffle(self, block_of: NDArray[np.intp], n_blocks: int) -> None:
        """Move row i to block ``block_of[i]``, one on each worker. The blocks replace the partitions.

        Until all rows have arrived, a worker holds its share of them twice.
        """
        cut = [self._cut_rows(block_of == block) for block in range(n_blocks)]
        workers = cycle([[worker] for worker in sorted(running_workers(self.client))] or [None])
        self._partitions = [
            self.client.submit(stack_rows, pieces, workers=next(workers), allow_other_workers=True, pure=False)
            for pieces, _ in cut
        ]
        self._numbers = [numbers for _, numbers in cut]
        self._places = [np.arange(len(numbers)) for numbers in self._numbers]
        self._are_whole = [True] * n_blocks
        self._groups = [[block] for block in range(n_blocks)]
        del cut  # the workers keep the blocks alone
        collect_pure(self.client, self.client.map(np.shape, self._partitions, pure=False), self.check)

    def _cut_rows(self, is_chosen: Mask) -> tuple[list[Any], RowIndices]:
        """Futures of the chosen rows, one for each group of partitions, and the numbers of the rows in this order."""
        chosen = [np.flatnonzero(is_chosen[rows]) for rows in self._numbers]
        groups = [group for group in self._groups if any(len(chosen[p]) for p in group)]
        places = [part_places[here] for part_places, here in zip(self._places, chosen, strict=True)]
        numbers = [np.empty(0, np.intp), *(self._numbers[p][chosen[p]] for group in groups for p in group)]
        return self._submit(_cut, groups, places, shared=(self._form,)), np.concatenate(numbers)

    def __getitem__(self, rows: RowIndices) -> Any:
        """Some rows, brought to this process: an array or a CSR array of shape (m, d). It works in a stopped fit, too.

        Rows of `sample` are not asked for again.
        """
        if "sample" in self.__dict__:
            known, values = self.sample
            of_sample = positions(known, len(self))[rows]
            if (of_sample >= 0).all():
                return values[of_sample]
        pieces, numbers = self._cut_rows(positions(rows, len(self)) >= 0)
        if not pieces:
            return np.empty((0, self.shape[1]), self.dtype)
        return stack_rows(collect_pure(self.client, pieces, do_not_check))[positions(numbers, len(self))[rows]]

    @cached_property
    def sample(self) -> tuple[RowIndices, Any]:
        """At most `SAMPLE_ROWS` rows, at random but always the same: their numbers, ascending, and the rows."""
        n = len(self)
        chosen = np.arange(n)
        if n > SAMPLE_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n, SAMPLE_ROWS, replace=False))
        return chosen, self[chosen]

    def release(self) -> None:
        """Have the cluster free the rows, even where a traceback still refers to their futures."""
        for future in self._partitions:
            future.release()


class _Grace:
    """`check` with a delay: when it first raises `Stopped`, call `end`, and raise `Stopped` only `GRACE` s later."""

    def __init__(self, check: Callable[[], None], end: Callable[[], None]) -> None:
        self._check = check
        self._end = end
        self._deadline: float | None = None

    def __call__(self) -> None:
        try:
            self._check()
        except Stopped:
            if self._deadline is None:
                self._deadline = monotonic() + GRACE
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


_ended: set[str] = set()  # tokens of fits that were stopped, some bytes each for the life of the worker


def _note_end(token: str) -> None:
    _ended.add(token)


def ended_test(token: str) -> Callable[[], bool]:
    """A function that returns whether the fit with this token was stopped, for a task on this worker."""
    return lambda: token in _ended


def worker_resources() -> tuple[int, int]:
    """Threads of the worker that runs this task, and its limit of memory in bytes."""
    from distributed import get_worker

    worker = get_worker()
    return worker.state.nthreads, int(worker.memory_manager.memory_limit or 2**62)
