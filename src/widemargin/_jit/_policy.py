"""The one decorator of the compiled room, and the call that compiles everything ahead of time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba

_FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}  # sums may be reordered; NaN and infinity keep their meaning
_CACHE = os.environ.get("WIDEMARGIN_JIT_CACHE", "1") != "0"


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call: no interpreter lock, free reordering of sums, kept in numba's cache folder.

    Where no cache folder is writable (a read-only install, a locked-down container) the kernel is
    compiled anew in every process instead of failing on import.
    """
    options: Any = {"nogil": True, "fastmath": _FASTMATH, "boundscheck": False, "error_model": "numpy"}
    if function.__name__.startswith("_"):  # called from compiled code alone: its callers carry it along
        inner: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        return numba.njit(**inner)(function)
    try:
        return numba.njit(cache=_CACHE, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
