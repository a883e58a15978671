"""Load of the machine by other processes during a measurement."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

_STAT = Path("/proc/stat")
QUIET = 0.2  # of a core taken by others: rows above are measured again


def is_quiet(row: dict[str, Any]) -> bool:
    """Whether other processes took at most `QUIET` of a core while the row was measured."""
    return float(row.get("others") or 0.0) <= QUIET


class Others:
    """Cores that other processes kept busy, in the mean since the last call; None where the system reports none."""

    def __init__(self) -> None:
        self._last = self._now()

    def look(self) -> float | None:
        """Return the mean since the last call."""
        before, self._last = self._last, self._now()
        if before is None or self._last is None:
            return None
        wall, busy, own = (new - old for new, old in zip(self._last, before, strict=True))
        return max(0.0, (busy - own) / max(wall, 0.01))

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        if not _STAT.exists():
            return None
        user, nice, system, _, _, irq, soft, steal = map(float, _STAT.read_text().split()[1:9])
        own = os.times()
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, own.user + own.system + own.children_user + own.children_system
