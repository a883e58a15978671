"""One door for all kinds of data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._threads import ThreadTeam
from .dask import is_partitioned, open_partitions
from .design_matrix import Rows, make_rows


@contextmanager
def open_rows(X: Any, team: ThreadTeam, memory_budget: int = 2**30) -> Iterator[Rows]:
    """Hold data ready for passes inside a ``with`` block: on a cluster if they are there, else where they are.

    Parameters
    ----------
    X : as `make_rows` or `open_partitions`
    team : ThreadTeam
    memory_budget : int
        Both for data in this process.
    """
    if is_partitioned(X):
        with open_partitions(X, team) as rows:
            yield rows
    else:
        yield make_rows(X, team, memory_budget)
