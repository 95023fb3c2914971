"""Sums and additions over the leaves of a tree.

Leaves are numbered ``0 … n_leaves - 1``; ``leaf_of_row`` (n,) int32 holds the leaf of each row.
For squared error with many rows, values are rounded to whole units of the gradients.  Gradients
then change by whole steps of their integers from stage to stage, and packed sums have enough digits
for the Newton steps.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.exact_sums import CHUNK, add_contiguous, clear_sum, gather, rounded_sum
from hilboost.backends.loss_gradients import curvature
from hilboost.engine.ops.cpu.criterion import Criterion, LeafSums, limits_of, value_within
from hilboost.engine.ops.cpu.nodes import ARRAY, BEGIN, END
from hilboost.engine.ops.cpu.packing import Packing, weight_of
from hilboost.engine.ops.cpu.row_order import ROWS_PER_BLOCK, row_at
from hilboost.engine.ops.cpu.sync import share


class LeafRule(NamedTuple):
    """Inputs of the values of leaves besides the exact sums over their rows."""

    criterion: Criterion
    packing: Packing
    totals: NDArray[np.int64]  # (n_nodes, n_channels) int64: packed sums
    # (n_nodes, 2, n_outputs) float64: least and greatest values; (n_nodes, 0, 0) or ``None``
    # without any
    bounds: NDArray[np.float64] | None


class LeafNumbers(NamedTuple):
    """Numbers of rows that are summed in each leaf."""

    values: NDArray[np.float64]  # (n, r) float64
    weights: NDArray[np.float64]  # (n, 1) float64: (0, 1) for ones
    whole: bool  # see :func:`~hilboost.backends.exact_sums.is_whole`
    # whether to sum their :func:`~hilboost.backends.loss_gradients.curvature`, too
    with_curvature: bool


class RowsOfLeaves(NamedTuple):
    """The leaves of a tree, and their rows."""

    nodes: NDArray[np.int64]  # (n_nodes, N_NODE_FIELDS) int64
    leaves: NDArray[np.int64]  # (n_leaves,) int64: their node numbers
    rows: NDArray[np.uint32]  # (2, m) uint32, or wider: ordered by leaf


@inner
def _first_from(rows, begin, end, place):
    """The first of some ascending rows that is not before a place of the table, or their end."""
    while begin < end:
        middle = (begin + end) // 2
        if np.int64(rows[uint64(middle)]) < place:
            begin = middle + 1
        else:
            end = middle
    return begin


@inner
def _in_block(block, nodes, leaf, rows):
    """Where the rows of a leaf in a block of the table begin and end.

    One block after the other, what belongs to its rows stays in the cache for all leaves.
    """
    begin, end = nodes[leaf, BEGIN], nodes[leaf, END]
    begin = _first_from(rows, begin, end, block * ROWS_PER_BLOCK)
    return begin, _first_from(rows, begin, end, (block + 1) * ROWS_PER_BLOCK)


@tiny
def part_of_table(part, n_parts, n):
    """The rows of one of some parts of a table, in whole blocks: the first one and the end."""
    first, last = share((n + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK, part, n_parts)
    return first * ROWS_PER_BLOCK, min(last * ROWS_PER_BLOCK, n)


@compiled
def mark_leaves(thread, n_threads, of_leaves, offsets, leaf_of_row, leaf_at):
    """Write the leaf number of every learned row; each thread those in its part of the table.

    Threads that share leaves, whose rows lie among each other, would wait for the cache lines that
    the others write.

    of_leaves : RowsOfLeaves
        The rows ascend in each leaf.  If the table is sorted, they are positions there, which are
        replaced by the numbers of the rows; these are in the same block.
    offsets : (n,) uint16
        Which row of its block is at each position of the table; (0,) if rows are at their numbers.
    leaf_of_row : (n,) int32
    leaf_at : (n,) uint8 or None
        The same by position.
    """
    nodes, leaves = of_leaves.nodes, of_leaves.leaves
    first, last = part_of_table(thread, n_threads, leaf_of_row.shape[0])
    for block in range(first // ROWS_PER_BLOCK, -(-last // ROWS_PER_BLOCK)):
        for leaf in range(leaves.shape[0]):
            rows = of_leaves.rows[nodes[leaves[leaf], ARRAY]]
            begin, end = _in_block(block, nodes, leaves[leaf], rows)
            if leaf_at is not None:
                for i in range(begin, end):
                    leaf_at[uint64(rows[uint64(i)])] = leaf
            if offsets.shape[0] > 0:
                for i in range(begin, end):
                    rows[uint64(i)] = row_at(rows[uint64(i)], offsets)
            for i in range(begin, end):
                leaf_of_row[rows[uint64(i)]] = leaf


@inner
def _add_rows(thread, n_threads, of_leaves, numbers, scratch, sums):
    """Add the values of the rows of every leaf, times their weights, to its exact sums.

    ``of_leaves``: RowsOfLeaves; in each leaf, one block of the table after the other.
    ``numbers``: LeafNumbers. ``scratch``: (n_threads, 2, CHUNK) float64. ``sums``: (1 or 2,
    n_leaves, r, 5) int64; the second one is that of the curvature.
    """
    nodes, leaves = of_leaves.nodes, of_leaves.leaves
    values, weights, whole = numbers.values, numbers.weights, numbers.whole
    n_blocks = (values.shape[0] + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
    for block in range(n_blocks):
        for leaf in range(thread, leaves.shape[0], n_threads):
            rows = of_leaves.rows[nodes[leaves[leaf], ARRAY]]
            first, end = _in_block(block, nodes, leaves[leaf], rows)
            for begin in range(first, end, CHUNK):
                last = min(begin + CHUNK, end)
                chosen = scratch[thread, 0, : last - begin]
                weight = scratch[thread, 1, :0]
                if weights.shape[0] > 0:
                    weight = scratch[thread, 1, : last - begin]
                    gather(weights, np.int64(0), rows, begin, last, weight)
                for k in range(values.shape[1]):
                    gather(values, k, rows, begin, last, chosen)
                    add_contiguous(chosen, weight, whole, sums[0, leaf, k])
                    if numbers.with_curvature:
                        for i in range(chosen.shape[0]):
                            chosen[i] = curvature(chosen[i], True)
                        add_contiguous(chosen, weight, whole, sums[1, leaf, k])


@compiled
def sum_leaves(thread, n_threads, of_leaves, learned, scratch, sums):
    """Sum the rows of a thread's share of the leaves exactly: gradients, and hessians or weights.

    ``of_leaves``: RowsOfLeaves. ``learned``: WeightedGradients. ``scratch``: (n_threads, 2, CHUNK)
    float64. ``sums``: (2, n_leaves, r, 5) int64, written; of weights, there is one column.
    """
    g, h, w, _, whole, logistic = learned
    n_bottom = h.shape[1] if h.shape[1] > 0 else min(w.shape[0], 1)
    for leaf in range(thread, of_leaves.leaves.shape[0], n_threads):
        for k in range(g.shape[1]):
            clear_sum(sums[0, leaf, k])
        for k in range(n_bottom):
            clear_sum(sums[1, leaf, k])
    column = w.reshape((w.shape[0], 1))
    gradients = LeafNumbers(g, column, whole, logistic)
    _add_rows(thread, n_threads, of_leaves, gradients, scratch, sums)
    if h.shape[1] > 0 and not logistic:
        hessians = LeafNumbers(h, column, whole, False)
        _add_rows(thread, n_threads, of_leaves, hessians, scratch, sums[1:])
    elif h.shape[1] == 0 and w.shape[0] > 0:
        weights = LeafNumbers(column, column[:0], whole, False)
        _add_rows(thread, n_threads, of_leaves, weights, scratch, sums[1:])


@inner
def value_of_sums(leaf, of_leaves, learned, rule, sums):
    """The value of a leaf from its exact sums.

    ``of_leaves``: RowsOfLeaves. ``learned``: WeightedGradients. ``rule``: LeafRule. ``sums``: (2,
    n_leaves, 1, 5) int64.
    """
    node = of_leaves.leaves[leaf]
    bottom = np.float64(of_leaves.nodes[node, END] - of_leaves.nodes[node, BEGIN])
    if learned.hessians.shape[1] > 0 or learned.weights.shape[0] > 0:
        bottom = rounded_sum(sums[1, leaf, 0])
    weight = weight_of(rule.totals[node], rule.packing)
    exact = LeafSums(rounded_sum(sums[0, leaf, 0]), bottom, weight)
    return value_within(exact, limits_of(node, 0, rule.criterion, rule.bounds))


@compiled
def add_leaf_values(values, leaf_of_row, raw, first, begin, end):
    """``raw[i, first + k] += values[leaf_of_row[i], k]`` for the rows ``[begin, end)``.

    values : (n_leaves, r), raw : (n, R) with ``first + r <= R``; float64
    """
    if values.shape[1] == 1:
        column = uint64(first)
        for i in range(begin, end):
            raw[uint64(i), column] += values[leaf_of_row[uint64(i)], 0]
        return
    for i in range(begin, end):
        leaf = leaf_of_row[i]
        for k in range(values.shape[1]):
            raw[i, first + k] += values[leaf, k]


_LEAST_MULTIPLE = 128
"""Half of the leaves add at least so many units, or else all digits."""
_LEAST_STEP = 2**11
"""In units, of half of the leaves, from which on sums of rounded gradients suffice."""


@inner
def _median_reaches(bound, numbers):
    """Whether the median of the magnitudes of some numbers is at least a bound."""
    n, n_above, below, above = numbers.shape[0], 0, 0.0, np.inf
    for i in range(n):
        magnitude = abs(numbers[i])
        if magnitude >= bound:
            n_above += 1
            above = min(above, magnitude)
        else:
            below = max(below, magnitude)
    if 2 * n_above == n:
        return (below + above) / 2 >= bound
    return 2 * n_above > n


@compiled
def unit_of_outputs(packing, total, fewest_rows):
    """The unit to multiples of which outputs may be rounded, or 0 if there are few rows.

    An even number of steps of the gradients: halves are rounded to the nearest even integer, and
    remain halves of the same parity.

    packing : Packing; total : int64, packed sum of the root; fewest_rows : float64, their weight
    """
    counts_rows = packing.count_step == 1.0 and packing.steps[1] == 0.0
    if not counts_rows or (total & packing.count_mask) < fewest_rows:
        return 0.0
    return 2.0 * packing.steps[0]


@compiled
def steps_of_totals(rule, leaves, unit, values):
    """Write the values of leaves from their packed sums; False if these are too coarse.

    The sums add gradients rounded to multiples of ``unit / 2``, or ``unit`` is 0.
    They are too coarse if the values of half of the leaves are not much larger.

    rule : LeafRule, with counts of rows; leaves : (n_leaves,) int64, nodes
    values : (n_leaves, 1) float64, written
    """
    if unit == 0.0:
        return False
    packing = rule.packing
    for leaf in range(leaves.shape[0]):
        node = leaves[leaf]
        total = rule.totals[node, 0]
        gradient = (total >> packing.gradient_shift) * packing.steps[0]
        weight = np.float64(total & packing.count_mask)
        limits = limits_of(node, 0, rule.criterion, rule.bounds)
        values[leaf, 0] = value_within(LeafSums(gradient, weight, weight), limits)
    return _median_reaches(_LEAST_STEP * unit, values[:, 0])


@compiled
def round_values(unit, rate, values, multiples):
    """Round what leaves add at this rate to whole units; False if that is too little.

    values : (n_leaves, 1) float64, replaced; multiples : (n_leaves,) float64, written
    """
    if unit == 0.0:
        return False
    for leaf in range(values.shape[0]):
        multiples[leaf] = np.rint(rate * values[leaf, 0] / unit)
    if not _median_reaches(_LEAST_MULTIPLE, multiples):
        return False
    for leaf in range(values.shape[0]):
        values[leaf, 0] = multiples[leaf] * unit / rate
    return True
