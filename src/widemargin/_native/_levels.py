"""The choice of the extension module: the best processor level that was built and that the processor supports."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ._processor import x86_64_level

_VARIABLE = "WIDEMARGIN_PROCESSOR_LEVEL"
_MODULES = {"v4": "_x86_64_v4", "v3": "_x86_64_v3", "v2": "_x86_64_v2", "generic": "_generic"}  # the best first


def built_levels() -> list[str]:
    """The levels whose modules are installed, the best first."""
    return [level for level, name in _MODULES.items() if find_spec(f"{__package__}.{name}")]


def supported_levels() -> list[str]:
    """The levels whose modules are installed and run on this processor, the best first."""
    return [level for level in built_levels() if level == "generic" or int(level[1:]) <= x86_64_level()]


def choose_level() -> str:
    """The level that the environment variable names, else the best one that is supported."""
    levels, wanted = supported_levels(), os.environ.get(_VARIABLE)
    if wanted and wanted not in levels:
        raise ImportError(f"{_VARIABLE} must be one of {levels} on this machine, got {wanted!r}")
    if not levels:
        raise ImportError(
            f"widemargin was built for {built_levels()}, and this processor supports none of these: install it on this "
            "machine, or for all processors by -Ccmake.define.WIDEMARGIN_LEVELS=all"
        )
    return wanted or levels[0]


def load(level: str) -> ModuleType:
    """The extension module of a level."""
    return import_module(f"{__package__}.{_MODULES[level]}")


LEVEL = choose_level()
