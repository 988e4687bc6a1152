"""Asks for memory before it is needed: the one thing that NumPy's language cannot say.

Rows that are looked up at random are not in any cache; fetched while the work before them is done, they are.
"""

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64  # bytes of a cache line


def _fetched(_, array, at):
    """A hint to the processor that array[at] will be written soon; nothing else happens."""

    def code(context, builder, signature, values):
        kind, ir = signature.args[0], cgutils.ir
        there = context.make_array(kind)(context, builder, values[0])
        place = cgutils.get_item_pointer(context, builder, kind, there, [values[1]], wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        builder.call(hint, [builder.bitcast(place, pointer), number(1), number(3), number(1)])  # write, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), code


fetched: Any = intrinsic(_fetched)


@njit(cache=True, nogil=True)
def fetch_row(flat, S, row):
    """One row of a matrix with S columns, given as one line of numbers."""
    for a in range(row * S, (row + 1) * S, LINE // flat.itemsize):
        fetched(flat, a)
