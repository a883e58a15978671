"""Threads: the one place that starts workers and limits the threads of BLAS.

`run` is for independent tasks (clusters, pairs of classes): threads, or the processes or the cluster that the user has
chosen with ``joblib.parallel_config``. `ThreadTeam` is for many short calls of compiled code that releases the GIL; it
adds some tens of microseconds to each. `run_interruptibly` is for one long call of another library. `run` and
`ThreadTeam.map` return results in order, and while more than one thread runs, BLAS has one: two layers of threads on
the same cores only wait for each other. Workers see the caller's configuration.
"""

import atexit
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, ContextVar, copy_context
from functools import cache, partial
from operator import call
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import joblib
from joblib.parallel import ThreadingBackend, get_active_backend
from threadpoolctl import ThreadpoolController

from ._config import Config, config_context, get_config
from ._native import Stopped, Team

T = TypeVar("T")
Item = TypeVar("Item")


class cached_property(functools.cached_property[T]):  # noqa: N801, TID251 - as that of functools
    """That of functools without its lock, which Python 3.11 leaves locked in the child of a fork."""

    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


BLOCK_ROWS, BLOCK_VALUES = 1024, 2**20  # of a pass in Python over rows: of the latter, 4 or 8 MiB of new memory
MAX_BLOCKS = 64  # of a pass whose partial sums are held: enough for all threads
SMALL_WORK = 2**22  # multiply-adds below which starting threads takes longer than they save
_BLAS_WORK = 2**17  # multiply-adds of a product, below which BLAS by itself starts no threads
WORK_PER_CHECK, VALUES_PER_CHECK = 2e9, 1e8  # multiply-adds of BLAS, values of other loops, between looks at the clock
MOST_THREADS = 4096  # of a compiled team
_LONG_WORK = 1e10  # multiply-adds, from which a task has a thread of its own: some tenths of a second

_is_worker: ContextVar[bool] = ContextVar("widemargin_is_worker", default=False)


def effective_n_jobs(n_jobs: int | None) -> int:
    """The number of workers that `n_jobs` stands for; a ValueError for 0 and beyond 4096.

    A positive number is taken as it is; -1 means all cores, -2 all but one, and so on. None means all cores too, but
    one inside a worker of joblib. Inside a worker of `run` or `ThreadTeam` it is always one: the cores are busy.

    Examples
    --------
    >>> effective_n_jobs(3)
    3
    >>> run([lambda: effective_n_jobs(3)] * 2, n_jobs=2)
    [1, 1]
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive or negative integer or None, got 0")
    if n_jobs is not None and n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {MOST_THREADS}, got {n_jobs}")
    if _is_worker.get():
        return 1
    backend, _ = get_active_backend(prefer="threads")
    if n_jobs is None:
        n_jobs = 1 if backend.nesting_level else -1
    if n_jobs < 0 and type(backend) is ThreadingBackend:  # joblib counts the cores anew each time, in files
        return max(_n_cores() + 1 + n_jobs, 1)
    return int(backend.effective_n_jobs(n_jobs))


def run(tasks: Iterable[Callable[[], T]], n_jobs: int | None = None) -> list[T]:
    """Call every task, several at a time (`effective_n_jobs`), and return their results in order.

    Tasks are pure functions that return arrays. For a process or cluster backend they must be picklable, as partial
    objects of module-level functions are. A single task, or worker, runs in the calling thread and keeps all of BLAS.

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


def run_interruptibly(task: Callable[[], T], go_on: Callable[[], bool], work: float = math.inf) -> T:
    """The result of a task that cannot end early, called in another thread, so that this one can handle Ctrl-C.

    `go_on` is called before the task, and every 20 ms; once it returns False, `Stopped` is raised and the result is
    lost. The task must be a pure function, as it may run on. A task of few multiply-adds (`work`) is called in this
    thread, as is any task where the system refuses another: the C library keeps freed memory for the thread that has
    freed it.
    """
    raise_if_stopped(go_on)
    if work < _LONG_WORK:
        return task()
    result: Future[T] = Future()

    def finish() -> None:
        try:
            result.set_result(task())
        except BaseException as error:  # raised again for the caller
            result.set_exception(error)

    try:
        threading.Thread(target=copy_context().run, args=(finish,), daemon=True).start()
    except RuntimeError:  # the system refuses another thread
        return task()
    while not wait([result], 0.02).done:
        raise_if_stopped(go_on)
    return result.result()


def raise_if_stopped(go_on: Callable[[], bool]) -> None:
    """Raise `Stopped`, as compiled passes do, if `go_on` returns False."""
    if not go_on():
        raise Stopped


def _call_remotely(task: Callable[[], T], config: Config) -> T:
    """Call a task in another process, as its caller is configured: a context cannot be pickled, its values can."""
    mark = _is_worker.set(True)
    try:
        with config_context(**config):
            return task()
    finally:
        _is_worker.reset(mark)


def row_blocks(n: int, size: int = BLOCK_ROWS) -> list[slice]:
    """Cut ``range(n)`` into consecutive slices of `size` rows; the last may be shorter.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def value_blocks(n: int, n_values: int) -> list[slice]:
    """`row_blocks` of n rows of `n_values` numbers that have about `BLOCK_VALUES` numbers each."""
    return row_blocks(n, max(1, BLOCK_VALUES // max(1, n_values)))


def count_blocks(n: int, size: int) -> int:
    """How many `row_blocks` there would be.

    Examples
    --------
    >>> count_blocks(5, 2)
    3
    """
    return -(-n // size)


_is_forked = False  # whether this process is a forked child


def _note_fork() -> None:
    global _is_forked
    _is_forked = True


def after_fork_in_child(reset: Callable[[], object]) -> None:
    """Have `reset` called in every forked child: locks may be held there by threads that only the parent has."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=reset)


after_fork_in_child(_note_fork)


class blas_limit(AbstractContextManager[None]):  # noqa: N801 - as a function
    """Give BLAS at most `n` threads inside a ``with`` block, unless the `work` of its largest product is small.

    BLAS has one number of threads in a process. Where ``with`` blocks overlap in time (fits in several threads), the
    smallest limit holds, and the last block to end restores what was there before the first. About 20 microseconds.
    """

    def __init__(self, n: int, work: float = math.inf) -> None:
        self.n, self.work, self.thread = n, work, threading.get_ident()

    def __enter__(self) -> None:
        if self.work < _BLAS_WORK:
            return
        try:
            with _blas.lock:
                _blas.limits.append(self)
                _blas.apply()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self.work < _BLAS_WORK:
            return
        with _blas.lock:
            if self in _blas.limits:  # not where an interrupt came before it was added
                _blas.limits.remove(self)
            _blas.apply()


@contextmanager
def openmp_limit(n: int) -> Iterator[None]:
    """Give the OpenMP loops that this thread calls at most `n` threads inside a ``with`` block.

    OpenMP's threads go on spinning for a while when a loop is over, on cores that a `ThreadTeam` uses by then. Only
    libraries that are loaded at the first call are limited. The interpreter ends after the block.
    """
    libraries = _openmp_libraries()
    n = min([n, *(library.num_threads for library in libraries.lib_controllers)])
    with _openmp_blocks, libraries.limit(limits=n, user_api="openmp"):
        yield


def openmp_threads() -> int:
    """The number of threads that an OpenMP loop may have here.

    GNU's OpenMP ends the process where the system refuses it a thread, and waits for ever in a forked child for those
    of the parent.
    """
    if _is_forked:
        return 1
    probe = Team(_n_cores(), is_spinning=False)
    n_threads = probe.n_threads
    probe.close()
    return n_threads


class _OpenMPBlocks:
    """The blocks of `openmp_limit` that threads are in; the interpreter ends after those of all but the main thread.

    Python before 3.14 ends a daemon thread where it asks for the GIL. Inside a loop of GNU's OpenMP, where scikit-learn
    asks, this ends the process with "free(): invalid pointer".
    """

    def __init__(self) -> None:
        self._changed, self._n, self._is_over = threading.Condition(), 0, False
        atexit.register(self._wait_for_all)
        after_fork_in_child(self._forget_other_threads)

    def __enter__(self) -> None:
        if _is_main_thread():  # which alone is interrupted, and may be between two lines here
            return
        if self._is_over:
            time.sleep(1.0)  # a daemon thread is ended here
        with self._changed:
            self._n += 1

    def __exit__(self, *_: object) -> None:
        if _is_main_thread():
            return
        with self._changed:
            self._n -= 1
            self._changed.notify_all()

    def _wait_for_all(self) -> None:
        self._is_over = True
        with self._changed:
            self._changed.wait_for(lambda: self._n == 0)

    def _forget_other_threads(self) -> None:
        """In a forked child, which does not have them: none forks within its block."""
        self._changed, self._n = threading.Condition(), 0


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


_openmp_blocks = _OpenMPBlocks()


@cache
def _openmp_libraries() -> Any:
    return ThreadpoolController().select(user_api="openmp")


class _BlasThreads:
    """The limits in force, and threadpoolctl's handle on the BLAS libraries of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[blas_limit] = []
        self._applied: int | None = None
        self._originals: list[int] = []
        after_fork_in_child(self._forget_other_threads)

    def _forget_other_threads(self) -> None:
        """In a forked child, which does not have them: the next limit to end restores BLAS."""
        self.lock = threading.Lock()
        self.limits = [limit for limit in self.limits if limit.thread == threading.get_ident()]

    def apply(self) -> None:
        """Put the smallest limit in force, or what was there before the first."""
        wanted = min([limit.n for limit in self.limits], default=None)
        if wanted == self._applied:
            return
        libraries = _blas_libraries()
        if self._applied is None:
            self._originals = [library.get_num_threads() for library in libraries]
        self._applied = wanted  # first: an interrupt in the loop leaves libraries to be restored
        # From 3.8 on threadpoolctl obeys only the first thread that has set a limit: take control before, and leave it
        # to whoever is next.
        release = _release_of_control()
        release()
        for library, original in zip(libraries, self._originals, strict=True):
            library.set_num_threads(original if wanted is None else wanted)
        release()


@cache
def _release_of_control() -> Callable[[], None]:
    """threadpoolctl's function, which is one for all libraries; before 3.8, and without OpenBLAS, it does nothing."""
    for library in _blas_libraries():
        if hasattr(library, "clear_controlling_thread"):
            return partial(library.clear_controlling_thread, force=True)
    return lambda: None


@cache
def _blas_libraries() -> list[Any]:
    """The BLAS libraries loaded at the first call, SciPy's own among them: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


_blas = _BlasThreads()


@cache
def _n_cores() -> int:
    return int(joblib.cpu_count())


class ThreadTeam:
    """Threads that stay ready for many short calls; the calling thread is one of them.

    Parameters
    ----------
    n_jobs : int or None
        See `effective_n_jobs`. One worker, or a team used outside its ``with`` block, calls everything inline.
    work : float
        Multiply-adds of all calls together: with less than `SMALL_WORK`, the calling thread is alone.

    Attributes
    ----------
    n_threads : int
        The number of threads, the caller's among them; fewer work where the system refuses some.
    native : Team
        The threads that compiled passes share their blocks among; inside a `map`, that thread alone.

    Notes
    -----
    A call of a compiled pass takes a microsecond or two on two threads, one of `map` some 15, and more by the time to
    wake a thread (some 50 microseconds) after a pause of a millisecond. The threads outlive the block, for the next
    team; a forked process starts its own.

    Examples
    --------
    >>> with ThreadTeam(2) as team:
    ...     team.map(abs, [-1, -2, 3])
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None = None, work: float = math.inf) -> None:
        self.n_threads = effective_n_jobs(n_jobs) if work >= SMALL_WORK else 1
        self.native = Team(1)

    def __enter__(self) -> Self:
        if self.n_threads > 1:
            self.native = _team_pool.acquire(self.n_threads)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.n_threads > 1:
            native, self.native = self.native, Team(1)
            _team_pool.release(native, self.n_threads)

    def check(self) -> None:
        """Raise `Stopped` once the compiled team is stopped."""
        if self.native.is_stopped:
            raise Stopped

    def map(self, fn: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
        """Return ``[fn(item) for item in items]``, computed by all threads; each takes the next item when free.

        An error in one item ends the call: items not yet begun are dropped, and the error of the earliest is raised.
        `Stopped` is raised before the next item once the compiled team is stopped.
        """
        items, native = list(items), self.native
        results: list[Any] = [None] * len(items)
        if len(items) < 2 or _is_worker.get():
            for k, item in enumerate(items):
                self.check()
                results[k] = fn(item)
            return results
        contexts = [_worker_context() for _ in range(min(native.n_threads, len(items)))]

        def call(thread: int, k: int) -> None:
            results[k] = contexts[thread].run(fn, items[k])

        with blas_limit(1) if native.n_threads > 1 else nullcontext():
            native.map(call, len(items))
        return results

    def map_with_team(self, fn: Callable[[Item, "ThreadTeam"], T], items: Sequence[Item]) -> list[T]:
        """Return ``[fn(item, team) for item in items]``: items side by side, each with one thread as its `team`.

        If one item is left over when all threads have had equally many, it comes last, with all threads as its `team`.
        """
        n_parallel = len(items) - (len(items) % self.n_threads == 1)
        results = self.map(lambda item: fn(item, ONE_THREAD), items[:n_parallel])
        return [*results, *(fn(item, self) for item in items[n_parallel:])]


def _worker_context() -> Context:
    """A copy of the caller's context, marked as a worker's."""
    context = copy_context()
    context.run(_is_worker.set, True)
    return context


class _TeamPool:
    """Compiled teams not in use, for the next ``with`` block: starting threads takes a hundred times a call's time."""

    def __init__(self) -> None:
        self._teams: dict[int, list[Team]] = {}
        atexit.register(self._close_all)

    def acquire(self, n_threads: int) -> Team:
        """A team of `n_threads` threads that is not in use; of fewer where the system refuses some."""
        try:
            return self._teams[n_threads].pop()
        except (KeyError, IndexError):
            return Team(n_threads, is_spinning=n_threads <= _n_cores())

    def release(self, team: Team, n_threads: int) -> None:
        """Keep a team for the next `acquire`, if it has all of its `n_threads` threads."""
        if team.n_threads < n_threads:
            return team.close()
        team.resume()
        self._teams.setdefault(n_threads, []).append(team)

    def _close_all(self) -> None:
        for teams in list(self._teams.values()):  # daemon threads may still release theirs
            while teams:
                teams.pop().close()


_team_pool = _TeamPool()

ONE_THREAD = ThreadTeam(1)  # calls everything inline
