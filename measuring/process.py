"""Clocks, and measurements that need a process of their own: peak memory, first calls."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from measuring.imports import ROOT

_TOUCHED = 4 << 30  # bytes
_STATUS = Path("/proc/self/status")


def command(function: Callable[..., Any], *, is_stream: bool = False) -> list[str]:
    """Return the command that calls a function of a module of this repository in a fresh interpreter.

    Arguments are the last argument of the command, or those of a stream its input, as JSON: a named tuple arrives as a
    list. The result is the last line printed; of a stream, each item is a line.
    """
    parts = Path(function.__code__.co_filename).resolve().relative_to(ROOT).with_suffix("").parts
    code = f"""import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
from {".".join(parts)} import {function.__name__} as run
out = os.fdopen(os.dup(1), "w")
encode = json.JSONEncoder(default=lambda value: value.item()).encode
"""
    if is_stream:  # what is printed meanwhile is no item
        code += "os.dup2(2, 1)\nfor item in run(*json.load(sys.stdin)):\n    print(encode(item), file=out, flush=True)"
    else:
        code += "print(encode(run(*json.loads(sys.argv[1]))), file=out)"
    return [sys.executable, "-c", code]


def run_apart(
    function: Callable[..., Any],
    *arguments: Any,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Any:
    """Call a function in a fresh interpreter (`command`) and return its result.

    Raises
    ------
    RuntimeError
        With the error output, when it fails.
    subprocess.TimeoutExpired
        When it takes longer than `timeout` seconds; it is ended then.
    """
    done = subprocess.run(
        [*command(function), json.dumps(arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"{function.__name__}{arguments} failed:\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def stream(function: Callable[..., Iterator[Any]], *arguments: Any, timeout: float) -> Iterator[Any]:
    """Yield what a generator function yields in a fresh interpreter, each item at once.

    Raises
    ------
    RuntimeError
        With the error output, when it fails, or is ended after `timeout` seconds.
    """
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            command(function, is_stream=True),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        end = threading.Timer(timeout, _end, [child])
        end.start()
        try:
            with child.stdin as given:
                given.write(json.dumps(arguments))
            for line in child.stdout:
                if line.endswith("\n"):  # else it was ended within
                    yield json.loads(line)
            child.wait()
        finally:
            end.cancel()
            _end(child)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{arguments[1:3]} ended with {child.returncode}:\n{errors.read().strip()[-2000:]}")


def _end(child: subprocess.Popen[str]) -> None:
    """End a process with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def in_turns(
    fits: Mapping[str, Callable[[], Any]],
    repeats: int,
    n_rows: int,
    after: Callable[[str, Any], None] = lambda name, model: None,
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Return the last models of fits of `n_rows` rows that alternate, in reverse order every other time; their seconds.

    `after` gets each name and model.
    """
    models: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for repeat in range(repeats):
        for name in list(fits)[:: -1 if repeat % 2 else 1]:
            models.pop(name, None)
            gc.collect()
            touch_memory(n_rows)
            start = time.perf_counter()
            models[name] = fits[name]()
            seconds[name].append(time.perf_counter() - start)
            after(name, models[name])
    return models, seconds


def time_predict(model: Any, X: Any) -> float:
    """Return seconds for one `predict` of all rows: the median of as many runs as fit half a second, one at least."""
    times: list[float] = []
    while not times or (sum(times) < 0.5 and len(times) < 20):
        start = time.perf_counter()
        model.predict(X)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def touch_memory(n_rows: int) -> None:
    """Write as many bytes as a float32 kernel matrix of `n_rows` rows has, 4 GiB at most, and free them.

    The host of a virtual machine takes freed pages back after seconds and needs ten times as long as the system to
    provide them again: a fit's time would depend on how long ago another one freed its memory. Half of what is free is
    written at most, and nothing where the system does not report it.
    """
    if "SC_AVPHYS_PAGES" in os.sysconf_names:
        page = os.sysconf("SC_PAGE_SIZE")
        n_bytes = min(4 * n_rows**2, _TOUCHED, os.sysconf("SC_AVPHYS_PAGES") * page // 2)
        np.empty(n_bytes, np.uint8)[::page] = 0


def reset_peak() -> bool:
    """Set the peak to the bytes resident now; False where the system can't, and it stays that of the process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """Return the largest resident size of this process since its start or the last `reset_peak`.

    `getrusage` only where /proc is missing: a child starts with the peak of its parent there.
    """
    status = _status("VmHWM")
    if status is not None:
        return status
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def resident_bytes() -> int:
    """Return the bytes resident now, or the peak where the system doesn't report them."""
    status = _status("VmRSS")
    return peak_bytes() if status is None else status


def bytes_in_use() -> int:
    """Return the bytes that malloc has given out and that are not freed (glibc's mallinfo2).

    What is resident grows by what malloc keeps of freed memory as well: by a third in one run and not in the next.
    """
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


class _MallInfo(ctypes.Structure):
    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def _status(key: str) -> int | None:
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return None
