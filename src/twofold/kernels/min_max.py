"""The smaller and the larger of two numbers that are not NaN, for searches in long rows.

The compiler turns Python's `min` and `max` into a comparison and a choice, one number after the other; it turns these
into wide instructions. The extreme of a row does not depend on the order, so the bits are the same.
"""

from llvmlite import ir
from numba.extending import intrinsic


def _make_intrinsic(name):
    def infer(context, a, b):
        def build(context, builder, signature, arguments):
            kind = arguments[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return a(a, a), build

    return intrinsic(infer)


smaller, larger = _make_intrinsic("llvm.minnum"), _make_intrinsic("llvm.maxnum")
