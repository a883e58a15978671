"""Numbers that several threads change: each operation is done as a whole, and after what came before it."""

import threading

from numba.core import types

from ._policy import written_by_hand

_lock = threading.Lock()


def _add_in_python(number, amount):
    with _lock:
        old = int(number[0])
        number[0] = old + amount
    return old


@written_by_hand(_add_in_python)
def add(typing_context, number, amount):
    """Add to number[0]; return what it was."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        value = context.cast(builder, args[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", data, value, "seq_cst")

    return types.int64(number, amount), generate


@written_by_hand(lambda number: int(number[0]))
def load(typing_context, number):
    """number[0], as another thread may have changed it."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.fence("seq_cst")
        return builder.load_atomic(data, "seq_cst", 8)

    return types.int64(number), generate


def _store_in_python(number, value):
    number[0] = value


@written_by_hand(_store_in_python)
def store(typing_context, number, value):
    """Let other threads see number[0] = value, after all that this thread has written before."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        value = context.cast(builder, args[1], signature.args[1], types.int64)
        builder.store_atomic(value, data, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(number, value), generate
