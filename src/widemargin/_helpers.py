"""Helper threads: they do one thing after another, and may stay awake for a moment between them.

To wake a thread takes some 100 microseconds; a solver shares out half a millisecond of work, thousands of times.
"""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from ._jit import IS_COMPILED, turns

Flag = NDArray[np.int64]  # what threads tell each other by


class Helper:
    """A thread that does one thing after another, and may stay awake for a moment between them."""

    def __init__(self) -> None:
        self.stays_awake = False
        self._asked = turns.helpers_part(turns.new_turn(0))  # with cache lines of its own
        self._n_asked, self._n_ended = 0, 0
        self._tasks: SimpleQueue[tuple[int, Callable[[], None], Flag] | None] = SimpleQueue()
        self._ends: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()
        turns.wait_for_work(np.ones(1, np.int64), self._asked, 0, 0)  # compiled here, and not in the thread
        self._thread = threading.Thread(target=self._serve, name="widemargin", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether the end of all it was asked for has been seen."""
        return self._n_ended == self._n_asked

    def ask(self, task: Callable[[], None], busy: Flag, turn: Flag | None = None) -> None:
        """Begin with something; `wait` should follow.

        Parameters
        ----------
        task : callable
        busy : ndarray of shape (1,)
            Less by 1 when the task has ended.
        turn : ndarray, optional
            Counts the turns that are taken: of a helper that is awake, one is waited for.
        """
        number = self._n_asked + 1
        self._tasks.put((number, task, busy))
        self._n_asked = number
        if turn is not None and self.stays_awake:
            turns.begin(self._asked, number, turn)
        else:
            self._asked[0] = number

    def wait(self) -> BaseException | None:
        """Return when all is done; the error of the latest task, if there was one."""
        error = None
        while not self.is_idle:
            self._n_ended, error = self._ends.get()
        return error

    def dismiss(self, *, wait: bool = False) -> None:
        """Let the thread end, after what it is doing."""
        self._tasks.put(None)
        self._asked[0] = -1
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        done, busy = 0, np.ones(1, np.int64)
        while True:
            # the end is reported from compiled code: whoever waits for it finds the interpreter's lock free
            turns.wait_for_work(busy, self._asked, done, turns.LOOKS if self.stays_awake else 0)
            asked = self._tasks.get()
            if asked is None:
                return
            done, task, busy = asked
            error = _error_of(task)
            del asked, task  # what it holds is let go before its end is known
            self._ends.put((done, error))


def _error_of(task: Callable[[], None]) -> BaseException | None:
    try:
        task()
    except BaseException as error:
        return error
    return None


class IdleHelpers:
    """Helpers between two teams: to start them anew takes ten times as long as to wake them."""

    _MOST = 256

    def __init__(self) -> None:
        self._helpers: deque[Helper] = deque()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._helpers.clear)  # threads stay behind in the parent
        atexit.register(self._dismiss_all)

    def take(self, n: int, *, awake: bool) -> list[Helper]:
        """So many helpers; awake, there should be a core for each."""
        helpers = [self._take() for _ in range(n)]
        for helper in helpers:
            helper.stays_awake = IS_COMPILED and awake
        return helpers

    def give(self, helpers: list[Helper]) -> None:
        """Keep helpers that have nothing to do."""
        for helper in helpers:
            if helper.is_idle and len(self._helpers) < self._MOST:
                self._helpers.append(helper)
            else:
                helper.dismiss()

    def _take(self) -> Helper:
        try:
            return self._helpers.pop()
        except IndexError:
            return Helper()

    def _dismiss_all(self) -> None:
        while self._helpers:
            self._helpers.pop().dismiss(wait=True)


idle = IdleHelpers()
