"""The one decorator of the compiled room, and the call that compiles everything ahead of time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
from numba.core import config
from numba.extending import intrinsic

_FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}  # sums may be reordered; NaN and infinity keep their meaning
IS_COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]
_CACHE = os.environ.get("WIDEMARGIN_JIT_CACHE", "1") != "0"


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call: no interpreter lock, free reordering of sums, kept in numba's cache folder.

    Where no cache folder is writable (a read-only install, a locked-down container) the kernel is
    compiled anew in every process instead of failing on import.
    """
    return _compile(function)


def borrower(function: Callable[..., Any]) -> Any:
    """A kernel that makes no array, called with arrays that its caller keeps: without reference counting.

    Numba counts the references of every array of every tuple at every call and slice, by atomic operations: of a step
    of BSGD they were a third.
    """
    return _compile(function, _nrt=False)


def pasted_borrower(function: Callable[..., Any]) -> Any:
    """A borrower of one caller, whose body is pasted there: LLVM optimises it once, not alone and in its caller."""
    return _compile(function, _nrt=False, inline="always")


def _compile(function: Callable[..., Any], **extra: Any) -> Any:
    options: Any = {"nogil": True, "fastmath": _FASTMATH, "boundscheck": False, "error_model": "numpy", **extra}
    if function.__name__.startswith("_"):  # called from compiled code alone: its callers carry it along
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(**options)(function)
    try:
        return numba.njit(cache=_CACHE, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


def written_by_hand(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Let compiled code call LLVM instructions that no loop of ours becomes.

    The decorated function is a generator of them, as `numba.extending.intrinsic` takes it. `plain` says in Python what
    they do, and does it where the compiler is switched off.
    """
    return intrinsic if IS_COMPILED else (lambda _: plain)
