"""Fixtures that the tests of all packages share."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from command_line import Program

collect_ignore = ["project"]  # pages, releases and benchmarks: python -m pytest tests/project
Rows = NDArray[np.float32] | sp.csr_array


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread_for_each_worker() -> Iterator[None]:
    """Where tests run on all cores already (``-n auto``), threads of BLAS would wait for each other."""
    with threadpool_limits(1 if "PYTEST_XDIST_WORKER" in os.environ else None, "blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_not_ignored() -> None:
    """A shell has its background jobs ignore it, and tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of benchmark data; a test that asks for it is skipped where WIDEMARGIN_DATA does not name one."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("WIDEMARGIN_DATA names no folder of benchmark data")
    return Path(folder)


@pytest.fixture(scope="session")
def load(data_dir: Path) -> Callable[..., tuple[Rows, NDArray[np.generic]]]:
    """``load("a9a")`` gives X, y of the training rows; ``load("a9a", "_test")`` those of the test rows."""

    def read(name: str, part: str = "") -> tuple[Rows, NDArray[np.generic]]:
        with np.load(data_dir / f"{name}.npz") as arrays:
            if f"X{part}" in arrays:
                return arrays[f"X{part}"], arrays[f"y{part}"]
            data, indices, indptr = (arrays[key + part] for key in ("data", "indices", "indptr"))
            return sp.csr_array((data, indices, indptr), tuple(arrays["shape" + part])), arrays["y" + part]

    return read


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, capsys)
