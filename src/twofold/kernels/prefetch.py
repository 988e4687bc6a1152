"""Loads memory into the cache before it is needed, which plain Python cannot express.

Rows that are read at random are not in any cache, unless they are fetched during the work before.
"""

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64  # bytes of a cache line


def _prefetch(_, array, at):
    """Tell the processor that array[at] will be written soon; this changes nothing else."""

    def code(context, builder, signature, values):
        kind, ir = signature.args[0], cgutils.ir
        data = context.make_array(kind)(context, builder, values[0])
        place = cgutils.get_item_pointer(context, builder, kind, data, [values[1]], wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        builder.call(hint, [builder.bitcast(place, pointer), number(1), number(3), number(1)])  # write, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), code


prefetch: Any = intrinsic(_prefetch)


@njit(cache=True, nogil=True)
def fetch_row(flat, S, row):
    """Fetch one row of a matrix with S columns, stored as one line of numbers."""
    for a in range(row * S, (row + 1) * S, LINE // flat.itemsize):
        prefetch(flat, a)
