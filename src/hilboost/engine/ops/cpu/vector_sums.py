"""Sums over the rows of one worker for trees with vector leaves, and splits from the total sums.

In the search, the bins of a column take the place of rows: row ``b`` has the sums of bin ``b``.
"""

from numba import int64

from hilboost.backends.compiled import compiled
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.nodes import ARRAY, BEGIN, END
from hilboost.engine.ops.cpu.vector_candidates import best_candidate
from hilboost.engine.ops.cpu.vector_cuts import NodeColumn, NodeRows, VectorGradients, bin_of
from hilboost.engine.ops.cpu.vector_grow import note_split, settle_candidate, tie_of, try_candidate
from hilboost.engine.ops.cpu.vector_state import WEIGHT


@compiled
def mark_bins(part, n_parts, node, growth, present):
    """Mark the bins that have rows of a node, in every column of a part.

    growth : VectorGrowth; present : (d, n_bins) uint8, zero at first
    """
    fields = growth.nodes.fields
    rows = growth.buffers.rows[fields[node, ARRAY]]
    for column in range(part, present.shape[0], n_parts):
        offset = offset_of(growth.table, column)
        for i in range(fields[node, BEGIN], fields[node, END]):
            present[column, bin_of(growth.table, offset, rows[i])] = 1


@compiled
def sum_bins(part, n_parts, node, columns, groups, growth, sums):
    """Sum gradients, weights, squares and numbers of a node's rows by groups of bins.

    Of ``columns``, the number of the first one is ``part``, and every ``n_parts``-th follows.

    columns : (c,) int64; growth : VectorGrowth
    groups : (c, n_bins) int64, -1 for bins that are left out
    sums : (c, n_groups, k + 3) float64, zero at first
    """
    fields, gradients = growth.nodes.fields, growth.gradients
    rows = growth.buffers.rows[fields[node, ARRAY]]
    values, k = gradients.values, gradients.values.shape[1]
    weighted = gradients.weights.shape[0] > 0
    for c in range(part, columns.shape[0], n_parts):
        offset = offset_of(growth.table, columns[c])
        for i in range(fields[node, BEGIN], fields[node, END]):
            row = rows[i]
            group = groups[c, bin_of(growth.table, offset, row)]
            if group >= 0:
                for j in range(k):
                    sums[c, group, j] += values[row, j]
                sums[c, group, k] += gradients.weights[row] if weighted else 1.0
                sums[c, group, k + 1] += gradients.squares[row]
                sums[c, group, k + 2] += 1.0


@compiled
def search_sums(node, first, table, bins, values, weights, growth):
    """Find the best splits, or score the drawn ones, of the candidates from ``first`` on.

    table : BinTable, a column for each candidate and a row for each bin
    bins : (n_bins,) uint32, the rows; values : (c, n_bins, k) float64; weights : (c, n_bins)
    float64
    """
    totals, weight = growth.sums.totals[node], growth.sums.masses[node, WEIGHT]
    here = NodeRows(bins, int64(0), bins.shape[0], totals, weight)
    for i in range(values.shape[0]):
        gradients = VectorGradients(values[i], weights[i], weights[i])
        column = NodeColumn(table, i, here, gradients)
        try_candidate(int64(0), first + i, column, growth)
        settle_candidate(first + i, column, growth)


@compiled
def choose_candidate(node, growth):
    """Note the best of the candidates; a node without any is not to be split."""
    weight = growth.sums.masses[node, WEIGHT]
    best = best_candidate(growth.candidates, tie_of(weight, growth))
    if best < 0:
        growth.nodes.priority[node] = NO_GAIN
    else:
        note_split(node, best, growth)
