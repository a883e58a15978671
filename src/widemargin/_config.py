"""Package configuration, how many bytes a fit may take and how large a kernel tile is; and the cache folder.

The values live in a context variable: what one thread (or asyncio task) sets, another does not see, and the worker
threads that `_threads` starts see what their caller set.
"""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any, TypedDict

MemoryBudget = int | float | str | None

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)", re.IGNORECASE)


class Config(TypedDict):
    """The settings, as `get_config` returns them."""

    memory_budget: MemoryBudget
    block_bytes: int


SMALL_BYTES = 2**24  # less is copied, kept or read by one thread without a thought
ALLOWED_BYTES = 10**7  # beyond a memory budget: of the interpreter, of BLAS, and of small fits as a whole
_DEFAULTS: Config = {"memory_budget": None, "block_bytes": 2**20}
_current: ContextVar[Config] = ContextVar("widemargin_config", default=_DEFAULTS)


def get_config() -> Config:
    """Return a copy of the settings in force here.

    Returns
    -------
    dict
        ``memory_budget``: as it was set, None for the default rule (see `resolve_memory_budget`).
        ``block_bytes``: bytes of one block of kernel values.

    Examples
    --------
    >>> get_config()
    {'memory_budget': None, 'block_bytes': 1048576}
    """
    return _current.get().copy()


def set_config(**settings: Any) -> None:
    """Change settings for the rest of this thread (or asyncio task).

    Parameters
    ----------
    memory_budget : int, float, str or None
        Bytes that a fit or a predict may allocate beside its data: a number, or a string such as ``"1.5GiB"``. They are
        meant to allocate at most 1.1 times this and 10 MB. A fit that needs more raises, at its start, a ValueError
        that names the least budget; one that needs less than the 10 MB runs with any budget. None: a quarter of the
        physical memory, at least 256 MiB and at most 4 GiB.
    block_bytes : int
        Bytes of one block of kernel values; a block should fit the processor's cache.

    Raises
    ------
    TypeError
        For a setting that does not exist.
    ValueError
        For a value that is not a positive number of bytes. Nothing is changed then.
    """
    _current.set(_updated(_current.get(), settings))


@contextmanager
def config_context(**settings: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block; after it they are what they were before.

    Parameters
    ----------
    **settings
        As `set_config`.

    Examples
    --------
    >>> with config_context(block_bytes=2**20):
    ...     get_config()["block_bytes"]
    1048576
    >>> get_config()["block_bytes"]
    1048576
    """
    before = _current.get()
    set_config(**settings)
    try:
        yield
    finally:
        _current.set(before)


def resolve_memory_budget(value: MemoryBudget = None) -> int:
    """Turn a memory budget as users write it into a number of bytes.

    Parameters
    ----------
    value : int, float, str or None
        A number of bytes, or a string with a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of
        1024), in any case. None: the configured ``memory_budget``, and if that is None too, a quarter of the physical
        memory, at least 256 MiB and at most 4 GiB.

    Returns
    -------
    int
        Bytes, at least 1.

    Raises
    ------
    ValueError
        If `value` is no positive, finite number of bytes.

    Examples
    --------
    >>> resolve_memory_budget("200MB")
    200000000
    >>> resolve_memory_budget("1.5 GiB")
    1610612736
    """
    if value is None:
        value = _current.get()["memory_budget"]
    return _default_budget() if value is None else _to_bytes("memory_budget", value)


def _updated(old: Config, settings: dict[str, Any]) -> Config:
    """Return `old` with `settings` checked and put in."""
    unknown = settings.keys() - _DEFAULTS.keys()
    if unknown:
        raise TypeError(f"unknown setting {min(unknown)!r}; the settings are {', '.join(_DEFAULTS)}")
    new = old.copy()
    if "memory_budget" in settings:
        resolve_memory_budget(settings["memory_budget"])
        new["memory_budget"] = settings["memory_budget"]
    if "block_bytes" in settings:
        new["block_bytes"] = _to_bytes("block_bytes", settings["block_bytes"])
    return new


def _to_bytes(name: str, value: Any) -> int:
    """Read a positive number of bytes, or raise a ValueError that names the setting and its value."""
    number = _as_number(value)
    if 1 <= number < math.inf:
        return int(number)
    given = value.tolist() if hasattr(value, "tolist") else value  # without NumPy's wrapping
    raise ValueError(
        f'{name} must be a positive number of bytes or a string such as "200MB" or "1.5GiB", got {given!r}'
    )


def _as_number(value: Any) -> float:
    """A setting's value in bytes; NaN if it is no number."""
    if isinstance(value, str):
        return _parse_quantity(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    return value  # type: ignore[return-value]  # an int stays an int, however large


def _parse_quantity(text: str) -> float:
    """Read "1.5GiB"; NaN if it cannot be read."""
    match = _QUANTITY.fullmatch(text.strip())
    unit = _UNITS.get(match[2].upper()) if match else None
    return float(match[1]) * unit if match and unit else math.nan


@cache
def _default_budget() -> int:
    return min(max(_physical_memory() // 4, 2**28), 2**32)


def _physical_memory() -> int:
    """Bytes of memory that this process can have; 4 GiB where the system does not tell."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # AttributeError: Windows has no sysconf
        return 2**32
    return min(physical, _container_limit() or physical)


def _container_limit() -> int | None:
    """The limit of the Linux control group in bytes: otherwise a container sees the memory of the whole machine."""
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # no such file, or the word "max"
        return None
