"""Blocks of work that threads take in turn, from compiled code: no thread waits there for the interpreter's lock."""

import threading

from numba.core import types

from ._policy import kernel, written_by_hand

_lock = threading.Lock()


def _count_on(turn):
    with _lock:
        taken = int(turn[0])
        turn[0] = taken + 1
    return taken


@written_by_hand(_count_on)
def _add_one(typing_context, turn):
    """Add 1 to the counter, and return what it was: no other thread is given the same."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, context.get_constant(types.int64, 1), "seq_cst")

    return types.int64(turn), generate


@kernel
def take_turn(turn):
    """The number of the next block: 0, 1, 2, ..., each for one caller alone.

    Given   turn (1,) int64, zero at first, shared by the threads
    """
    return _add_one(turn)
