"""Threads at work together in compiled code: they start, take blocks in turn and end without the interpreter's lock.

Whoever asks for that lock while another thread has it goes to sleep, and takes some 50 microseconds to wake up. So a
helper is told to begin when its caller has let the lock go, and the caller asks for it again when the helpers have.
"""

import numpy as np
from numpy.typing import NDArray

from ._atomic import add, load, store
from ._policy import kernel

Turn = NDArray[np.int64]

_LINE = 16  # numbers between two that different threads change: each has cache lines of its own
_NO_MORE = 2**62  # turns
LOOKS = 200_000  # at what another thread will change, before giving up: about a millisecond
_FEW_LOOKS = 5_000  # at a helper that may be asleep


def new_turn(n_helpers: int) -> Turn:
    """A counter of blocks for the caller, with the number of helpers to wait for; `helpers_part` of it is theirs."""
    turn = np.zeros(2 * _LINE, np.int64)
    turn[_LINE] = n_helpers
    return turn


def helpers_part(turn: Turn) -> Turn:
    """The counter alone."""
    return turn[:1]


def close(turn: Turn) -> None:
    """Let nobody take another turn."""
    turn[0] = _NO_MORE


def is_closed(turn: Turn) -> bool:
    """Whether it is."""
    return bool(turn[0] >= _NO_MORE)


def still_busy(turn: Turn) -> Turn:
    """The number of helpers that have not come back."""
    return turn[_LINE : _LINE + 1]


@kernel
def wait_for_helpers(busy, looks):
    """Wait until all helpers have come back, or for so many looks."""
    for _ in range(looks):
        if load(busy) == 0:
            break


@kernel
def take_turn(turn, n):
    """The number of the next of n blocks: 0, 1, 2, ..., each for one thread alone; n when there are none left.

    The caller of helpers is told so when they have come back, or do not for long.

    Given   turn, from `new_turn`, the same memory in all threads
    """
    block = add(turn, 1)
    if block < n:
        return block
    if turn.shape[0] > 1:
        wait_for_helpers(turn[_LINE:], LOOKS)
    return n


@kernel
def take_room(room, places, block, count):
    """Where a block may write so many results: after those of the blocks before it in time.

    Given   room (1,) int64, zero at first, shared by the threads; places (blocks, 2) int64, where it is noted for the
            block
    """
    first = add(room, count)
    places[block, 0], places[block, 1] = first, first + count
    return first


@kernel
def begin(asked, number, turn):
    """Ask a helper, and wait for a moment until somebody takes a turn: of two threads, that is it.

    Given   asked (1,) int64, what `wait_for_work` looks at
    """
    before = load(turn)
    store(asked, number)
    for _ in range(_FEW_LOOKS):
        if load(turn) != before:
            break


@kernel
def wait_for_work(busy, asked, last, looks):
    """A helper has come back; wait until it is asked for something else than last, or for so many looks.

    Given   busy, from `still_busy`; asked (1,) int64
    """
    add(busy, -1)
    for _ in range(looks):
        if load(asked) != last:
            break
