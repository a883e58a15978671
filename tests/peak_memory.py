"""The memory of a call, whatever the process holds beside it."""

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak_of(call: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """What the call returns, and the most bytes that Python's objects and NumPy's arrays held in it."""
    tracemalloc.start()
    try:
        result = call(*args)
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
