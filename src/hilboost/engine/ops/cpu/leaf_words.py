"""Words whose lowest bit is the leaf of a row: the tests of a tree on 64 rows at a time.

Each word starts with all bits set.  A split at which a row goes right clears the bits of its left
subtree; see :func:`~hilboost.engine.ops.cpu.traverse.mark_left_leaves`.

The words stay in vector registers from the first split to the last one, and a split takes nothing
but a comparison of the rows and a conditional clearing of bits.  A compiled loop over the rows
would read and write the words at every split, so the vector instructions are spelled out here.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilboost.backends.compiled import INTERPRETED

BLOCK = 64
"""Rows that are evaluated together."""

_REGISTER_BYTES = 64
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _item(builder, data, index):
    """One number of an array."""
    return builder.load(builder.gep(data, [index]))


def _vectors(builder, data, first, kind):
    """Pointers to 64 numbers of an array, as vectors of a kind."""
    places = range(0, BLOCK, kind.count)
    pointers = [builder.gep(data, [builder.add(first, _INT64(place))]) for place in places]
    return [builder.bitcast(pointer, kind.as_pointer()) for pointer in pointers]


def splat(builder, value, lanes):
    """A vector with a number in every lane."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, _INT32(0))
    zeros = ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, undefined, zeros)


def _clear(context, builder, signature, values, goes_right):
    """Clear the bits of the left subtrees of some splits where rows go right.

    The arguments begin with ``words``, ``block``, ``nodes``, ``begin``, ``end``, ``columns``,
    ``masks``; ``goes_right(data, node, numbers)`` compares a vector of numbers of the block.
    """
    kinds, data = signature.args, list(values)
    for i, kind in enumerate(kinds):
        if isinstance(kind, types.Array):
            data[i] = context.make_array(kind)(context, builder, values[i]).data
    words, block, nodes, begin, end, columns, masks = data[:7]
    word_bytes, item_bytes = (kind.dtype.bitwidth // 8 for kind in kinds[:2])
    lanes = _REGISTER_BYTES // item_bytes
    word_kind = ir.VectorType(context.get_data_type(kinds[0].dtype), lanes)
    block_kind = ir.VectorType(context.get_data_type(kinds[1].dtype), lanes)
    stored = _vectors(builder, words, _INT64(0), word_kind)
    held = [cgutils.alloca_once(builder, word_kind) for _ in stored]
    for here, pointer in zip(held, stored, strict=True):
        builder.store(builder.load(pointer, align=word_bytes), here)
    with cgutils.for_range_slice(builder, begin, end, _INT64(1)) as (i, _):
        node = builder.zext(_item(builder, nodes, i), _INT64)
        column = builder.zext(_item(builder, columns, node), _INT64)
        mask = splat(builder, _item(builder, masks, node), lanes)
        compare = goes_right(builder, data, node, lanes)
        rows = _vectors(builder, block, builder.mul(column, _INT64(BLOCK)), block_kind)
        for here, pointer in zip(held, rows, strict=True):
            right = compare(builder.load(pointer, align=item_bytes))
            word = builder.load(here)
            builder.store(builder.select(right, builder.and_(word, mask), word), here)
    for here, pointer in zip(held, stored, strict=True):
        builder.store(builder.load(here), pointer, align=word_bytes)
    return context.get_dummy_value()


def _above(builder, data, node, lanes):
    threshold = splat(builder, _item(builder, data[7], node), lanes)
    return lambda numbers: builder.fcmp_ordered(">", numbers, threshold)


def _not_below(builder, data, node, lanes):
    threshold = splat(builder, _item(builder, data[7], node), lanes)
    return lambda numbers: builder.fcmp_unordered(">", numbers, threshold)


def _in_bins(builder, data, node, lanes):
    thresholds, missing_right, last_bin = data[7:]
    low = builder.add(_item(builder, thresholds, node), ir.IntType(8)(1))
    width = builder.sub(builder.trunc(last_bin, ir.IntType(8)), low)
    width = builder.add(width, _item(builder, missing_right, node))
    first, width = splat(builder, low, lanes), splat(builder, width, lanes)
    return lambda bins: builder.icmp_unsigned("<", builder.sub(bins, first), width)


@intrinsic
def clear_above(typing_context, words, block, nodes, begin, end, columns, masks, thresholds):
    """Clear the left subtrees of ``nodes[begin:end]`` where a number is above the threshold.

    words : (64,) uint32 or uint64; block : (d, 64) float64 or float32, rows column by column
    nodes : (m,) int32; columns, masks, thresholds : (n_nodes,) int32, like words, like block
    """
    arguments = (words, block, nodes, types.int64, types.int64, columns, masks, thresholds)
    return types.void(*arguments), lambda *given: _clear(*given, _above)


@intrinsic
def clear_not_below(typing_context, words, block, nodes, begin, end, columns, masks, thresholds):
    """The same, and where a number is missing."""
    arguments = (words, block, nodes, types.int64, types.int64, columns, masks, thresholds)
    return types.void(*arguments), lambda *given: _clear(*given, _not_below)


@intrinsic
def clear_in_bins(
    typing_context,
    words,
    block,
    nodes,
    begin,
    end,
    columns,
    masks,
    thresholds,
    missing_right,
    last_bin,
):
    """The same for bins; the last bin holds missing numbers.

    block : (d, 64) uint8; thresholds : (n_nodes,) uint8; missing_right : (n_nodes,) bool
    """
    arguments = (words, block, nodes, types.int64, types.int64, columns, masks, thresholds)
    signature = types.void(*arguments, missing_right, types.int64)
    return signature, lambda *given: _clear(*given, _in_bins)


def _clear_above_in_python(words, block, nodes, begin, end, columns, masks, thresholds):
    for node in nodes[begin:end]:
        words[block[columns[node]] > thresholds[node]] &= masks[node]


def _clear_not_below_in_python(words, block, nodes, begin, end, columns, masks, thresholds):
    for node in nodes[begin:end]:
        words[~(block[columns[node]] <= thresholds[node])] &= masks[node]


def _clear_in_bins_in_python(
    words, block, nodes, begin, end, columns, masks, thresholds, missing_right, last_bin
):
    for node in nodes[begin:end]:
        bins = block[columns[node]]
        right = np.where(bins == last_bin, missing_right[node], bins > thresholds[node])
        words[right] &= masks[node]


if INTERPRETED:
    clear_above, clear_not_below = _clear_above_in_python, _clear_not_below_in_python
    clear_in_bins = _clear_in_bins_in_python
