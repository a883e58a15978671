"""The processor's instruction that asks the memory for something in advance."""

from llvmlite import ir
from numba.core import types

from ._policy import borrower, written_by_hand

_LINE = 64  # bytes that memory sends at a time


@written_by_hand(lambda array, index: None)
def prefetch(typing_context, array, index):
    """Ask for array[index], which need not exist, without waiting for it."""

    def generate(context, builder, signature, args):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, *[number] * 3])
        )
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(hint, [address, number(0), number(3), number(1)])  # to read, into all caches, no code
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@borrower
def prefetch_range(array, first, end):
    """Ask for array[first:end], a line at a time."""
    for t in range(first, end, _LINE // array.itemsize):
        prefetch(array, t)


@borrower
def prefetch_on(array, asked, end):
    """Go on asking for array[asked:end], a line at a time; return where to go on next time."""
    while asked < end:
        prefetch(array, asked)
        asked += _LINE // array.itemsize
    return asked
