"""Waiting awake, without the interpreter's lock: a thread that sleeps takes some 100 microseconds to wake up."""

from numba.core import types

from ._policy import kernel, written_by_hand


@written_by_hand(lambda flag: int(flag[0]))
def _look(typing_context, flag):
    """The flag's value, as another thread may have changed it."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.fence("seq_cst")
        return builder.load_atomic(data, "seq_cst", 8)

    return types.int64(flag), generate


def _write(flag, value):
    flag[0] = value


@written_by_hand(_write)
def _raise(typing_context, flag, value):
    """Let other threads see a value, after all that this thread has written before."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        number = context.cast(builder, args[1], signature.args[1], types.int64)
        builder.store_atomic(number, data, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(flag, types.int64), generate


@kernel
def report_and_wait(mine, value, other, last, looks):
    """Write a value into one flag, and wait until the other is no longer what it was last.

    Given   mine, other (1,) int64, shared by two threads; looks, after so many it gives up
    """
    _raise(mine, value)
    for _ in range(looks):
        if _look(other) != last:
            break


@kernel
def wait_for(flag, value, looks):
    """Wait until the flag, (1,) int64, has this value, or for so many looks at it."""
    for _ in range(looks):
        if _look(flag) == value:
            break
