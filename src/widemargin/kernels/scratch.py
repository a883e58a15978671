"""Reused buffers for tiles: the first write to a new page takes as long as the arithmetic on its values."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from .._config import SMALL_BYTES
from .._threads import after_fork_in_child

_scratch: list[NDArray[np.uint8]] = []  # in ascending order of their sizes
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


after_fork_in_child(_renew_lock)


class Scratch:
    """A buffer of `n_bytes` at least for a ``with`` block: the smallest that earlier blocks returned, or a new one.

    Where all returned ones are too small, the largest of them is freed: there are never more than were in use at once.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def __enter__(self) -> NDArray[np.uint8]:
        with _lock:
            place = bisect_left(_scratch, self.n_bytes, key=len)
            buffer = _scratch.pop(min(place, len(_scratch) - 1)) if _scratch else None
        if buffer is None or buffer.nbytes < self.n_bytes:
            del buffer
            buffer = _aligned(self.n_bytes)
        self.buffer = buffer
        return buffer

    def __exit__(self, *_: object) -> None:
        with _lock:
            insort(_scratch, self.buffer, key=len)


@contextmanager
def closing_scratch() -> Iterator[None]:
    """Free all but 16 MB of the buffers when the block ends."""
    try:
        yield
    finally:
        free_scratch()


def free_scratch() -> None:
    """Free all but 16 MB of the buffers, the largest first."""
    with _lock:
        while sum(map(len, _scratch)) > SMALL_BYTES:
            _scratch.pop()


def _aligned(n_bytes: int) -> NDArray[np.uint8]:
    """An uninitialised buffer aligned to a cache line, which a vector load across two lines would read twice."""
    memory = np.empty(n_bytes + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + n_bytes]
