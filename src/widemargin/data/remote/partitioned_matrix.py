"""The design matrix of a dask array or data frame: partitions that stay on the workers that computed them.

`matvec` is a map over the partitions (one number a sample comes back), `rmatvec` a map-reduce (one vector comes back).
A partition's tasks are bound to the worker that holds it, so that samples are never sent. If a worker is lost, dask
computes its partitions again elsewhere, and the pass is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from time import monotonic, sleep
from typing import Any

import numpy as np

from ..._threads import ThreadTeam
from ..._types import Matrix
from ..abstract_matrix import DesignMatrix, LocalMatrix
from ..design_matrix import make_design_matrix
from .client import (
    MAX_LOSSES,
    MAX_WAIT,
    LostBlockError,
    LostPartitionError,
    active_client,
    collect,
    wait_for_partitions,
)
from .partitions import check_partition, check_widths, is_dask_collection, partitions_of


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
        """The future of the sum of the results, in a list: a tree of sums of at most 8."""
        while len(tasks) > 1:
            groups = [tasks[start : start + 8] for start in range(0, len(tasks), 8)]
            tasks = [self._client.submit(_add_up, group, pure=False) for group in groups]
        return tasks

    def _pass(self, submit: Callable[[list[str]], list[Any]]) -> list[Any]:
        """Results of the tasks that `submit(owners)` starts, all of them again if a worker is lost meanwhile."""
        for _ in range(MAX_LOSSES):
            owners = self._owners()
            with suppress(LostBlockError):
                return collect(self._client, submit(owners), self._check, set(owners))
        raise LostPartitionError(f"{MAX_LOSSES} workers were lost during one pass over the data")

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
            if monotonic() - begin > MAX_WAIT:
                lost = [number for number, owner in enumerate(owners) if owner is None]
                raise LostPartitionError(f"partitions {lost} of X are on no worker, after {MAX_WAIT:g} seconds")
            self._check()
            sleep(0.05)  # the scheduler has noticed the loss, this process has not


def open_design_matrix(X: Any, team: ThreadTeam, max_bytes: int = 2**30) -> AbstractContextManager[DesignMatrix]:
    """X (n, d) ready inside a ``with`` block: a dask collection on its cluster, all other data where they are."""
    if is_dask_collection(X):
        return open_partitions(X, team)
    return nullcontext(make_design_matrix(X, team, max_bytes))


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


# --------------------------------------------------------------------------------------------------- on the workers


def _as_matrix(partition: Any, number: int) -> LocalMatrix:
    """A partition as a design matrix for one thread: the worker's other threads have other partitions."""
    return make_design_matrix(check_partition(partition, number), ThreadTeam(1))


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
