"""Eight scattered bins at a time, on processors that have instructions for this.

Only for :data:`~hilboost.backends.intrinsics.HAS_AVX512`; elsewhere, a loop over the rows stands
for this function.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hilboost.backends.intrinsics import HAS_AVX512, declared, element_pointer
from hilboost.engine.ops.cpu.leaf_words import splat

MOST_ROWS = 2**31
"""Rows of a table from which :func:`flag_eight` gathers: indices are signed."""

_BIT, _BYTE, _INT32, _INT64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))


def _eight(kind):
    return ir.VectorType(kind, 8)


def _same(builder, value):
    """A vector of eight times the same value."""
    return splat(builder, value, 8)


def _at(context, builder, array_type, array, index, kind):
    """Pointer to eight elements of an array, which follow each other."""
    pointer = element_pointer(context, builder, array_type, array, index)
    return builder.bitcast(pointer, _eight(kind).as_pointer())


def _gathered(context, builder, array_type, array, indices):
    """The elements (of 64 bits) of an array at eight indices, <8 x i32>."""
    start = builder.bitcast(
        element_pointer(context, builder, array_type, array, _INT64(0)), _BYTE.as_pointer()
    )
    kinds = [_eight(_INT64), start.type, _eight(_INT32), _eight(_BIT), _INT32]
    gather = declared(builder, "llvm.x86.avx512.mask.gather.dpq.512", _eight(_INT64), kinds)
    every = ir.Constant(_eight(_BIT), [1] * 8)
    nothing = ir.Constant(_eight(_INT64), ir.Undefined)
    return builder.call(gather, [nothing, start, indices, every, _INT32(8)])


@intrinsic
def flag_eight(typing_context, words, rows, index, shift, split_bin, missing, other, flags):
    """Flag the rows among ``rows[index : index + 8]`` that go left; returns how many, uint64.

    Row ``i`` has the bin ``words[i] >> shift``; its lowest eight bits count.  It goes left
    if the bin is at most ``split_bin``, or is ``missing`` and ``other`` is not 0.

    words : (n,) uint64, at most MOST_ROWS; rows : (m,) uint32; index, shift : uint64
    split_bin, missing, other : uint8; flags : (m,) uint8, written
    """
    bins = types.uint8, types.uint8, types.uint8
    signature = types.uint64(words, rows, types.uint64, types.uint64, *bins, flags)

    def codegen(context, builder, sig, args):
        words, rows, index, shift, split_bin, missing, other, flags = args
        if not HAS_AVX512:
            return _INT64(0)  # never called
        here = builder.load(_at(context, builder, sig.args[1], rows, index, _INT32), align=4)
        found = _gathered(context, builder, sig.args[0], words, here)
        bins = builder.trunc(builder.lshr(found, _same(builder, shift)), _eight(_BYTE))
        is_low = builder.icmp_unsigned("<=", bins, _same(builder, split_bin))
        is_missing = builder.icmp_unsigned("==", bins, _same(builder, missing))
        goes_left = _same(builder, builder.icmp_unsigned("!=", other, _BYTE(0)))
        left = builder.or_(is_low, builder.and_(is_missing, goes_left))
        place = _at(context, builder, sig.args[7], flags, index, _BYTE)
        builder.store(builder.zext(left, _eight(_BYTE)), place, align=1)
        return builder.zext(builder.ctpop(builder.bitcast(left, _BYTE)), _INT64)

    return signature, codegen
