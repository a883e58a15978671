"""Memory that is kept between passes."""

import threading

import numpy as np
from numpy.typing import NDArray


class SumScratch(threading.local):
    """The sums of blocks, kept: fresh memory costs more than the sums of wide rows. One for each thread that asks."""

    def __init__(self) -> None:
        self._sums = np.empty((0, 0, 0))

    def sums(self, shape: tuple[int, int, int]) -> NDArray[np.float64]:
        """Of this shape; valid until the next call."""
        if self._sums.shape != shape:
            self._sums = np.empty(shape)
        return self._sums
