"""Which rounds begin with epochs of dual coordinate ascent: a two-armed bandit over the work so far.

Work is counted in operations, so that the same data give the same machine. Experiments: decision 0006.
"""

from __future__ import annotations

import math

_TURN_SHARE = 0.4  # next turn of the arm with the higher rate / all work so far
_TRIAL_SHARE = 0.1  # turn of the other arm, if it has had less / all work so far
_TRIAL_GAIN = 0.5  # fall of log(gap) that is assumed possible in a further trial of epochs
_TOTAL_GAIN = 7.0  # fall of log(gap) that is assumed of a fit


class _Arm:
    """Rounds of one kind: with epochs, or without.

    Attributes
    ----------
    rate : float
        Fall of log(gap) per unit of work in the latest turn; given, before the first.
    work : float
        Of all turns.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.work = 0.0


class Alternation:
    """Two-armed bandit over turns of rounds with and without epochs; the first turn has epochs.

    The arm of higher rate, the leader, gets the next turn, 40 % of all work so far; the other a trial of 10 %, if it
    has had less. Rounds without epochs converge late: until they have had `expected` work, their rate counts as 7 /
    `expected` at least. Epochs get a trial only if a fall of log(gap) by 0.5 in the work so far would reach that rate.

    Parameters
    ----------
    first_turn : float
        Work of the first turn.
    expected : float
        Work that rounds alone need, at most, to end a fit.

    Attributes
    ----------
    has_epochs : bool
        Whether the next round begins with epochs.
    """

    def __init__(self, first_turn: float, expected: float) -> None:
        self.has_epochs = True
        self._expected = expected
        self._epochs, self._alone = _Arm(math.inf), _Arm(0.0)
        self._turn_work, self._turn_length, self._gap = 0.0, first_turn, math.inf

    @property
    def work_left(self) -> float:
        """Work that is left of this turn."""
        return self._turn_length - self._turn_work

    def record(self, work: float, gap: float) -> None:
        """Add a round's work and the relative gap after it; at the end of a turn, choose the next."""
        if not math.isfinite(self._gap):  # before the first round
            self._gap = gap
            return
        self._turn_work += work
        if self.work_left > 0.0:
            return
        arm = self._epochs if self.has_epochs else self._alone
        arm.rate = math.log(max(self._gap, 1e-300) / max(gap, 1e-300)) / self._turn_work
        arm.work += self._turn_work
        self._turn_work, self._gap = 0.0, gap
        self._choose()

    def _choose(self) -> None:
        epochs, alone = self._epochs, self._alone
        total = epochs.work + alone.work
        expected_rate = _TOTAL_GAIN / self._expected if alone.work < self._expected else 0.0
        epochs_lead = epochs.rate >= max(alone.rate, expected_rate)
        leader, other = (epochs, alone) if epochs_lead else (alone, epochs)
        # where rounds alone are expected to take long, that expectation is no reason against another trial
        is_promising = epochs_lead or max(epochs.rate, _TRIAL_GAIN / total) >= expected_rate
        is_trial = other.work < _TRIAL_SHARE * total and is_promising
        self.has_epochs = (other if is_trial else leader) is epochs
        self._turn_length = (_TRIAL_SHARE if is_trial else _TURN_SHARE) * total
