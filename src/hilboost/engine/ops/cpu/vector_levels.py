"""Splits of one column of categories for a tree with vector leaves: which levels go left.

Vectors have no order in which the best set of levels is one of the first few.  Up to
:data:`MOST_TRIED` levels of a node, every subset is tried.  Beyond, the levels are sorted along the
direction in which their means differ most, and the best cut of this order is taken: with one
output it is the order of the means, and no other subset is better (Fisher 1958).

Of the gradients only the Gram matrix of the levels' sums about the node's mean matters,
``C_i = S_i - W_i T / W``: a subset ``A`` has the score ``|T|²/W + |C_A|² (1/W_A + 1/(W - W_A))``.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.random_bits import mix
from hilboost.backends.sums_in_eights import dot, squares
from hilboost.engine.ops.cpu.category_splits import SET_WORDS, sort_by_step
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.vector_cuts import add_rows, put, sort_by_bin

MOST_TRIED = 10
"""Up to so many levels in a node, missing values among them, all of their subsets are tried."""

_ROUNDS = 100
_SETTLED = 1e-9


class LevelScratch(NamedTuple):
    """Memory of one thread, for ``l`` levels of a column with missing values as one of them."""

    bins: NDArray[np.int64]  # (l,) int64
    order: NDArray[np.int64]  # (l,) int64
    weights: NDArray[np.float64]  # (l,) float64
    sums: NDArray[np.float64]  # (l, k) float64
    gram: NDArray[np.float64]  # (l, l) float64
    steps: NDArray[np.float64]  # (2, l) float64
    # (2, 2 ** (MOST_TRIED - 1)) float64: weight and squared length of the sum of every subset
    subsets: NDArray[np.float64]


def empty_levels(n_threads: int, n_levels: int, k: int) -> LevelScratch:
    """Memory of all threads, each array with one more axis in front; ``n_levels`` 0 for none."""
    n_subsets = 2 ** (MOST_TRIED - 1) if n_levels else 0
    return LevelScratch(
        np.empty((n_threads, n_levels), dtype=np.int64),
        np.empty((n_threads, n_levels), dtype=np.int64),
        np.empty((n_threads, n_levels)),
        np.empty((n_threads, n_levels, k)),
        np.empty((n_threads, n_levels, n_levels)),
        np.empty((n_threads, 2, n_levels)),
        np.empty((n_threads, 2, n_subsets)),
    )


@inner
def _sum_levels(column, scratch, levels):
    """Sums of the levels that occur, about the node's mean, and their Gram matrix; how many."""
    sort_by_bin(column, scratch)
    table, here, gradients = column.table, column.here, column.gradients
    starts, order = scratch.starts, scratch.order
    size, n_rows = 0, here.end - here.begin
    for b in range(table.n_bins):
        begin, end = starts[b], starts[b + 1]
        if end == begin:
            continue
        sums = levels.sums[size]
        sums[:] = 0.0
        weight = add_rows(gradients, order, begin, end, n_rows, sums, 0.0)
        if weight <= 0.0:
            continue
        share = weight / here.weight
        for j in range(sums.shape[0]):
            sums[j] -= share * here.totals[j]
        levels.bins[size], levels.weights[size] = b, weight
        for i in range(size + 1):
            (product,) = dot(levels.sums[i], sums)
            levels.gram[i, size] = levels.gram[size, i] = product
        size += 1
    return size


@inner
def _spread(weight, length, here, min_weight):
    """Score of a subset of this weight; ``NO_GAIN`` where a side is too light."""
    other = here.weight - weight
    if weight < min_weight or other < min_weight or other <= 0.0:
        return NO_GAIN
    return length * (1.0 / weight + 1.0 / other)


@inner
def _try_subsets(size, here, min_weight, tie, levels):
    """The best of all subsets without the last level, which stays right: its gain and its bits."""
    weights, lengths, gram = levels.subsets[0], levels.subsets[1], levels.gram
    weights[0] = lengths[0] = 0.0
    best, chosen = NO_GAIN, 0
    for i in range(size - 1):
        for rest in range(1 << i):
            crossed = 0.0
            for j in range(i):
                if (rest >> j) & 1:
                    crossed += gram[i, j]
            subset = rest | (1 << i)
            weights[subset] = weights[rest] + levels.weights[i]
            lengths[subset] = lengths[rest] + gram[i, i] + 2.0 * crossed
            gain = _spread(weights[subset], lengths[subset], here, min_weight)
            if gain > best + tie:
                best, chosen = gain, subset
    return best, chosen


@inner
def _find_steps(size, levels):
    """Where the means of the levels lie along the direction in which they differ most.

    The first principal component of the means, each with its level's weight, by the power method;
    it starts at the level that differs most.
    """
    steps, following, gram, weights = levels.steps[0], levels.steps[1], levels.gram, levels.weights
    first = 0
    for i in range(size):
        if gram[i, i] * weights[first] > gram[first, first] * weights[i]:
            first = i
    for i in range(size):
        steps[i] = gram[i, first] / weights[i]
    for _ in range(_ROUNDS):
        length = 0.0
        for i in range(size):
            length += weights[i] * steps[i] * steps[i]
        if length <= 0.0:
            return
        scale = 1.0 / np.sqrt(length)
        for i in range(size):
            steps[i] *= scale
        total = 0.0
        for i in range(size):
            following[i] = dot(gram[i, :size], steps[:size])[0] / weights[i]
            total += weights[i] * following[i] * following[i]
        scale, moved = np.sqrt(total), 0.0
        for i in range(size):
            moved += weights[i] * (following[i] - scale * steps[i]) ** 2
            steps[i] = following[i]
        if moved <= _SETTLED * _SETTLED * total:
            return


@inner
def _cut_order(size, here, min_weight, tie, levels):
    """The best cut of the sorted levels: its gain, and how many levels go left."""
    order, steps, gram = levels.order, levels.steps[0], levels.gram
    for i in range(size):
        order[i] = i
    sort_by_step(order, size, steps)
    best, n_left = NO_GAIN, 0
    weight, length = 0.0, 0.0
    for place in range(size - 1):
        i = order[place]
        weight += levels.weights[i]
        length += gram[i, i]
        for before in range(place):
            length += 2.0 * gram[i, order[before]]
        if steps[i] == steps[order[place + 1]]:
            continue
        gain = _spread(weight, length, here, min_weight)
        if gain > best + tie:
            best, n_left = gain, place + 1
    return best, n_left


@inner
def scan_subsets(column, min_weight, tie, scratch, levels, left_set):
    """Best split of the levels of one column over the rows of a node.

    ``left_set``: (SET_WORDS,) uint64, written: a bit a level of the node that goes left.  Returns
    the score ``|S_l|²/W_l + |S_r|²/W_r``, ``NO_GAIN`` where no split is allowed.

    Notes
    -----
    Cost O(m k + l² k) for ``l`` levels in the node, and O(2^l l) more, or O(100 l²) beyond
    :data:`MOST_TRIED`.
    """
    keep_apart()
    left_set[:] = uint64(0)
    here = column.here
    size = _sum_levels(column, scratch, levels)
    if size < 2:
        return NO_GAIN
    if size <= MOST_TRIED:
        gain, chosen = _try_subsets(size, here, min_weight, tie, levels)
        for i in range(size - 1):
            if (chosen >> i) & 1:
                put(left_set, levels.bins[i])
    else:
        _find_steps(size, levels)
        gain, n_left = _cut_order(size, here, min_weight, tie, levels)
        for place in range(n_left):
            put(left_set, levels.bins[levels.order[place]])
    middle, _ = squares(here.totals, here.totals)
    return gain + middle / here.weight


@inner
def draw_subset(present, any_missing, missing, seed, left_set):
    """Draw a subset of the levels of a node: not all, not none, all others equally likely.

    ``present``: (SET_WORDS,) uint64: the levels of the node, two or more with missing values.
    ``left_set``: (SET_WORDS,) uint64, written.
    """
    keep_apart()
    state = seed
    while True:
        state = mix(state)
        missing_left = int64(state >> uint64(63)) & any_missing
        some_left, some_right = missing_left, any_missing - missing_left
        for w in range(SET_WORDS):
            state = mix(state)
            left_set[w] = state & present[w]
            some_left |= int64(left_set[w] != uint64(0))
            some_right |= int64(left_set[w] != present[w])
        if some_left and some_right:
            break
    if missing_left:
        put(left_set, missing)
