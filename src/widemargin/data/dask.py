"""Rows of a dask array or data frame: partitions that stay on the workers that made them.

An iteration of a solver is one map over the partitions (outputs: a number for each row comes back) and one map-reduce
(a sum of rows: one vector comes back). A partition's tasks are bound to the worker that holds it, so that its rows
are never sent. If a worker is lost, dask makes its partitions again elsewhere, and the pass is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, sleep
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import ThreadTeam
from .checked_csr import check_sparse
from .design_matrix import Rows, make_rows

Matrix = NDArray[np.float64]

_FAN_IN = 8  # partial sums that one task adds
_PATIENCE = 1.0  # seconds between two looks at whether all workers are still there
_ASK_EVERY = 0.1  # seconds between two looks at the clock
_MOST_LOSSES = 5  # during one pass
_MOST_WAIT = 60.0  # seconds that the scheduler may take to notice a loss


class LostPartitionError(RuntimeError):
    """A partition was lost with its worker, and dask cannot make it again."""


class PartitionedRows:
    """`Rows` whose blocks are futures on a cluster.

    Parameters
    ----------
    client : distributed.Client
    blocks : list of distributed.Future
        Of `Rows` in the memory of a worker.
    lengths : sequence of int
        Rows of each block.
    n_features : int
    team : ThreadTeam
        A pass ends with `Stopped` once this team is stopped.
    """

    def __init__(
        self, client: Any, blocks: list[Any], lengths: Sequence[int], n_features: int, team: ThreadTeam
    ) -> None:
        self._client = client
        self._check = team.check
        self._blocks = blocks
        self._cuts = np.cumsum([0, *lengths])
        self.shape = (int(self._cuts[-1]), n_features)
        self.row_bytes = 8 * n_features  # at most
        self.is_local = False

    @property
    def arrays(self) -> None:
        """None: the rows are elsewhere."""

    def outputs(self, W: Matrix) -> Matrix:
        """Products of k vectors (k, d) with every row, (k, n): a map."""

        def submit(owners: list[str]) -> list[Any]:
            once = self._client.submit(_copy, W, pure=False)  # the workers take it from each other
            return self._map(_outputs, [once] * len(self._blocks), owners)

        return np.concatenate(self._pass(submit), axis=1)

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """Sums of the rows, weighted by each row of coef (k, n), (k, d): a map-reduce, in the partitions' order."""
        coef = coef if since is None else coef - since
        slices = [np.ascontiguousarray(part) for part in np.split(coef, self._cuts[1:-1], axis=1)]

        def submit(owners: list[str]) -> list[Any]:
            return self._reduce(self._map(_weighted_sums, slices, owners))

        total: Matrix = self._pass(submit)[0]
        return total

    def dense(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """Refused, as `take`."""
        raise NotImplementedError("rows are on the workers")

    def take(self, chosen: NDArray[np.int64]) -> Rows:
        """Refused: they stay where they are."""
        raise NotImplementedError("rows are on the workers")

    def _map(self, fn: Callable[..., Any], pieces: list[Any], owners: list[str]) -> list[Any]:
        jobs = zip(self._blocks, pieces, owners, strict=True)
        return [self._client.submit(fn, block, piece, workers=[owner], pure=False) for block, piece, owner in jobs]

    def _reduce(self, tasks: list[Any]) -> list[Any]:
        while len(tasks) > 1:
            groups = [tasks[start : start + _FAN_IN] for start in range(0, len(tasks), _FAN_IN)]
            tasks = [self._client.submit(_add_up, group, pure=False) for group in groups]
        return tasks

    def _pass(self, submit: Callable[[list[str]], list[Any]]) -> list[Any]:
        """Results of the tasks that `submit` starts; once more from the beginning if a worker is lost meanwhile."""
        for _ in range(_MOST_LOSSES):
            owners = self._owners()
            results = self._collect(submit(owners), set(owners))
            if results is not None:
                return results
        raise LostPartitionError(f"{_MOST_LOSSES} workers were lost during one pass over the data")

    def _owners(self) -> list[str]:
        """The worker of each block. Blocks of a lost worker are waited for until they are made again."""
        begin = monotonic()
        while True:
            _finish(self._blocks, self._check)
            where = self._client.who_has(self._blocks)
            owners = [next(iter(where.get(block.key, ())), None) for block in self._blocks]
            if all(owners):
                return owners  # type: ignore[return-value]  # all are strings
            if monotonic() - begin > _MOST_WAIT:
                lost = [number for number, owner in enumerate(owners) if owner is None]
                raise LostPartitionError(f"partitions {lost} of X are on no worker, after {_MOST_WAIT:g} seconds")
            self._check()
            sleep(0.05)  # the scheduler knows of the loss, this process does not yet

    def _collect(self, tasks: list[Any], owners: set[str]) -> list[Any] | None:
        """Wait for results; None if one of the workers is gone, for which its tasks would wait forever."""
        from distributed import CancelledError

        gather, patience = partial(self._client.gather, tasks, asynchronous=True), _PATIENCE
        while True:
            try:
                if self._are_done(tasks):
                    results: list[Any] = self._client.sync(gather, callback_timeout=patience)
                    return results
            except (TimeoutError, CancelledError) as error:
                patience *= 2
                if isinstance(error, CancelledError) and self._has_all(owners):
                    raise
            if not self._has_all(owners):
                return None

    def _are_done(self, tasks: list[Any]) -> bool:
        """Wait for tasks, for a second."""
        from distributed import wait

        end = monotonic() + _PATIENCE
        while monotonic() < end:
            self._check()
            with suppress(TimeoutError):
                wait(tasks, timeout=_ASK_EVERY)
                return True
        return False

    def _has_all(self, owners: set[str]) -> bool:
        return owners <= set(self._client.scheduler_info(n_workers=-1)["workers"])


def is_partitioned(X: Any) -> bool:
    """Whether X is a dask collection. Imports nothing."""
    return hasattr(X, "__dask_graph__")


@contextmanager
def open_partitions(X: Any, team: ThreadTeam) -> Iterator[PartitionedRows]:
    """Hold the partitions of X in the memory of the cluster inside a ``with`` block.

    Parameters
    ----------
    X : dask array or dask data frame of shape (n, d)
        Of numbers. Partitions may be NumPy arrays, data frames or sparse arrays; float32 stays float32, everything
        else becomes float64. An array whose columns are divided too is joined first.
    team : ThreadTeam
        As of `PartitionedRows`.

    Yields
    ------
    PartitionedRows
        On the active client's cluster; where there is none, in threads of this process.

    Raises
    ------
    ValueError
        If a partition holds NaN or infinity, no numbers, or another number of columns than the first: naming it.
    LostPartitionError
        Here and during a pass, if a lost partition cannot be made again: it had been put on its worker by hand.
    """
    with _active_client() as client:
        parts = client.compute(np.ravel((X.rechunk({1: -1}) if hasattr(X, "rechunk") else X).to_delayed()).tolist())
        blocks = [client.submit(_make_block, part, number, pure=False) for number, part in enumerate(parts)]
        del parts  # the cluster keeps only what it has to
        _finish(blocks)
        shapes = client.gather(client.map(_shape, blocks, pure=False))
        for number, (_, n_features) in enumerate(shapes):
            if n_features != shapes[0][1]:
                raise ValueError(
                    f"X must have the same columns everywhere: partition {number} has {n_features}, "
                    f"partition 0 has {shapes[0][1]}"
                )
        yield PartitionedRows(client, blocks, [n for n, _ in shapes], shapes[0][1], team)


@contextmanager
def _active_client() -> Iterator[Any]:
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise ImportError("fitting a dask collection needs distributed: pip install 'widemargin[dask]'") from error
    try:
        yield get_client()
        return
    except ValueError as error:
        if "No global client" not in str(error):
            raise
    with Client(processes=False, dashboard_address=None) as own:
        yield own


def _finish(blocks: list[Any], check: Callable[[], None] = lambda: None) -> None:
    """Wait for blocks, with a check every moment; raise what kept one from being made."""
    from distributed import CancelledError, wait

    try:
        is_done = False
        while not is_done:
            check()
            with suppress(TimeoutError):
                wait(blocks, timeout=_ASK_EVERY)
                is_done = True
    except CancelledError as error:
        lost = [number for number, block in enumerate(blocks) if block.cancelled()]
        raise LostPartitionError(
            f"partitions {lost} of X were lost with their worker, and cannot be made again"
        ) from error
    for block in blocks:
        if block.status == "error":
            raise block.exception()


# --------------------------------------------------------------------------------------------------- on the workers


def _make_block(part: Any, number: int) -> Rows:
    """A partition as rows in memory, for one thread: the worker's other threads have other partitions."""
    try:
        X = _as_array(part)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: partition {number} does not ({error})") from error
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(f"Input X contains NaN or infinity, in partition {number}")
    return make_rows(X, ThreadTeam(1))


def _as_array(part: Any) -> Any:
    if sp.issparse(part):
        check_sparse(part)
        part = sp.csr_array(part)
        return part.astype(_float_of(part.dtype), copy=False)
    values = np.asarray(part)
    return np.ascontiguousarray(values, dtype=_float_of(values.dtype))


def _float_of(dtype: Any) -> type:
    return np.float32 if dtype == np.float32 else np.float64


def _shape(block: Rows) -> tuple[int, int]:
    return block.shape


def _copy(W: Matrix) -> Matrix:
    return W.copy()


def _outputs(block: Rows, W: Matrix) -> Matrix:
    return block.outputs(W)


def _weighted_sums(block: Rows, coef: Matrix) -> Matrix:
    return block.weighted_sums(coef)


def _add_up(parts: list[Matrix]) -> Matrix:
    return sum(parts[1:], parts[0])
