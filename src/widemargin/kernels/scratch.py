"""Reused buffers for tiles: the first write to a new page takes as long as the arithmetic on its values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_KEPT_BYTES = 2**24  # in all, between fits
_CACHE_LINE = 64
_scratch: deque[NDArray[np.uint8]] = deque(maxlen=64)


class Scratch:
    """A buffer of `n_bytes` at least for a ``with`` block, one that an earlier block returned if there is any."""

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
    """Free all but 16 MB of the buffers when the block ends."""
    try:
        yield
    finally:
        release()


def release() -> None:
    """Free all but 16 MB of the buffers."""
    free = _KEPT_BYTES
    for _ in range(len(_scratch)):
        try:
            buffer = _scratch.popleft()
        except IndexError:  # another thread took the last one
            return
        if buffer.nbytes <= free:
            free -= buffer.nbytes
            _scratch.append(buffer)


def _aligned(n_bytes: int) -> NDArray[np.uint8]:
    """An uninitialised buffer aligned to a cache line, which a vector load across two lines would read twice."""
    memory = np.empty(n_bytes + _CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % _CACHE_LINE
    return memory[first : first + n_bytes]
