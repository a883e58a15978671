"""The build backend: scikit-build-core's, which says how far it is, and gets a C++ compiler where the machine has none.

`pip` shows nothing of a build, which takes minutes: what is compiled, and how much of it is done, goes to the terminal.

The `ziglang` wheel holds Clang with all that it needs. `CXX`, or a toolchain file of CMake's, names another compiler.
On Windows it is taken unless one is named: what is found there by default is Microsoft's, which lacks extensions.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
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
_TERMINAL = "CONOUT$" if sys.platform == "win32" else "/dev/tty"
_SECONDS_BETWEEN_REPORTS = 20.0


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
    with TemporaryDirectory() as folder:
        settings = {"build-dir": folder, **(settings or {})}
        if not _has_compiler():
            settings = {**_compiler_of_ziglang(folder), **settings}
        with _reporting(Path(settings["build-dir"])):
            return build(directory, settings, metadata_directory)


def _compiler_of_ziglang(cache: str) -> dict[str, str]:
    """The settings that make CMake take Clang from the `ziglang` wheel."""
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("no C++ compiler is here (c++, g++, clang++): name one in CXX, or install ziglang")
    # By its path: an isolated build's `python -m` does not know the package.
    os.environ["ZIG"] = str(shutil.which("zig", path=spec.submodule_search_locations[0]))
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = os.environ["ZIG_LOCAL_CACHE_DIR"] = str(Path(cache) / "zig")
    os.environ.setdefault("CMAKE_GENERATOR", "Ninja")
    return {"cmake.toolchain-file": str(_TOOLCHAIN)}


@contextmanager
def _reporting(build_folder: Path) -> Iterator[None]:
    """Say what is compiled, every 20 seconds how much of it is done, and how long it took."""
    begin, finished = time.perf_counter(), Event()

    def report() -> None:
        while not finished.wait(_SECONDS_BETWEEN_REPORTS):
            n_done = sum(1 for pattern in ("*.o", "*.obj") for _ in build_folder.rglob(pattern))
            _say(f"{n_done} files compiled after {time.perf_counter() - begin:.0f} s")

    _say("compiling some 30 C++ files, one to two minutes on two idle cores for one processor level")
    reporter = Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
        _say(f"compiled in {time.perf_counter() - begin:.0f} s")
    finally:
        finished.set()
        reporter.join()


def _say(message: str) -> None:
    """Write a line to the terminal past pip, which hides what a build prints; to stderr where there is no terminal."""
    line = f"widemargin: {message}\n"
    try:
        with open(_TERMINAL, "w", encoding="utf-8") as terminal:
            terminal.write(f"\n{line}")
    except OSError:
        sys.stderr.write(line)
