"""Bytes for tiles, used again: fresh pages cost as much as the arithmetic on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_KEPT_BYTES = 2**23
_CACHE_LINE = 64
_scratch: deque[NDArray[np.uint8]] = deque(maxlen=64)


class Scratch:
    """Some bytes, borrowed for a ``with`` block from those that earlier blocks left."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def __enter__(self) -> NDArray[np.uint8]:
        try:
            self.buffer = _scratch.pop()
        except IndexError:
            self.buffer = _aligned(self.n_bytes)
        if self.buffer.nbytes < self.n_bytes:
            self.buffer = _aligned(self.n_bytes)
        return self.buffer

    def __exit__(self, *_: object) -> None:
        _scratch.append(self.buffer)


@contextmanager
def closing_scratch() -> Iterator[None]:
    """Give back, after a fit, what is larger than a tile."""
    try:
        yield
    finally:
        release()


def release() -> None:
    """Give back what is larger than a tile, now."""
    for _ in range(len(_scratch)):
        try:
            buffer = _scratch.popleft()
        except IndexError:  # another thread has just borrowed the last
            return
        if buffer.nbytes <= _KEPT_BYTES:
            _scratch.append(buffer)


def _aligned(n_bytes: int) -> NDArray[np.uint8]:
    """Bytes of any value that begin a line of the cache: a vector register across two of them is read twice."""
    memory = np.empty(n_bytes + _CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % _CACHE_LINE
    return memory[first : first + n_bytes]
