"""Threads: the one place that starts workers and limits the threads of BLAS.

`run` is for independent tasks (clusters, pairs of classes): threads, or the processes or the cluster that the user has
chosen with ``joblib.parallel_config``. `ThreadTeam` is for many short calls of compiled code that releases the GIL; it
adds some tens of microseconds to each. `run` and its `map` give their results in order, and while more than one thread
runs, BLAS has one: two layers of threads on the same cores only wait for each other. Workers see the caller's
configuration.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, partial
from operator import call
from types import TracebackType
from typing import Any, Self, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from ._config import Config, config_context, get_config
from ._helpers import Helper, idle
from ._jit import turns
from ._jit.turns import Turn
from ._native import Team

T = TypeVar("T")
Item = TypeVar("Item")

_is_worker: ContextVar[bool] = ContextVar("widemargin_is_worker", default=False)


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of workers that `n_jobs` asks for.

    Parameters
    ----------
    n_jobs : int or None
        A positive number is taken as it is; -1 means all cores, -2 all but one, and so on. None means all cores too,
        but one inside a worker of joblib. Inside a worker of `run` or `ThreadTeam` it is always one: the cores are
        busy already.

    Raises
    ------
    ValueError
        If `n_jobs` is 0.

    Examples
    --------
    >>> effective_n_jobs(3)
    3
    >>> run([lambda: effective_n_jobs(3)] * 2, n_jobs=2)
    [1, 1]
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive or negative integer or None, got 0")
    if _is_worker.get():
        return 1
    backend, _ = get_active_backend(prefer="threads")
    if n_jobs is None:
        n_jobs = 1 if backend.nesting_level else -1
    return int(backend.effective_n_jobs(n_jobs))


def run(tasks: Iterable[Callable[[], T]], n_jobs: int | None = None) -> list[T]:
    """Call every task, several at a time, and return their results in order.

    Parameters
    ----------
    tasks : iterable of callables without arguments
        Pure functions that return arrays. To run on a process or cluster backend they must be picklable, as are
        `functools.partial` objects of module-level functions.
    n_jobs : int or None
        See `effective_n_jobs`.

    Returns
    -------
    list
        One result per task. A single task, or a single worker, runs in the calling thread and keeps all of BLAS.

    Examples
    --------
    >>> from functools import partial
    >>> run([partial(pow, 2, k) for k in range(5)], n_jobs=2)
    [1, 2, 4, 8, 16]
    """
    tasks = list(tasks)
    n_workers = min(effective_n_jobs(n_jobs), len(tasks))
    backend, _ = get_active_backend(prefer="threads")
    if n_workers > 1 and not getattr(backend, "uses_threads", False):
        remote, config = joblib.delayed(_call_remotely), get_config()
        return list(joblib.Parallel(n_jobs=n_workers)(remote(task, config) for task in tasks))
    # joblib's own threads would do the same, at 17 ms a call
    with ThreadTeam(n_workers) as team:
        return team.map(call, tasks)


def _call_remotely(task: Callable[[], T], config: Config) -> T:
    """Call a task in another process, as its caller is configured: a context cannot be pickled, its values can."""
    mark = _is_worker.set(True)
    try:
        with config_context(**config):
            return task()
    finally:
        _is_worker.reset(mark)


def row_blocks(n: int, size: int) -> list[slice]:
    """Cut ``range(n)`` into consecutive slices of `size` rows; the last may be shorter.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def count_blocks(n: int, size: int) -> int:
    """How many `row_blocks` there would be.

    Examples
    --------
    >>> count_blocks(5, 2)
    3
    """
    return -(-n // size)


@contextmanager
def blas_limit(n: int) -> Iterator[None]:
    """Give BLAS at most `n` threads inside a ``with`` block.

    The number is one for the whole process, so blocks that overlap in time (fits in several threads) are counted: the
    smallest limit holds, and the last block to end restores what was there before the first. About 20 microseconds.
    """
    _blas.add(n)
    try:
        yield
    finally:
        _blas.remove(n)


@contextmanager
def openmp_limit(n: int) -> Iterator[None]:
    """Give the OpenMP loops that this thread calls at most `n` threads inside a ``with`` block.

    OpenMP's threads go on spinning for a while when a loop is over, on cores that a `ThreadTeam` wants by then. Only
    libraries that are loaded at the first call are heard of.
    """
    with _openmp_libraries().limit(limits=n, user_api="openmp"):
        yield


@cache
def _openmp_libraries() -> Any:
    return ThreadpoolController().select(user_api="openmp")


class _BlasThreads:
    """The limits in force, and threadpoolctl's handle on the BLAS libraries of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: list[int] = []
        self._applied: int | None = None
        self._limiter: Any = None
        self._controller: Any = None

    def add(self, n: int) -> None:
        """Put a limit in force."""
        with self._lock:
            self._limits.append(n)
            self._apply()

    def remove(self, n: int) -> None:
        """Take a limit back."""
        with self._lock:
            self._limits.remove(n)
            self._apply()

    def _apply(self) -> None:
        wanted = min(self._limits, default=None)
        if wanted == self._applied:
            return
        self._take_control()
        if self._limiter is not None:
            self._limiter.restore_original_limits()
        self._limiter = None if wanted is None else self._libraries().limit(limits=wanted, user_api="blas")
        self._applied = wanted
        self._take_control()  # and leave it to whoever is next

    def _take_control(self) -> None:
        # From 3.8 on threadpoolctl obeys the first thread alone that has set a limit, and ignores the others.
        for library in self._libraries().lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)

    def _libraries(self) -> Any:
        # Looking for the loaded libraries takes milliseconds: once, and with SciPy's own among them.
        if self._controller is None:
            import scipy.linalg  # noqa: F401

            self._controller = ThreadpoolController()
        return self._controller


_blas = _BlasThreads()
_SERIAL = Team(1)


@cache
def _n_cores() -> int:
    return int(joblib.cpu_count())


class ThreadTeam:
    """Threads that stay ready for many short calls; the calling thread is one of them.

    Parameters
    ----------
    n_jobs : int or None
        See `effective_n_jobs`. One worker, or a team used outside its ``with`` block, calls everything inline.

    Attributes
    ----------
    n_threads : int
        The number of threads, the caller's among them.

    Notes
    -----
    A call of `map` takes some 30 microseconds on two threads, 100 if they sleep (as they do after a pause of a
    millisecond), and 1 microsecond inline. The threads outlive the block, for the next team; a forked process starts
    its own.

    Examples
    --------
    >>> with ThreadTeam(2) as team:
    ...     team.map(abs, [-1, -2, 3])
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = effective_n_jobs(n_jobs)
        self._helpers: list[Helper] = []
        self._native: Team | None = None

    @property
    def native(self) -> Team:
        """The threads that compiled passes share their blocks among; the calling one alone inside a worker."""
        return _SERIAL if self._native is None or _is_worker.get() else self._native

    def __enter__(self) -> Self:
        self._native = Team(self.n_threads, self.n_threads <= _n_cores())
        if self.n_threads > 1:
            self._helpers = idle.take(self.n_threads - 1, awake=self.n_threads <= _n_cores())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.close()
            self._native = None
        helpers, self._helpers = self._helpers, []
        if kind is None:
            idle.give(helpers)
        else:  # after an error or an interrupt they may be busy still
            for helper in helpers:
                helper.dismiss(wait=True)

    def map(self, fn: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
        """Return ``[fn(item) for item in items]``, computed by all threads; each takes the next item when free.

        An error in one item ends the call: items not yet begun are dropped, and the error of the earliest is raised.
        """
        items = list(items)
        if not self._helpers or len(items) < 2 or _is_worker.get():
            return [fn(item) for item in items]
        share = _Share(fn, items)
        with blas_limit(1):
            _call_in_all(self._helpers[: len(items) - 1], share.work, takes_turns=False)
        return share.results()

    def together(self, n_blocks: int, fn: Callable[[Turn], T]) -> list[T]:
        """Call `fn` once in each thread: compiled code, which takes so many blocks by `turns.take_turn`.

        Threads that come back to the interpreter for each short block wait for its lock. BLAS is not limited here, nor
        are results in any order.
        """
        if not self._helpers or n_blocks < 2 or _is_worker.get():
            return [fn(turns.new_turn(0))]
        return _call_in_all(self._helpers[: n_blocks - 1], fn, takes_turns=True)


def _call_in_all(helpers: list[Helper], fn: Callable[[Turn], T], *, takes_turns: bool) -> list[T]:
    """Call a function here and in the helpers, with a turn that is closed early when it should not go on.

    One that takes turns begins here when a helper has taken one, and ends when the helpers have come back.
    """
    are_awake = helpers[0].stays_awake
    turn = turns.new_turn(len(helpers))
    theirs, busy = turns.helpers_part(turn), turns.still_busy(turn)
    results: list[T] = []
    try:
        for helper in helpers:
            task = partial(copy_context().run, _call_as_worker, fn, theirs, results)
            helper.ask(task, busy, theirs if takes_turns and helper is helpers[-1] else None)
        copy_context().run(_call_as_worker, fn, turn if are_awake else theirs, results)
    finally:
        turns.close(turn)  # after a KeyboardInterrupt here, the helpers must not go on
        if are_awake:
            turns.wait_for_helpers(busy, turns.LOOKS)
        errors = [helper.wait() for helper in helpers]
    for error in errors:
        if error is not None:
            raise error
    return results


def _call_as_worker(fn: Callable[[Turn], T], turn: Turn, results: list[T]) -> None:
    _is_worker.set(True)  # in a context of this call's own
    results.append(fn(turn))


class _Share:
    """The items of one `ThreadTeam.map`, taken one by one by whichever thread is free."""

    def __init__(self, fn: Callable[[Any], Any], items: list[Any]) -> None:
        self._fn = fn
        self._todo = deque(enumerate(items))  # popleft is atomic
        self._done: list[Any] = [None] * len(items)
        self._errors: list[tuple[int, Exception]] = []

    def work(self, turn: Turn) -> None:
        """Do one item after another, until nothing is left or the turn is closed."""
        while self._todo and not turns.is_closed(turn):
            try:
                k, item = self._todo.popleft()
            except IndexError:  # another thread took the last item between the two looks
                return
            try:
                self._done[k] = self._fn(item)
            except Exception as error:
                self._errors.append((k, error))
                turns.close(turn)

    def results(self) -> list[Any]:
        """Return the results in order, or raise the error of the earliest item."""
        if self._errors:
            raise min(self._errors, key=lambda pair: pair[0])[1]
        return self._done
