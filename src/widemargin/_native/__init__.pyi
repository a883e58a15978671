"""Compiled loops: arrays in, arrays out."""

from collections.abc import Callable
from typing import Any

from . import budget as budget
from . import csr as csr
from . import dense as dense
from . import dual as dual
from . import hinge as hinge
from . import kernels as kernels
from . import linear as linear
from . import nystroem as nystroem

class Stopped(RuntimeError):
    pass

class Team:
    """
    Threads that share out the blocks of a computation: helpers, and the thread that calls.

    One that is asked by two threads at once computes the second's blocks in that thread alone.
    """

    def __init__(self, n_threads: int, is_spinning: bool = True) -> None: ...
    @property
    def n_threads(self) -> int:
        """The number of threads, the caller's among them."""

    def stop(self) -> None:
        """
        End all computations before their next block, with Stopped, until `resume`.
        """

    def stop_after(self, seconds: float) -> None:
        """As `stop`, in so many seconds; never, if that is infinite."""

    def resume(self) -> None:
        """Take `stop` and `stop_after` back."""

    @property
    def is_stopped(self) -> bool:
        """Whether computations end before their next block."""

    def map(self, fn: Callable[..., Any], n: int) -> None:
        """Call fn(thread, item) for each item in range(n), several at a time."""

    def close(self) -> None:
        """
        End the helper threads; the calling thread does everything from here on.
        """

LEVEL: str
__all__ = ["LEVEL", "Stopped", "Team", "budget", "csr", "dense", "dual", "hinge", "kernels", "linear", "nystroem"]
