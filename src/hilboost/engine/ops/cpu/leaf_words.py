"""Words whose lowest bit is the leaf of a row: the tests of a tree on 64 rows at a time.

Each word starts with all bits set.  A split at which a row goes right clears the bits of its left
subtree; see :func:`~hilboost.engine.ops.cpu.traverse.mark_left_leaves`.

The words stay in vector registers from the first split to the last one, and a split takes nothing
but a comparison of the rows and a conditional clearing of bits.  A compiled loop over the rows
would read and write the words at every split, so the vector instructions are spelled out here.
"""

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


def _clear(context, builder, signature, values, compare):
    """Clear the bits of the left subtrees of some splits where rows go right.

    ``compare`` compares vectors of numbers and of thresholds.
    """
    kinds = signature.args

    def data_of(kind, value):
        return context.make_array(kind)(context, builder, value).data

    def of_trees(name):
        k = kinds[5].fields.index(name)
        return data_of(kinds[5].types[k], builder.extract_value(values[5], k))

    words, block, nodes, masks = (data_of(kinds[k], values[k]) for k in (0, 1, 2, 6))
    columns, thresholds = of_trees("column"), of_trees("threshold")
    begin, end = values[3:5]
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
        threshold = splat(builder, _item(builder, thresholds, node), lanes)
        rows = _vectors(builder, block, builder.mul(column, _INT64(BLOCK)), block_kind)
        for here, pointer in zip(held, rows, strict=True):
            right = compare(">", builder.load(pointer, align=item_bytes), threshold)
            word = builder.load(here)
            builder.store(builder.select(right, builder.and_(word, mask), word), here)
    for here, pointer in zip(held, stored, strict=True):
        builder.store(builder.load(here), pointer, align=word_bytes)
    return context.get_dummy_value()


@intrinsic
def clear_above(typing_context, words, block, nodes, begin, end, trees, masks):
    """Clear the left subtrees of ``nodes[begin:end]`` where a number is above the threshold.

    words : (64,) uint32 or uint64; block : (d, 64) float64 or float32, rows column by column
    nodes : (m,) int32; trees : FlatTrees, with thresholds like block; masks : (n_nodes,) like words
    """

    def codegen(context, builder, *given):
        return _clear(context, builder, *given, builder.fcmp_ordered)

    return types.void(words, block, nodes, types.int64, types.int64, trees, masks), codegen


@intrinsic
def clear_not_below(typing_context, words, block, nodes, begin, end, trees, masks):
    """The same, and where a number is missing."""

    def codegen(context, builder, *given):
        return _clear(context, builder, *given, builder.fcmp_unordered)

    return types.void(words, block, nodes, types.int64, types.int64, trees, masks), codegen


def _clear_above_in_python(words, block, nodes, begin, end, trees, masks):
    for node in nodes[begin:end]:
        words[block[trees.column[node]] > trees.threshold[node]] &= masks[node]


def _clear_not_below_in_python(words, block, nodes, begin, end, trees, masks):
    for node in nodes[begin:end]:
        words[~(block[trees.column[node]] <= trees.threshold[node])] &= masks[node]


if INTERPRETED:
    clear_above, clear_not_below = _clear_above_in_python, _clear_not_below_in_python
