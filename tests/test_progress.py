"""Progress: the clock, Ctrl-C, the callback, the estimate and what is shown."""

import io
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from widemargin import _bar, _progress
from widemargin._progress import AnyProgress, Progress, SilentProgress, share_time


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_progress, "perf_counter", clock)
    monkeypatch.setattr(_bar, "perf_counter", clock)
    return clock


def walk(progress: Progress, clock: Clock, seconds: float, step: float = 0.2, decades_per_second: float = 1.0) -> None:
    """Let a violation of 1 fall evenly on the logarithmic scale."""
    start = clock.now
    while clock.now < start + seconds:
        progress.go_on(violation=10 ** (-(clock.now - start) * decades_per_second), tol=1e-6, n_support=1234)
        clock.now += step


class TestGoOn:
    def test_goes_on_by_itself(self) -> None:
        with Progress() as progress:
            assert progress.go_on()
            assert progress.go_on(violation=1.0)
        assert progress.stopped_by is None
        assert progress.state == {"violation": 1.0}

    def test_stops_at_max_time(self, clock: Clock) -> None:
        progress = Progress(max_time=2.0)
        clock.now += 50  # the clock starts with the block, not with the object
        with progress:
            clock.now += 1.9
            assert progress.go_on()
            clock.now += 0.2
            assert not progress.go_on()
            assert not progress.go_on()
        assert progress.stopped_by == "max_time"
        clock.now += 7
        assert progress.elapsed == pytest.approx(2.1)

    def test_ends_earlier_where_something_else_needs_the_time(self, clock: Clock) -> None:
        progress = Progress(max_time=2.0)
        progress.end_within(0.5)
        progress.end_within(1.5)
        clock.now += 0.6
        assert not progress.go_on()

    def test_callback_sees_the_state_and_stops(self, clock: Clock) -> None:
        seen = []

        def callback(state: dict[str, float]) -> bool:
            seen.append(state)
            return state["violation"] < 0.3

        with Progress(callback=callback) as progress:
            answers = []
            for violation in (1.0, 0.5, 0.25, 0.1):
                clock.now += 1
                answers.append(progress.go_on(violation=violation))
        assert answers == [True, True, False, False]
        assert progress.stopped_by == "callback"
        assert seen[1] == {"violation": 0.5, "elapsed": 2.0}
        assert len(seen) == 3

    def test_an_error_in_the_callback_is_the_callers(self) -> None:
        def callback(state: dict[str, float]) -> bool:
            raise KeyError("mine")

        with Progress(callback=callback) as progress, pytest.raises(KeyError):
            progress.go_on()

    def test_one_thread_at_a_time_calls_the_callback(self) -> None:
        inside, most = 0, 0

        def callback(state: dict[str, float]) -> bool:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.001)
            inside -= 1
            return False

        with Progress(callback=callback) as progress:
            threads = [threading.Thread(target=lambda: [progress.go_on() for _ in range(20)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert most == 1

    def test_nothing_waits_for_the_callback(self) -> None:
        """Neither what it asks itself, nor another thread."""
        is_called, may_end = threading.Event(), threading.Event()

        def callback(state: dict[str, float]) -> bool:
            progress.stage("asked inside", total=2)
            progress.advance()
            assert progress.go_on()
            is_called.set()
            return not may_end.wait(timeout=10)

        with Progress(callback=callback) as progress:
            asking = threading.Thread(target=progress.go_on, daemon=True)
            asking.start()
            assert is_called.wait(timeout=10)
            other = threading.Thread(target=progress.advance, daemon=True)
            other.start()
            other.join(timeout=10)
            assert not other.is_alive()
            assert progress.fraction == 1.0
            may_end.set()
            asking.join(timeout=10)
        assert progress.stopped_by is None

    def test_silence_is_cheap(self) -> None:
        with Progress(max_time=60) as progress:
            best = math.inf
            for _ in range(20):
                start = time.perf_counter()
                for _ in range(1000):
                    progress.go_on(violation=0.5, n_support=10, tol=1e-3)
                best = min(best, time.perf_counter() - start)
        assert best / 1000 < 10e-6  # 0.3 microseconds; the bound leaves room for a busy machine

    def test_pickled_it_keeps_the_time_that_is_left(self, clock: Clock) -> None:
        with Progress(max_time=10, verbose=1, callback=lambda state: False) as progress:
            clock.now += 7
            copy = pickle.loads(pickle.dumps(progress))
        clock.now += 2.9
        assert copy.go_on()
        clock.now += 0.2
        assert not copy.go_on()
        assert copy.stopped_by == "max_time"


class TestEstimate:
    def test_from_the_violation(self, clock: Clock) -> None:
        with Progress() as progress:
            assert progress.remaining is None
            walk(progress, clock, 2.0)
            assert progress.remaining == pytest.approx(4.0, abs=0.5)
            assert progress.fraction == pytest.approx(1 / 3, abs=0.07)

    def test_stays_good_over_thousands_of_samples(self, clock: Clock) -> None:
        with Progress() as progress:
            walk(progress, clock, 500.0, decades_per_second=0.01)
            assert progress.remaining == pytest.approx(100.0, rel=0.05)
            assert len(progress._samples) <= 65

    def test_never_exceeds_the_time_limit(self, clock: Clock) -> None:
        with Progress(max_time=3.0) as progress:
            assert progress.remaining is None  # the limit says nothing of the fit
            assert progress.time_left == pytest.approx(3.0)
            walk(progress, clock, 2.0)
            assert progress.remaining == pytest.approx(1.0)

    def test_says_nothing_of_a_violation_that_grows(self, clock: Clock) -> None:
        with Progress() as progress:
            walk(progress, clock, 2.0, decades_per_second=-1.0)
            assert progress.remaining is None
            assert progress.fraction == 0.0

    @pytest.mark.parametrize("violation", [0.0, 1e-9, math.inf, math.nan])
    def test_survives_any_violation(self, violation: float, clock: Clock) -> None:
        with Progress(verbose=1) as progress:
            for _ in range(30):
                clock.now += 0.2
                assert progress.go_on(violation=violation, tol=1e-3)
            assert progress.remaining in (None, 0.0)

    def test_from_the_work_of_a_stage(self, clock: Clock) -> None:
        with Progress() as progress:
            progress.stage("pairs", total=4)
            assert progress.remaining is None
            clock.now += 3.0
            progress.advance()
            assert progress.remaining == pytest.approx(9.0)
            assert progress.fraction == 0.25
            progress.advance(3)
            assert progress.remaining == 0.0
            progress.stage("refine")
            assert progress.remaining is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestBar:
    def test_silent_by_default_and_in_the_first_second(self, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
        for verbose, seconds in ((0, 20.0), (1, 0.9)):
            with Progress(verbose=verbose) as progress:
                walk(progress, clock, seconds)
            assert capsys.readouterr() == ("", "")

    def test_plain_lines_without_a_terminal(self, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
        with Progress(verbose=1, title="solve") as progress:
            walk(progress, clock, 10.5, decades_per_second=0.1)
        out, err = capsys.readouterr()
        lines = err.splitlines()
        assert out == ""
        assert len(lines) == 3  # after 1 and 6 seconds, and at the end
        assert lines[1].startswith("solve: 0:06, about 0:54 left, violation 0.2")
        assert lines[1].endswith("1,234 support vectors")

    @pytest.mark.slow
    def test_rich_bar_on_a_terminal(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "140")
        with Progress(verbose=1, title="level 2") as progress:
            walk(progress, clock, 3.0)
            for number in range(9):
                progress.stage(f"round {number}", total=3)
                progress.advance(3)
                walk(progress, clock, 1.0)
        text = sys.stderr.getvalue()
        assert "level 2" in text
        assert "1,234 support vectors" in text
        assert "round 8" in text

    def test_rich_bar_has_its_estimate_within_80_columns(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "dumb")
        monkeypatch.setenv("COLUMNS", "80")
        bar = _bar.TerminalBar()
        bar.show(_bar.Snapshot(1, "DCSVMClassifierCV", {"violation": 0.01, "n_support": 123456}, 0.6, 75.2, 3700.0))
        bar.close()
        line = next(line for line in sys.stderr.getvalue().splitlines() if "DCSVM" in line)
        assert len(line) <= 80
        assert "about 1:01:40 left" in line

    def test_bar_describes_long_times(self) -> None:
        now = _bar.Snapshot(1, "fit", {"objective": -12.5}, None, 3700.0, None)
        assert _bar.describe(now) == "1:01:40, objective -12.5"


FIT = """
import sys, time
from widemargin._progress import Progress

try:
    with Progress() as progress:
        print("fitting", flush=True)
        while progress.go_on():
            time.sleep(0.01)
        print(progress.stopped_by, flush=True)
        if "stubborn" in sys.argv:
            time.sleep(10)
    if "grid" in sys.argv:
        with Progress() as progress:
            time.sleep(10)
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
import signal
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself a POSIX signal")
class TestSigint:
    """A real one, to a real process."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", FIT, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "fitting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupt\n"
        return process

    def finish(self, process: subprocess.Popen[str]) -> str:
        with process:  # not communicate(), which would miss what readline() has read ahead
            return process.stdout.read() + process.stderr.read()

    def test_the_first_ends_the_fit(self) -> None:
        assert self.finish(self.start()) == "True\n"

    @pytest.mark.parametrize("kind", ["stubborn", "grid"])
    def test_a_second_soon_after_raises(self, kind: str) -> None:
        """In the same fit, or in the next one of a grid search."""
        process = self.start(kind)
        start = time.perf_counter()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert self.finish(process) == "KeyboardInterrupt\nTrue\n"
        assert time.perf_counter() - start < 8


class TestHandler:
    def test_a_second_much_later_is_a_first(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_progress, "_last_sigint", -math.inf)
        with Progress() as progress:
            signal.raise_signal(signal.SIGINT)
            clock.now += 2.1
            signal.raise_signal(signal.SIGINT)
            assert not progress.go_on()
        assert progress.stopped_by == "interrupt"

    def test_a_handler_of_the_program_is_left_alone(self) -> None:
        def mine(number: int, frame: object) -> None: ...

        before = signal.signal(signal.SIGINT, mine)
        try:
            with Progress():
                assert signal.getsignal(signal.SIGINT) is mine
            assert signal.getsignal(signal.SIGINT) is mine
        finally:
            signal.signal(signal.SIGINT, before)

    def test_other_threads_install_nothing(self) -> None:
        def fit() -> None:
            with Progress():
                seen.append(signal.getsignal(signal.SIGINT))

        seen: list[object] = []
        before = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
        assert seen == [before]

    def test_restored_after_an_error(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(ZeroDivisionError), Progress():
            1 / 0  # noqa: B018
        assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_handles_sigint_as_its_own_fits_do() -> None:
    """Forked by another thread than that of the fit, it has none: the default handler."""
    code = """
import os, signal, threading
from widemargin._progress import Progress

def fork():
    child = os.fork()
    if child == 0:
        os._exit(int(signal.getsignal(signal.SIGINT) is signal.default_int_handler))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

codes = []
with Progress(), Progress():
    fork()
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
print(*codes)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "0 1\n"


def test_silent_progress_ends_with_its_whole_and_shows_nothing(clock: Clock) -> None:
    seen: list[dict[str, float]] = []
    with Progress(max_time=5, callback=lambda state: seen.append(state) or False) as progress:  # type: ignore[func-returns-value]
        silent = SilentProgress(SilentProgress(progress))
        assert silent.go_on(violation=0.5)
        assert not seen
        clock.now += 3
        assert silent.elapsed == 3
        assert silent.go_on()
        clock.now += 3
        assert not silent.go_on()
        assert silent.stopped_by == "max_time"
    with Progress(callback=lambda state: True) as progress:
        progress.go_on()
        assert SilentProgress(progress).stopped_by == "callback"


def test_one_inside_another_ends_with_it() -> None:
    with Progress(max_time=60) as outer:
        with Progress(max_time=120) as inner:
            assert inner.deadline <= outer.deadline
            outer._stop("interrupt")
            assert not inner.go_on()
            assert inner.stopped_by == "interrupt"
            assert inner.ended_with_outer
        with Progress() as later:
            assert not later.go_on()
    with Progress() as other:
        assert other.go_on()


def test_one_inside_another_may_end_alone() -> None:
    with Progress() as outer:
        with Progress(max_time=0) as inner:
            assert not inner.go_on()
            assert not inner.ended_with_outer
        assert outer.go_on()


def test_passes_of_an_inner_fit_end_with_the_outer() -> None:
    calls: list[str] = []

    class Team:
        def stop(self) -> None:
            calls.append("stop")

        def stop_after(self, seconds: float) -> None:
            calls.append(f"after {round(seconds)}")

        def resume(self) -> None:
            calls.append("resume")

    with Progress(max_time=50) as outer, Progress() as inner, inner.interrupting(Team()):
        outer._stop("interrupt")
    assert calls == ["after 50", "stop", "resume"]


class TestShareTime:
    """Parts take as many seconds as their number says."""

    def share(
        self, clock: Clock, seconds: list[float], max_time: float | None, work: list[float] | None = None
    ) -> tuple[list[float], list[str]]:
        """The seconds that each part has had in the end, and what was done in which order."""
        log: list[str] = []

        def solve(needed: float, before: float | None, share: AnyProgress) -> float:
            done = before or 0.0
            begin = clock.now
            clock.now = min(begin + needed - done, share.deadline)
            log.append(f"solve {needed:g}")
            return done + clock.now - begin

        def call_each(tasks: list[Callable[..., tuple[float, bool]]]) -> list[tuple[float, bool]]:
            return [task() for task in tasks]

        with Progress(max_time=max_time) as progress:
            solved = share_time(
                lambda part, before, share: solve(seconds[part], before, share),
                range(len(seconds)),
                work or seconds,
                progress,
                lambda done: any(math.isclose(done, needed) for needed in seconds),
                call_each,
            )
        assert progress.stopped_by == ("max_time" if max_time is not None and max_time < sum(seconds) else None)
        return solved, log

    def test_without_a_limit_the_largest_come_first(self, clock: Clock) -> None:
        assert self.share(clock, [10, 30, 20], None) == ([10, 30, 20], ["solve 30", "solve 20", "solve 10"])

    def test_enough_time_cuts_no_part(self, clock: Clock) -> None:
        assert self.share(clock, [10, 300, 20], 500.0) == ([10, 300, 20], ["solve 10", "solve 20", "solve 300"])

    def test_a_part_that_was_cut_goes_on_in_what_is_left_over(self, clock: Clock) -> None:
        """The first takes 20 times as long as its work says."""
        solved, log = self.share(clock, [200, 30, 40], 400.0, [10, 30, 40])
        assert solved == [200, 30, 40]
        assert log.count("solve 200") > 1

    def test_every_part_has_its_share_of_too_little_time(self, clock: Clock) -> None:
        solved, log = self.share(clock, [20, 100, 110, 120], 175.0)
        assert log == ["solve 20", "solve 100", "solve 110", "solve 120"]
        assert solved == [10, 50, 55, 60]

    def test_a_pickled_part_keeps_the_time_that_is_left(self, clock: Clock) -> None:
        with Progress(max_time=10.0) as progress:
            part = pickle.loads(pickle.dumps(progress.part(0.5)))
            clock.now += 4.0
            assert part.go_on()
            clock.now += 2.0
            assert not part.go_on()
            assert progress.go_on()
