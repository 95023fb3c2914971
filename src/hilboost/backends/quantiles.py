"""Weighted quantiles of numbers, and of the rows of every leaf."""

import math

import numpy as np

from hilboost.backends.compiled import allocating, compiled, inner


@compiled
def weighted_quantile(values, weights, level):
    """Quantile of ``values`` under ``weights`` (m,), sorted by value; ties of mass take the middle.

    The inverse of the weighted distribution function, averaged where it is flat: with equal
    weights and level 1/2 this is the usual median, and a weight of 2 is the value twice.  Values
    that are equal may come in any order.  The tolerance is for the rounding of the weights and of
    the level; their sums are exact.
    """
    last, largest = values.shape[0] - 1, 0.0
    for i in range(weights.shape[0]):
        largest = max(largest, weights[i])
    # Multiples of a power of two, which add up exactly; whole weights are kept as they are.
    room = 61.0 - math.ceil(math.log2(values.shape[0]))
    factor = math.ldexp(1.0, int(min(room - math.frexp(largest)[1], 1000.0)))
    total = np.int64(0)
    for i in range(weights.shape[0]):
        total += np.int64(np.rint(weights[i] * factor))
    wanted = level * total
    tolerance = 1e-12 * total
    mass = np.int64(0)
    for i in range(values.shape[0]):
        mass += np.int64(np.rint(weights[i] * factor))
        if mass >= wanted - tolerance:
            if mass <= wanted + tolerance and i < last:
                return 0.5 * (values[i] + values[i + 1]) + 0.0
            return values[i] + 0.0  # of either zero, the positive one
    return values[last] + 0.0


@inner
def _sort_by_merging(columns, begin, end):
    """Sort numbers, and their weights with them, by merging; return which copy is sorted.

    Equal numbers keep their order.  NumPy's sorts take ten times longer to compile.

    columns : (2, 2, n) float64: two copies of numbers and weights, the first given
    """
    source, width = 0, 1
    while width < end - begin:
        numbers, weights = columns[source, 0], columns[source, 1]
        source = 1 - source
        for left in range(begin, end, 2 * width):
            middle, last = min(left + width, end), min(left + 2 * width, end)
            i, j = left, middle
            for k in range(left, last):
                if j >= last or (i < middle and numbers[i] <= numbers[j]):
                    columns[source, 0, k], columns[source, 1, k] = numbers[i], weights[i]
                    i += 1
                else:
                    columns[source, 0, k], columns[source, 1, k] = numbers[j], weights[j]
                    j += 1
        width *= 2
    return source


@allocating
def leaf_quantiles(residuals, weights, leaf_of_row, n_leaves, level):
    """Weighted quantile of the residuals in every leaf, (n_leaves,); rows of leaf -1 are left out.

    residuals : (n,) float64; weights : (n,) float64 or (0,); leaf_of_row : (n,) int32
    Cost O(n log n).
    """
    starts = np.zeros(n_leaves + 1, np.int64)
    for i in range(leaf_of_row.shape[0]):
        if leaf_of_row[i] >= 0:
            starts[leaf_of_row[i] + 1] += 1
    for c in range(n_leaves):
        starts[c + 1] += starts[c]
    fill, columns = starts.copy(), np.empty((2, 2, starts[n_leaves]))
    for i in range(leaf_of_row.shape[0]):
        c = leaf_of_row[i]
        if c >= 0:
            columns[0, 0, fill[c]] = residuals[i]
            columns[0, 1, fill[c]] = weights[i] if weights.shape[0] > 0 else 1.0
            fill[c] += 1
    result = np.zeros(n_leaves)
    for c in range(n_leaves):
        begin, end = starts[c], starts[c + 1]
        if begin < end:
            numbers, mass = columns[_sort_by_merging(columns, begin, end)]
            result[c] = weighted_quantile(numbers[begin:end], mass[begin:end], level)
    return result
