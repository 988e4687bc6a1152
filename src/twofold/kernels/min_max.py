"""The smaller and the larger of two numbers that are not NaN, for searches in long rows.

Python's `min` and `max` become a comparison and a choice, which the compiler makes one number after the other; of these
it makes wide instructions. The extreme of a row does not depend on the order, so that bits are the same.
"""

from llvmlite import ir
from numba.extending import intrinsic


def _one_of_two(name):
    def typed(context, a, b):
        def made(context, builder, signature, arguments):
            kind = arguments[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return a(a, a), made

    return intrinsic(typed)


smaller, larger = _one_of_two("llvm.minnum"), _one_of_two("llvm.maxnum")
