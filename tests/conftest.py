"""Fixtures that the tests of all packages share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from command_line import Program

collect_ignore = ["project"]  # pages, releases and benchmarks: python -m pytest tests/project


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread_for_each_worker() -> Iterator[None]:
    """Where tests run on all cores already (``-n auto``), threads of BLAS would wait for each other."""
    with threadpool_limits(1 if "PYTEST_XDIST_WORKER" in os.environ else None, "blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_not_ignored() -> None:
    """A shell has its background jobs ignore it, and tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, capsys)
