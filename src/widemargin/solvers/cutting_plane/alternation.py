"""Which rounds begin with epochs of dual coordinate ascent: a two-armed bandit over the work so far.

Work is counted in operations, so that the same data give the same machine. Experiments: decision 0006.
"""

from __future__ import annotations

import math

_TURN_SHARE = 0.4  # of all work so far: the next turn of the alternative with the higher rate of gain
_TRIAL_SHARE = 0.1  # of all work so far: a turn of the other alternative, if it has had less
_TRIAL_GAIN = 0.5  # of a further trial of epochs, in logarithms of the gap, that is assumed possible
_TOTAL_GAIN = 7.0  # of a fit, in logarithms of the gap


class Alternation:
    """Two-armed bandit over turns of rounds with and without epochs; the first turn has epochs.

    An arm's rate is the fall of log(gap) per unit of work in its latest turn. The better arm gets the next turn, 40 %
    of all work so far; the other a trial of 10 %, if it has had less. Rounds without epochs converge late: until they
    have had `expected` work, their rate counts as 7 / `expected` at least. Epochs get a trial only if a fall of 0.5 in
    the work so far would reach that rate.

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
        self._rates = {True: math.inf, False: 0.0}
        self._work = {True: 0.0, False: 0.0}
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
        self._rates[self.has_epochs] = math.log(max(self._gap, 1e-300) / max(gap, 1e-300)) / self._turn_work
        self._work[self.has_epochs] += self._turn_work
        self._turn_work, self._gap = 0.0, gap
        self._choose()

    def _choose(self) -> None:
        total = sum(self._work.values())
        expected_rate = _TOTAL_GAIN / self._expected if self._work[False] < self._expected else 0.0
        epochs_lead = self._rates[True] >= max(self._rates[False], expected_rate)
        # where rounds alone are expected to take long, that expectation is no reason against another trial
        is_promising = epochs_lead or max(self._rates[True], _TRIAL_GAIN / total) >= expected_rate
        is_trial = self._work[not epochs_lead] < _TRIAL_SHARE * total and is_promising
        self.has_epochs = epochs_lead != is_trial  # a trial is of the alternative that does not lead
        self._turn_length = (_TRIAL_SHARE if is_trial else _TURN_SHARE) * total
