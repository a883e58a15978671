"""What a fit shows of its progress on stderr: a rich bar on a terminal, a line every few seconds elsewhere."""

import math
import sys
from time import perf_counter
from typing import NamedTuple, Protocol


class Snapshot(NamedTuple):
    """What is shown: number and title of the stage, latest state of `go_on`, fraction done, and seconds.

    Seconds gone, to the end of the stage as estimated (None: unknown), and to the time limit (infinite: none).
    """

    stage: int
    title: str
    state: dict[str, float]
    fraction: float | None
    elapsed: float
    remaining: float | None
    limit: float = math.inf


class Bar(Protocol):
    """What shows the progress of a fit."""

    def show(self, now: Snapshot) -> None:
        """Show a snapshot in place of the one before."""

    def close(self) -> None:
        """End the output; the last snapshot stays."""


def open_bar() -> Bar:
    """Return the bar for this stderr. Loads rich, only for a terminal."""
    return TerminalBar() if sys.stderr.isatty() else PlainLines()


class TerminalBar:
    """One line of rich per stage; the last few finished ones stay above."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
        from rich.table import Column

        # No refresh thread: the fit's calls of `go_on` redraw it, and nothing competes with the fit for a core.
        self._rich = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),  # clock and estimate fit beside it on a line of 80
            TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=Console(stderr=True),
            auto_refresh=False,
        )
        self._rich.start()
        self._stage = 0

    def show(self, now: Snapshot) -> None:
        """See `Bar`."""
        if now.stage != self._stage:
            self._begin(now)
        total = None if now.fraction is None else 1.0
        self._rich.update(self._task, total=total, completed=now.fraction or 0.0, note=describe(now))
        self._rich.refresh()

    def _begin(self, now: Snapshot) -> None:
        lines = self._rich.task_ids
        if lines:
            self._rich.update(lines[-1], total=1.0, completed=1.0)
        if len(lines) >= 6:  # stages on the screen at a time
            self._rich.remove_task(lines[0])
        self._task = self._rich.add_task(now.title, total=None, note="")
        self._stage = now.stage

    def close(self) -> None:
        """See `Bar`."""
        self._rich.stop()


class PlainLines:
    """For logs and pipes: a line every few seconds."""

    def __init__(self) -> None:
        self._next = -math.inf
        self._shown = self._latest = ""

    def show(self, now: Snapshot) -> None:
        """See `Bar`."""
        self._latest = f"{now.title}: {describe(now)}"
        if perf_counter() >= self._next:
            self._next = perf_counter() + 5.0
            self._print()

    def close(self) -> None:
        """Print the last state, unless it has just been."""
        if self._latest != self._shown:
            self._print()

    def _print(self) -> None:
        print(self._latest, file=sys.stderr, flush=True)
        self._shown = self._latest


def describe(now: Snapshot) -> str:
    """A snapshot in one line, without its title.

    Examples
    --------
    >>> describe(Snapshot(1, "fit", {"violation": 0.0123, "tol": 1e-3, "n_support": 1234}, 0.6, 75.2, 8))
    '1:15, about 0:08 left, violation 0.0123, 1,234 support vectors'
    >>> describe(Snapshot(1, "fit", {}, None, 2.0, None, limit=58.0))
    '0:02, at most 0:58 left'
    """
    parts = [_clock(now.elapsed)]
    if now.remaining is not None:
        parts.append(f"about {_clock(now.remaining)} left")
    elif now.limit < math.inf:
        parts.append(f"at most {_clock(now.limit)} left")
    parts += [_PHRASES.get(key, f"{key} {{:.6g}}").format(value) for key, value in now.state.items() if key != "tol"]
    return ", ".join(parts)


_PHRASES = {"violation": "violation {:.3g}", "gap": "gap {:.3g}", "n_support": "{:,.0f} support vectors"}


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
