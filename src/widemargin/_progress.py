"""The clock, the interrupt, the callback and the bar of a fit: every outer loop calls `go_on`, and ends if it is False.

So a time limit, Ctrl-C or a callback ends a loop, which then returns its best model: the first SIGINT loses no work. A
whole fit has a `Progress`. A part that runs beside others has a `PartProgress`, an inner solve that is not shown has a
`SilentProgress`; solvers take `AnyProgress`. `_bar` draws the bar.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from functools import partial
from itertools import accumulate
from operator import call
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from ._bar import Bar, Snapshot, open_bar

Callback = Callable[[dict[str, float]], bool]
Part = TypeVar("Part")
T = TypeVar("T")

_UPDATE_SECONDS = 0.1  # between two updates of the bar and the estimate
_KILL_SECONDS = 2.0  # a second SIGINT within this time raises KeyboardInterrupt, and the fit is lost

_last_sigint = -math.inf  # of the process, so that Ctrl-C twice ends a grid search whose next fit has begun meanwhile


class Stoppable(Protocol):
    """A team of threads whose compiled passes can be ended before their next block of rows: `_native.Team`."""

    def stop(self) -> None:
        """Have all passes raise `Stopped`, until `resume`."""

    def stop_after(self, seconds: float) -> None:
        """Have all passes raise `Stopped` once `seconds` have passed, until `resume`."""

    def resume(self) -> None:
        """Undo `stop` and `stop_after`."""


class Progress:
    """The progress of a fit, and whether it should go on.

    A context manager around the whole fit, passed to every outer loop. One inside the ``with`` block of another (a fit
    of a cross-validation) ends with it. A pickled copy, for another process, has only the time that is left.

    Parameters
    ----------
    max_time : float or None
        Seconds, from entering the ``with`` block.
    verbose : int
        0: silent. 1 and more: a bar on stderr, once the fit has taken a second.
    title : str
        The name of the first stage.
    callback : callable or None
        Called with the state of each `go_on` and ``elapsed``, by one thread at a time: while it runs, other threads go
        on without a call, and no method of this object waits for its end. It returns True to stop.

    Attributes
    ----------
    stopped_by : {"max_time", "interrupt", "callback"} or None
        Why `go_on` returns False.
    state : dict
        The keywords of the latest `go_on`.
    current_solution : tuple or None
        For callbacks, what the solver would return if it were stopped now: (beta, intercept) of a dual, (results,
        history) of linear machines, (`BudgetedSGD`, its model) of budgeted SGD.

    Examples
    --------
    >>> with Progress(max_time=60) as progress:
    ...     violation = 1.0
    ...     while violation > 1e-3 and progress.go_on(violation=violation, tol=1e-3):
    ...         violation /= 2
    >>> progress.stopped_by is None
    True
    """

    def __init__(
        self, *, max_time: float | None = None, verbose: int = 0, title: str = "fit", callback: Callback | None = None
    ) -> None:
        self.stopped_by: str | None = None
        self.state: dict[str, float] = {}
        self.current_solution: tuple[Any, Any] | None = None
        self._max_time = math.inf if max_time is None else max_time
        self._verbose = verbose
        self._callback = callback
        self._teams: list[Stoppable] = []  # whose passes are to be interrupted
        self._inner: list[Progress] = []  # the fits inside this one, which end with it
        self._outer: Progress | None = None
        self._busy = threading.Lock()  # of the stage, its counts and the bar
        self._is_called = threading.Lock()  # held while the callback runs; no thread ever waits for it
        self._handler_set = False  # of SIGINT
        self._bar: Bar | None = None
        self._end: float | None = None  # when the ``with`` block was left
        self._start = self._next_update = perf_counter()
        self._stage = 0
        self._begin_stage(title, None)

    def __reduce__(self) -> tuple[object, ...]:
        return _resume, (self._max_time - self.elapsed, self.stopped_by)

    def __enter__(self) -> Self:
        self._start = self._stage_start = self._next_update = perf_counter()
        self._end = None
        self._outer = _current.get()
        self._token: Token[Progress | None] = _current.set(self)
        if self._outer is not None:
            self._outer._inner.append(self)
            self._max_time = min(self._max_time, self._outer.deadline - self._start)
            self.stopped_by = self._outer.stopped_by
        if threading.current_thread() is threading.main_thread():
            # Left alone where the program, or a fit around this one, has a handler of its own.
            self._handler_set = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._handler_set:
            signal.signal(signal.SIGINT, self._on_sigint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handler_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._handler_set = False
        _current.reset(self._token)
        if self._outer is not None:
            self._outer._inner.remove(self)
        self._end = perf_counter()
        if self._bar is not None:
            # The lock is free by now, unless a KeyboardInterrupt fell between taking it and the block that releases it.
            self._busy.acquire(timeout=1.0)
            self._bar.show(self._snapshot())
            self._bar.close()
            self._bar = None
            self._busy.release()

    @property
    def is_observed(self) -> bool:
        """Whether there is a callback, to be called every round."""
        return self._callback is not None

    @property
    def ended_with_outer(self) -> bool:
        """Whether the ``with`` block around this one was stopped: the warning is that block's."""
        return self._outer is not None and self._outer.stopped_by is not None

    @property
    def elapsed(self) -> float:
        """Seconds since the ``with`` block was entered; after it, the seconds it took."""
        return (perf_counter() if self._end is None else self._end) - self._start

    @property
    def remaining(self) -> float | None:
        """Estimated seconds to the end of this stage, or None if nothing can be said yet.

        From the work of `advance` where the stage has a total; else from the violation, whose logarithm is continued
        along a straight line to that of the tolerance. Never more than `max_time` leaves, which is no estimate itself.
        """
        estimate = self._remaining_by_work()
        if estimate is None and self.state.get("tol"):
            estimate = _time_to_reach(math.log(self.state["tol"]), self._samples, perf_counter())
        return None if estimate is None else min(estimate, self.time_left)

    @property
    def time_left(self) -> float:
        """Seconds that `max_time` leaves; infinite without one."""
        return max(0.0, self._max_time - self.elapsed)

    def end_within(self, seconds: float) -> None:
        """End at most so many seconds after the start."""
        self._max_time = min(self._max_time, seconds)

    @property
    def fraction(self) -> float | None:
        """How much of this stage is done, in [0, 1]: by work, else by log violation; None if that is unknown."""
        if self._total:
            return min(1.0, self._done / self._total)
        if not self.state.get("tol") or not self._samples:
            return None
        first, lowest = self._samples[0][1], min(value for _, value in self._samples)
        goal = math.log(self.state["tol"])
        return min(1.0, (first - lowest) / (first - goal)) if first > goal else 1.0

    def go_on(self, **state: float) -> bool:
        """Record the state, and return False once the fit should end. Any thread may call it.

        Parameters
        ----------
        **state : float
            Whatever is known: ``violation`` and ``tol`` give the estimate of what remains, ``n_support`` and
            ``objective`` are shown, everything goes to the callback.
        """
        if self.stopped_by is not None:
            return False
        self.state = state or self.state
        now = self._check_time()
        if self._callback is not None:
            self._call(self._callback, now)
        if now >= self._next_update:
            self._update(now)
        return self.stopped_by is None

    @property
    def deadline(self) -> float:
        """When the time is over, on the clock `time.perf_counter`."""
        return self._start + self._max_time

    def interrupting(self, team: Stoppable) -> AbstractContextManager[None]:
        """Have compiled passes inside a ``with`` block raise `Stopped` before a block of rows, once the fit should end.

        What they have computed is lost then: for passes that leave nothing half-changed.
        """
        return _Interrupting(self, team)

    def part(self, share: float) -> PartProgress:
        """The progress of a part that begins now, for this share of the time that is left (see `share_time`)."""
        return _begin_part(self, share)

    def stage(self, title: str, total: float | None = None) -> None:
        """Begin a new stage (a level, a round, the pairs of classes): a new line of the bar, a new estimate.

        Parameters
        ----------
        title : str
            Its name, for the reader.
        total : float or None
            The sum of the work that `advance` will be called with, where that is known: in any unit.
        """
        with self._busy:
            self._begin_stage(title, total)

    def advance(self, work: float = 1) -> None:
        """Count `work` more of this stage's total as done. Any thread may call it."""
        with self._busy:
            self._done += work

    def _begin_stage(self, title: str, total: float | None) -> None:
        self._stage += 1
        self._title, self._total, self._done = title, total, 0.0
        self._samples: list[tuple[float, float]] = []  # (time, log violation), thinned out as they grow
        self._sample_every = 0.0
        self._stage_start = perf_counter()

    def _check_time(self) -> float:
        now = perf_counter()
        if now - self._start >= self._max_time:
            self._stop("max_time")
        return now

    def _stop(self, reason: str) -> None:
        # No lock: the signal handler comes here, in the middle of whatever the main thread is doing.
        if self.stopped_by is None:
            self.stopped_by = reason
        for team in tuple(self._teams):
            team.stop()
        for inner in tuple(self._inner):
            inner._stop(reason)

    def _on_sigint(self, number: int, frame: FrameType | None) -> None:
        global _last_sigint
        before, _last_sigint = _last_sigint, perf_counter()
        if _last_sigint - before < _KILL_SECONDS:
            raise KeyboardInterrupt
        self._stop("interrupt")

    def _call(self, callback: Callback, now: float) -> None:
        if not self._is_called.acquire(blocking=False):
            return
        try:
            if callback({**self.state, "elapsed": now - self._start}):
                self._stop("callback")
        finally:
            self._is_called.release()

    def _update(self, now: float) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            if now >= self._next_update:
                self._next_update = now + _UPDATE_SECONDS
                self._sample(now, self.state.get("violation"))
                if self._verbose > 0 and now - self._start >= 1.0:  # a fit that takes less draws nothing
                    self._bar = self._bar or open_bar()
                    self._bar.show(self._snapshot())
        finally:
            self._busy.release()

    def _sample(self, now: float, violation: float | None) -> None:
        samples = self._samples
        if violation is None or not 0 < violation < math.inf:
            return
        if not samples or now - samples[-1][0] >= self._sample_every:
            samples.append((now, math.log(violation)))
        if len(samples) > 64:
            del samples[1::2]
            self._sample_every = 2 * self._sample_every or 2 * _UPDATE_SECONDS

    def _remaining_by_work(self) -> float | None:
        if not self._total or not self._done:
            return None
        return (perf_counter() - self._stage_start) / self._done * max(0, self._total - self._done)

    def _snapshot(self) -> Snapshot:
        remaining, limit = self.remaining, self.time_left
        return Snapshot(self._stage, self._title, self.state, self.fraction, self.elapsed, remaining, limit)


class _Interrupting(AbstractContextManager[None]):
    """The ``with`` block of `Progress.interrupting`."""

    def __init__(self, progress: Progress, team: Stoppable) -> None:
        self._progress, self._team = progress, team

    def __enter__(self) -> None:
        progress, team = self._progress, self._team
        progress._teams.append(team)
        team.stop_after(max(0.0, progress.deadline - perf_counter()))
        if progress.stopped_by is not None:
            team.stop()

    def __exit__(self, *_: object) -> None:
        self._progress._teams.remove(self._team)
        self._team.resume()
        self._progress._check_time()


_current: ContextVar[Progress | None] = ContextVar("widemargin_progress", default=None)


def _restore_sigint() -> None:
    """In a forked child: drop the handler of a fit whose thread it does not have."""
    owner = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    fit = _current.get()
    while fit is not None and fit is not owner:
        fit = fit._outer
    if isinstance(owner, Progress) and fit is None:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_restore_sigint)


class SilentProgress:
    """The progress of an inner solve that is not shown: no bar, no state and no callback, but it ends with the whole.

    Parameters
    ----------
    whole : AnyProgress
    deadline : float
        On the clock `time.perf_counter`; an attribute too, not later than that of the whole.
    """

    is_observed = False

    def __init__(self, whole: AnyProgress, deadline: float = math.inf) -> None:
        self._whole = whole
        self.deadline: float = min(deadline, whole.deadline)

    def __reduce__(self) -> tuple[object, ...]:
        return _resume, (self.deadline - perf_counter(), self.stopped_by)

    @property
    def stopped_by(self) -> str | None:
        """Why `go_on` returns False."""
        return self._whole.stopped_by or ("max_time" if perf_counter() >= self.deadline else None)

    @property
    def elapsed(self) -> float:
        """Seconds that the whole has taken."""
        return self._whole.elapsed

    @property
    def current_solution(self) -> tuple[Any, Any] | None:
        """None: only a whole fit has one."""

    @current_solution.setter
    def current_solution(self, solution: tuple[Any, Any] | None) -> None:
        """Ignored."""

    def interrupting(self, team: Stoppable) -> AbstractContextManager[None]:
        """As `interrupting` of the whole."""
        return self._whole.interrupting(team)

    def go_on(self, **state: float) -> bool:
        """Whether the whole has not been stopped, and the deadline not reached; the state is ignored."""
        return self.stopped_by is None

    def part(self, share: float) -> PartProgress:
        """As `Progress.part`, of the time that this part has left."""
        return _begin_part(self, share)

    def stage(self, title: str, total: float | None = None) -> None:
        """Ignored: only a whole fit has stages."""

    def advance(self, work: float = 1) -> None:
        """Ignored."""


class PartProgress(SilentProgress):
    """The progress of a part of a fit, from `part`: ends with the whole, or with its share of the time.

    The state of `go_on` is shown, and the callback is called, as those of the whole. A compiled pass that has begun in
    the share ends with the whole alone: a part that loses its kernel matrix has nothing.
    """

    def go_on(self, **state: float) -> bool:
        """Whether the share of the time is not over, and the whole goes on."""
        return perf_counter() < self.deadline and self._whole.go_on(**state)


AnyProgress: TypeAlias = Progress | SilentProgress  # (a PartProgress is a SilentProgress)


def _begin_part(whole: AnyProgress, share: float) -> PartProgress:
    now = perf_counter()
    return PartProgress(whole, now + (whole.deadline - now) * min(1.0, share))


def share_time(
    solve: Callable[..., T],
    parts: Sequence[Part],
    work: Sequence[float],
    progress: AnyProgress,
    is_done: Callable[[T], bool],
    run: Callable[[list[Callable[..., tuple[T, bool]]]], Iterable[tuple[T, bool]]] | None = None,
    n_workers: int = 1,
) -> list[T]:
    """Solve the parts of a fit, each in its share of the time; those that were cut short go on in what is left over.

    A part that begins may take (time left) * n_workers * (its work) / (work of all parts not done), so that what a part
    leaves over goes to the later ones. With a time limit the parts of least work begin, as the others may then have
    what they leave over; without one those of most work do, so that the workers end at about one time.

    Parameters
    ----------
    solve : callable
        Called with a part, its result so far (None at first) and its progress: returns its result.
    parts : sequence
    work : sequence of float
        Of each part, to compare with each other: about proportional to the time that it takes.
    progress : AnyProgress
        Of the whole.
    is_done : callable
        Whether a part with this result needs no more time.
    run : callable
        Calls a list of tasks in order, `n_workers` at a time; None: one after the other. What else it passes to a task
        goes on to `solve`.
    n_workers : int

    Returns
    -------
    list
        The result of each part.
    """
    if run is None and len(parts) == 1:  # it has all the time
        return [solve(parts[0], None, progress)]
    results: dict[int, T] = {}
    order = 1 if math.isfinite(progress.deadline) else -1
    unsolved = sorted(range(len(parts)), key=lambda k: order * work[k])

    def solve_part(k: int, before: T | None, work_left: float, *context: Any) -> tuple[T, bool]:
        """The result of a part, and whether it was cut short by its share of the time."""
        share = progress.part(n_workers * work[k] / work_left)
        result = solve(parts[k], before, share, *context)
        return result, share.stopped_by is not None and not is_done(result)

    while unsolved and (not results or progress.go_on()):
        left = list(accumulate(float(work[k]) for k in reversed(unsolved)))[::-1]
        tasks: list[Callable[..., tuple[T, bool]]] = [  # n_workers - 1 of those before a part may still run
            partial(solve_part, k, results.get(k), left[max(0, i + 1 - n_workers)]) for i, k in enumerate(unsolved)
        ]
        solved = list(map(call, tasks) if run is None else run(tasks))
        results.update((k, result) for k, (result, _) in zip(unsolved, solved, strict=True))
        unsolved = [k for k, (_, is_cut) in zip(unsolved, solved, strict=True) if is_cut]
    return [results[k] for k in range(len(parts))]


def _resume(time_left: float, stopped_by: str | None) -> Progress:
    """Rebuild a pickled `Progress` in another process: its clock starts now; it has neither bar nor callback."""
    progress = Progress(max_time=time_left)
    progress.stopped_by = stopped_by
    return progress


def _time_to_reach(goal: float, samples: list[tuple[float, float]], now: float) -> float | None:
    """Continue the newer half of the samples along their least-squares line: seconds from `now` to `goal`."""
    if samples and samples[-1][1] <= goal:
        return 0.0
    newer = samples[len(samples) // 2 :]
    if len(newer) < 3:
        return None
    time = sum(t for t, _ in newer) / len(newer)
    value = sum(v for _, v in newer) / len(newer)
    slope = sum((t - time) * (v - value) for t, v in newer) / sum((t - time) ** 2 for t, _ in newer)
    return None if slope >= 0 else max(0.0, time + (goal - value) / slope - now)
