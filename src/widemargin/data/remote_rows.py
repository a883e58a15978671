"""The rows of a kernel machine on the workers of a dask cluster: to be clustered, shuffled, worked on and looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import Stopped
from .._types import Rows
from .abstract_matrix import LostBlockError
from .dask import HeldBlocks, LostPartitionError, active_client, check_partition, end_tasks, load_partitions
from .rows import positions

SAMPLE_ROWS = 10_000  # brought to this process, to be clustered and to look at their scale
_MAX_LOSSES = 5  # of workers, during one task on all parts


class RemoteRows:
    """Rows (n, d) of which each worker has a part.

    Parameters
    ----------
    client : distributed.Client
    parts : list of distributed.Future
        Of arrays or CSR arrays, on the workers.
    index : list of ndarray of int
        The rows 0 ... n - 1 that are in each part, in its order; -1 for those that do not count.
    n_features : int
    dtype : dtype
    check : callable
        Ends what is waited for with an exception, as of `HeldBlocks`.

    Attributes
    ----------
    token : str
        As of `HeldBlocks`.
    """

    def __init__(
        self,
        client: Any,
        parts: list[Any],
        index: list[Rows],
        n_features: int,
        dtype: np.dtype[Any],
        check: Callable[[], None],
    ) -> None:
        self.client = client
        self.parts = parts
        self.index = index
        self.dtype = dtype
        self.check = check
        self.token = uuid4().hex
        n = sum(int(np.count_nonzero(rows >= 0)) for rows in index)
        self.shape = n, n_features
        self.part_of, self.place = np.empty(n, np.intp), np.empty(n, np.intp)
        for number, rows in enumerate(index):
            counts = rows >= 0
            self.part_of[rows[counts]], self.place[rows[counts]] = number, np.flatnonzero(counts)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_workers(self) -> int:
        """Workers of the cluster, now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def __getitem__(self, rows: Rows) -> Any:
        """Some rows, brought here: an array or a CSR array of shape (m, d), also of a fit that was stopped."""
        order = np.argsort(self.part_of[rows], kind="stable")
        counts = np.bincount(self.part_of[rows], minlength=len(self.parts))
        places = np.split(self.place[rows[order]], np.cumsum(counts)[:-1])
        used = np.flatnonzero(counts)
        found = self._on_parts(_take_rows, [(places[p],) for p in used], used.tolist(), _do_not_check)
        stacked = stack_rows(found) if found else np.empty((0, self.shape[1]), self.dtype)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return stacked[back]

    @cached_property
    def sample(self) -> tuple[Rows, Any]:
        """At most `SAMPLE_ROWS` rows, at random but always the same: their numbers, ascending, and the rows."""
        n = len(self)
        chosen = np.arange(n)
        if n > SAMPLE_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n, SAMPLE_ROWS, replace=False))
        return chosen, self[chosen]

    def map(self, function: Callable[..., Any], *of_rows: NDArray[Any], grace: float = 0.0) -> list[Any]:
        """``function(part, *values)`` for every part, with the values (k, n) or (n,) of its rows, those that count.

        Once the fit is stopped, `should_end` is true on the workers, and results are waited for `grace` seconds more.
        """
        arguments = [tuple(values[..., rows[rows >= 0]] for values in of_rows) for rows in self.index]
        counted = [np.flatnonzero(rows >= 0) for rows in self.index]
        calls = [(function, places, *values) for places, values in zip(counted, arguments, strict=True)]
        check = _Grace(self.check, self.client, self.token, grace) if grace else self.check
        return self._on_parts(_call_on_rows, calls, range(len(self.parts)), check)

    def shuffle(self, block_of: Rows, n_blocks: int) -> RemoteRows:
        """The rows in new parts, one for each block, spread over the workers. What was held before may be released.

        Each row is sent once. A worker holds at a time its old parts, cut into pieces, and its new ones.
        """
        pieces = [
            self.client.submit(_cut, part, *_cut_places(block_of, rows), n_blocks, pure=False)
            for part, rows in zip(self.parts, self.index, strict=True)
        ]
        workers = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        blocks, index = [], []
        for block in range(n_blocks):
            mine = [self.client.submit(_item, piece, block, pure=False) for piece in pieces]
            worker = workers[block % len(workers)]
            where = {"workers": [worker], "allow_other_workers": True}
            blocks.append(self.client.submit(stack_rows, mine, pure=False, **where))
            index.append(np.concatenate([rows[rows >= 0][block_of[rows[rows >= 0]] == block] for rows in self.index]))
        return RemoteRows(self.client, blocks, index, self.shape[1], self.dtype, self.check)

    def hold(self, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> HeldBlocks:
        """Objects ``make(part, *arguments[number])``, each held by the worker that has the part."""
        held = [
            self.client.submit(make, part, *args, pure=False) for part, args in zip(self.parts, arguments, strict=True)
        ]
        return HeldBlocks(self.client, held, self.check, self.token)

    def _on_parts(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        parts: Sequence[int],
        check: Callable[[], None],
    ) -> list[Any]:
        """Results of pure tasks on some parts; all of them again if a worker is lost."""
        held = HeldBlocks(self.client, [self.parts[p] for p in parts], check, self.token)
        for _ in range(_MAX_LOSSES):
            try:
                tasks = [held.run(function, *args, only=[k])[0] for k, args in enumerate(arguments)]
                return held.fetch(tasks) if tasks else []
            except LostBlockError as error:
                lost = error
        raise LostPartitionError(f"workers were lost {_MAX_LOSSES} times during one pass over X: {lost}") from lost


class _Grace:
    """A check that tells the workers once the fit is stopped, and ends what is waited for some seconds later."""

    def __init__(self, check: Callable[[], None], client: Any, token: str, seconds: float) -> None:
        self._check = check
        self._client = client
        self._token = token
        self._seconds = seconds
        self._end: float | None = None

    def __call__(self) -> None:
        try:
            self._check()
        except Stopped:
            if self._end is None:
                self._end = monotonic() + self._seconds
                end_tasks(self._client, self._token)
            if monotonic() > self._end:
                raise


@contextmanager
def open_remote_rows(X: Any, kept: Rows, n: int, check: Callable[[], None]) -> Iterator[RemoteRows]:
    """Hold the rows `kept` of a dask collection of n rows in the memory of the cluster inside a ``with`` block.

    Raises
    ------
    ValueError
        If a partition holds NaN or infinity, or no numbers, or X does not have n rows.
    LostPartitionError
        Here and later, if a lost partition cannot be computed again because it had been scattered by hand.
    """
    with active_client() as client:
        parts, shapes = load_partitions(client, X, check_partition)
        lengths = [length for length, _ in shapes]
        if sum(lengths) != n:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{sum(lengths)}, {n}]")
        numbers = positions(kept, n)
        dtypes = client.gather(client.map(_dtype, parts, pure=False))
        if len(set(dtypes)) > 1:
            parts = [client.submit(_to_float64, part, pure=False) for part in parts]
        index = np.split(numbers, np.cumsum(lengths)[:-1])
        yield RemoteRows(client, parts, index, shapes[0][1], np.result_type(*dtypes), check)


def count_rows(X: Any) -> int:
    """Rows of a dask collection, computed where they are not known."""
    if hasattr(X, "to_dask_array"):
        return len(X)
    return int(X.shape[0] if X.shape[0] == X.shape[0] else X.compute_chunk_sizes().shape[0])


# --------------------------------------------------------------------------------------------------- on the workers


def worker_resources() -> tuple[int, int]:
    """Threads of the worker that runs this task, and its limit of memory in bytes."""
    from distributed import get_worker

    worker = get_worker()
    return worker.state.nthreads, int(worker.memory_manager.memory_limit or 2**62)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Rows of arrays or CSR arrays below one another."""
    if len(parts) == 1:
        return parts[0]
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def _take_rows(part: Any, places: Rows) -> Any:
    return part[places]


def _call_on_rows(part: Any, function: Callable[..., Any], places: Rows, *values: NDArray[Any]) -> Any:
    return function(part if len(places) == part.shape[0] else part[places], *values)


def _cut(part: Any, places: Rows, blocks: Rows, n_blocks: int) -> list[Any]:
    return [part[places[blocks == block]] for block in range(n_blocks)]


def _cut_places(block_of: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """The places in a part of the rows that count, and their blocks."""
    places = np.flatnonzero(rows >= 0)
    return places, block_of[rows[places]]


def _item(pieces: list[Any], block: int) -> Any:
    return pieces[block]


def _dtype(part: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = part.dtype
    return dtype


def _to_float64(part: Any) -> Any:
    return part.astype(np.float64, copy=False)


def _do_not_check() -> None:
    """Nothing ends the wait."""
