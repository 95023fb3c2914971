"""Eight scattered values at a time, on processors that have instructions for this.

Only for :data:`~hilboost.backends.intrinsics.HAS_AVX512`; elsewhere, loops over the rows stand for
these functions.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilboost.backends.intrinsics import HAS_AVX512, declared, element_pointer
from hilboost.engine.ops.cpu.leaf_words import splat

MOST_ROWS = 2**31
"""Rows of a table from which :func:`flag_eight` gathers: indices are signed."""

_BIT, _BYTE, _INT32, _INT64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_DOUBLE = ir.DoubleType()


def _eight(kind):
    return ir.VectorType(kind, 8)


def _same(builder, value):
    """A vector of eight times the same value."""
    return splat(builder, value, 8)


def _at(context, builder, array_type, array, index, kind):
    """Pointer to eight elements of an array, which follow each other."""
    pointer = element_pointer(context, builder, array_type, array, index)
    return builder.bitcast(pointer, _eight(kind).as_pointer())


def _gathered(context, builder, array_type, array, indices, kind):
    """The elements (of 64 bits) of an array at eight indices, <8 x i32>."""
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.bitcast(data, _BYTE.as_pointer())
    name = "llvm.x86.avx512.mask.gather." + ("dpd.512" if kind == _DOUBLE else "dpq.512")
    kinds = [_eight(kind), start.type, _eight(_INT32), _eight(_BIT), _INT32]
    gather = declared(builder, name, _eight(kind), kinds)
    every = ir.Constant(_eight(_BIT), [1] * 8)
    nothing = ir.Constant(_eight(kind), ir.Undefined)
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
        found = _gathered(context, builder, sig.args[0], words, here, _INT64)
        bins = builder.trunc(builder.lshr(found, _same(builder, shift)), _eight(_BYTE))
        is_low = builder.icmp_unsigned("<=", bins, _same(builder, split_bin))
        is_missing = builder.icmp_unsigned("==", bins, _same(builder, missing))
        goes_left = _same(builder, builder.icmp_unsigned("!=", other, _BYTE(0)))
        left = builder.or_(is_low, builder.and_(is_missing, goes_left))
        place = _at(context, builder, sig.args[7], flags, index, _BYTE)
        builder.store(builder.zext(left, _eight(_BYTE)), place, align=1)
        return builder.zext(builder.ctpop(builder.bitcast(left, _BYTE)), _INT64)

    return signature, codegen


BINNED = 32
"""Values that :func:`bin_some` takes at a time: four vectors, none of which waits for another."""


@intrinsic
def bin_some(typing_context, edges, n_steps, values, index, missing, shift, packed):
    """Find the bins of ``values[index : index + BINNED]``, and add them to ``packed`` there.

    edges : (2**k,) float64, as in :func:`~hilboost.engine.ops.cpu.binning.pack_bins`
    n_steps : int64; values : (m,) float64; index, shift : uint64
    missing : int64, the bin of NaN; packed : (m,) uint64
    """
    signature = types.void(
        edges, types.int64, values, types.uint64, types.int64, types.uint64, packed
    )

    def codegen(context, builder, sig, args):
        edges, n_steps, values, index, missing, shift, packed = args
        if not HAS_AVX512:
            return context.get_dummy_value()  # never called
        vectors = [builder.add(index, _INT64(8 * v)) for v in range(BINNED // 8)]
        given = [
            builder.load(_at(context, builder, sig.args[2], values, first, _DOUBLE), align=8)
            for first in vectors
        ]
        kind = _eight(_INT32)
        zeros = ir.Constant(kind, [0] * 8)
        positions = [cgutils.alloca_once_value(builder, zeros) for _ in vectors]
        half = cgutils.alloca_once_value(builder, builder.shl(_INT64(1), n_steps))
        with cgutils.for_range(builder, n_steps):
            step = builder.lshr(builder.load(half), _INT64(1))
            builder.store(step, half)
            moved = _same(builder, builder.trunc(step, _INT32))
            for value, position in zip(given, positions, strict=True):
                before = builder.load(position)
                after = builder.add(before, moved)
                last = builder.sub(after, ir.Constant(kind, [1] * 8))
                bound = _gathered(context, builder, sig.args[0], edges, last, _DOUBLE)
                is_beyond = builder.fcmp_ordered("<", bound, value)
                builder.store(builder.select(is_beyond, after, before), position)
        of_missing = _same(builder, builder.trunc(missing, _INT32))
        for value, position, first in zip(given, positions, vectors, strict=True):
            is_missing = builder.fcmp_unordered("uno", value, value)
            found = builder.select(is_missing, of_missing, builder.load(position))
            shifted = builder.shl(builder.zext(found, _eight(_INT64)), _same(builder, shift))
            place = _at(context, builder, sig.args[6], packed, first, _INT64)
            builder.store(builder.or_(builder.load(place, align=8), shifted), place, align=8)
        return context.get_dummy_value()

    return signature, codegen
