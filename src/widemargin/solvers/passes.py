"""Compiled passes over what there is of each row: in blocks, by all threads of a team.

Blocks depend on the number of rows alone and their sums are added in their order, so that results do not depend on
the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._jit.turns import Turn
from .._parallel import ThreadTeam, count_blocks

SIZE = 2**14  # rows of a block: fewer take less time than to ask a thread

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


class Passes:
    """Passes over n rows. The functions they are made of are compiled and take turns.

    Parameters
    ----------
    n : int
    team : ThreadTeam
    """

    def __init__(self, n: int, team: ThreadTeam) -> None:
        self._n = n
        self._team = team
        self.n_blocks = count_blocks(n, SIZE)

    def run(self, visit: Callable[[Turn], None]) -> None:
        """For what it writes."""
        self._team.together(self.n_blocks, visit)

    def sums(self, k: int, add: Callable[[Turn, Matrix], None]) -> list[float]:
        """The totals of k sums, which the function writes for each block."""
        sums = np.empty((self.n_blocks, k))
        self.run(lambda turn: add(turn, sums))
        totals: list[float] = sums.sum(axis=0).tolist()
        return totals

    def lists(
        self, k: int, dtype: DTypeLike, collect: Callable[[Turn, NDArray[Any], Places, Places], None]
    ) -> list[NDArray[Any]]:
        """K lists of equal length, in the order of the blocks.

        Blocks come as they are done: the function counts the room that is taken, and writes where each has its part.
        Of the memory for all rows, no more is touched than what is found.
        """
        found, room = np.empty((k, self._n), dtype), np.zeros(1, np.int64)
        places = np.empty((self.n_blocks, 2), np.int64)
        self.run(lambda turn: collect(turn, found, room, places))
        return [np.concatenate([one[start:end] for start, end in places]) for one in found]
