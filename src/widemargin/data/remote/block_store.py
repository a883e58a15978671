"""On the workers: what they hold outside of dask's own store, blocks of rows and objects that compute with them.

dask spills results of tasks to disk, moves them and copies them, by pickling: no place for arrays that tasks change, or
for what compiled code refers to. Here such an object lives as long as dask keeps the result of the task that has put
it here, a small key: whatever lets dask drop that, the end of a fit, an exception or the loss of the client, frees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import WorkerPlugin, get_worker

from ..._types import RowIndices
from .client import LostBlockError

NAME = "widemargin-blocks"


class RowBlock:
    """Rows X (m, d) that arrive in pieces, in any order.

    Parameters
    ----------
    shape : (int, int)
    dtype : dtype
    is_sparse : bool
        Sparse pieces are stacked when all have arrived; dense ones are copied into one array, which takes memory as
        they come.

    Attributes
    ----------
    made : (str, object) or None
        The token of a `WorkerObjects`, and its object of these rows.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], is_sparse: bool) -> None:
        self._n_missing = shape[0]
        self._known = np.zeros(shape[0], bool)
        self._pieces: list[tuple[RowIndices, Any]] = []  # sparse ones
        self._X: Any = sp.csr_array(shape, dtype=dtype) if is_sparse else np.empty(shape, dtype)
        self.made: Any = None

    @property
    def X(self) -> Any:
        """The rows. Raises LostBlockError while some are missing."""
        if self._n_missing:
            raise LostBlockError(f"{self._n_missing} rows of a block are missing")
        return self._X

    def add(self, rows: RowIndices, piece: Any) -> None:
        """Store `piece` as the rows `rows` of 0 ... m - 1; a second time without effect."""
        if self._known[rows].any():
            return
        if sp.issparse(self._X):
            self._pieces.append((rows, piece))
        else:
            self._X[rows] = piece
        self._known[rows] = True
        self._n_missing -= len(rows)
        if self._pieces and not self._n_missing:
            order = np.argsort(np.concatenate([rows for rows, _ in self._pieces]))
            self._X = sp.csr_array(sp.vstack([piece for _, piece in self._pieces]))[order]
            self._pieces = []


class BlockStore(WorkerPlugin):  # type: ignore[misc]  # a class of untyped code
    """One worker's blocks by the dask key of the task that made them, and the tokens of fits that were stopped."""

    name = NAME
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Begin without blocks and tokens."""
        self.blocks: dict[str, RowBlock] = {}
        self.ended: set[str] = set()

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """Free a block whose key dask drops."""
        if finish in ("released", "forgotten") and key in self.blocks:
            del self.blocks[key]
            if not self.blocks:
                self.ended.clear()

    def teardown(self, worker: Any) -> None:
        """Free all blocks."""
        self.blocks.clear()


def block_store() -> BlockStore:
    """The store of the worker that runs this task."""
    store = get_worker().plugins.get(NAME)
    if store is None:
        raise LostBlockError("this worker has no store of blocks")
    return store  # type: ignore[no-any-return]  # the name is ours


def new_block(shape: tuple[int, int], dtype: np.dtype[Any], is_sparse: bool) -> str:
    """Put an empty block into the store; its key."""
    key: str = get_worker().get_current_task()
    block_store().blocks[key] = RowBlock(shape, dtype, is_sparse)
    return key


def find_block(key: str) -> RowBlock:
    """A block of this worker. Raises LostBlockError if there is none."""
    block = block_store().blocks.get(key)
    if block is None:
        raise LostBlockError("a block is no longer on the worker that had it")
    return block


def add_rows(key: str, rows: RowIndices, piece: Any) -> None:
    """Add rows to a block."""
    find_block(key).add(rows, piece)


def has_block(key: str) -> bool:
    """Whether this worker has the whole block."""
    try:
        return find_block(key).X is not None
    except LostBlockError:
        return False


def call_on_block(key: str, function: Any, *args: Any) -> Any:
    """``function(block, *args)``, in a task of dask."""
    return function(find_block(key), *args)


def call_by_message(key: str, function: Any, *args: Any, dask_worker: Any) -> Any:
    """``function(block, *args)``, outside of dask's tasks, by `Client.run`."""
    store = dask_worker.plugins.get(NAME)
    if store is None or key not in store.blocks:
        raise LostBlockError("a block is no longer on the worker that had it")
    return function(store.blocks[key], *args)


def end_fit(token: str, dask_worker: Any) -> None:
    """Note on a worker that the fit with this token was stopped; by `Client.run`."""
    if NAME in dask_worker.plugins:
        dask_worker.plugins[NAME].ended.add(token)


def ended_test(token: str) -> Callable[[], bool]:
    """A function that returns whether the fit with this token was stopped, for a task on this worker."""
    ended = block_store().ended
    return lambda: token in ended


def worker_resources() -> tuple[int, int]:
    """Threads of the worker that runs this task, and its limit of memory in bytes."""
    worker = get_worker()
    return worker.state.nthreads, int(worker.memory_manager.memory_limit or 2**62)
