"""The design matrix X (n, d) wherever its rows are: in this process, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._threads import ThreadTeam
from .abstract_matrix import DesignMatrix
from .design_matrix import make_design_matrix
from .remote.partitioned_matrix import open_partitions
from .remote.partitions import is_dask_collection


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
