"""Python's calls of functions, whose number no other load of the computer changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_calls(call: Callable[[], Any], times: int = 12) -> int:
    """The calls of Python functions in this thread: the least of several calls, as a pause of 50 ms adds a round."""
    n_calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    if times > 1:
        call()  # imports, and what is computed once
    counts, before = [], sys.getprofile()
    for _ in range(times):
        n_calls = 0
        sys.setprofile(count)
        try:
            call()
        finally:
            sys.setprofile(before)
        counts.append(n_calls)
    return min(counts)
