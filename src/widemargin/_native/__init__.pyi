"""Compiled loops: arrays in, arrays out."""

from collections.abc import Callable
from typing import Any

from . import budget as budget
from . import csr as csr
from . import dense as dense
from . import dual as dual
from . import gradients as gradients
from . import hinge as hinge
from . import kernels as kernels
from . import linear as linear
from . import nystroem as nystroem
from . import smooth as smooth

class Stopped(RuntimeError):
    pass

class Team:
    """
    n_threads threads that share out the blocks of a computation: n_threads - 1 helpers and the caller.

    While one thread computes with the team, a second caller computes its blocks alone. is_spinning:
    whether helpers spin for up to a millisecond between calls.
    """

    def __init__(self, n_threads: int, is_spinning: bool = True) -> None: ...
    @property
    def n_threads(self) -> int:
        """The number of threads, the caller included."""

    def stop(self) -> None:
        """
        Until `resume`, every computation ends before its next block and raises Stopped.
        """

    def stop_after(self, seconds: float) -> None:
        """Call `stop` after so many seconds; never, if that is infinite."""

    def resume(self) -> None:
        """Revoke `stop` and `stop_after`."""

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` is in force."""

    def map(self, fn: Callable[..., Any], n: int) -> None:
        """
        Call fn(worker, item) for each item in range(n), in all threads; worker is the thread's number.
        """

    def close(self) -> None:
        """End the helper threads; from then on the caller computes alone."""

LEVEL: str
__all__ = [
    "LEVEL",
    "Stopped",
    "Team",
    "budget",
    "csr",
    "dense",
    "dual",
    "gradients",
    "hinge",
    "kernels",
    "linear",
    "nystroem",
    "smooth",
]
