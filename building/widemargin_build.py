"""The build backend: scikit-build-core's, which gets a C++ compiler from the package index where the machine has none.

The `ziglang` wheel holds Clang with all that it needs. `CXX`, or a toolchain file of CMake's, names another compiler.
On Windows it is taken unless one is named: what is found there by default is Microsoft's, which lacks extensions.
"""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (  # noqa: F401  (hooks that need no compiler)
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

Settings = dict[str, Any] | None

_NAMED_BY = ("CXX", "CMAKE_TOOLCHAIN_FILE", "CMAKE_GENERATOR_TOOLSET")
_FOUND_AS = () if sys.platform == "win32" else ("c++", "g++", "clang++")  # what CMake looks for
_TOOLCHAIN = Path(__file__).with_name("zig.cmake")


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a wheel's build needs."""
    return _compiler() + backend.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """What an editable install's build needs."""
    return _compiler() + backend.get_requires_for_build_editable(config_settings)


def build_wheel(directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel."""
    return _build(backend.build_wheel, directory, config_settings, metadata_directory)


def build_editable(directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build an editable wheel."""
    return _build(backend.build_editable, directory, config_settings, metadata_directory)


def _has_compiler() -> bool:
    return any(map(os.environ.get, _NAMED_BY)) or any(map(shutil.which, _FOUND_AS))


def _compiler() -> list[str]:
    if _has_compiler():
        return []
    os.environ.setdefault("CMAKE_GENERATOR", "Ninja")  # on Windows the default is Visual Studio
    return ["ziglang>=0.13"]


def _build(build: Callable[..., str], directory: str, settings: Settings, metadata_directory: str | None) -> str:
    if _has_compiler():
        return build(directory, settings, metadata_directory)
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("no C++ compiler is here (c++, g++, clang++): name one in CXX, or install ziglang")
    with TemporaryDirectory() as cache:  # of zig's, for this build alone
        # By its path: an isolated build's `python -m` does not know the package.
        os.environ["ZIG"] = str(shutil.which("zig", path=spec.submodule_search_locations[0]))
        os.environ["ZIG_GLOBAL_CACHE_DIR"] = os.environ["ZIG_LOCAL_CACHE_DIR"] = cache
        os.environ.setdefault("CMAKE_GENERATOR", "Ninja")
        return build(directory, {"cmake.toolchain-file": str(_TOOLCHAIN), **(settings or {})}, metadata_directory)
