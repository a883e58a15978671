"""Bytes for tiles, used again: fresh pages cost as much as the arithmetic on them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEPT_BYTES = 2**23
_ALIGNMENT = 64  # bytes of the largest vector register: one that lies across two lines of the cache is read twice
_scratch: deque[NDArray[np.uint8]] = deque(maxlen=64)


class Scratch:
    """Some bytes, borrowed for a ``with`` block from those that earlier blocks left."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def __enter__(self) -> NDArray[np.uint8]:
        try:
            self.buffer = _scratch.pop()
        except IndexError:
            self.buffer = _aligned(np.empty, self.n_bytes)
        if self.buffer.nbytes < self.n_bytes:
            self.buffer = _aligned(np.empty, self.n_bytes)
        return self.buffer

    def __exit__(self, *_: object) -> None:
        _scratch.append(self.buffer)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros whose first one is the first of a vector register."""
    return _aligned(np.zeros, math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _aligned(make: Callable[[int, type[np.uint8]], NDArray[np.uint8]], n_bytes: int) -> NDArray[np.uint8]:
    room = make(n_bytes + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + n_bytes]


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
