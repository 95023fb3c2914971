"""The leaves of all rows, and exact sums over the rows of leaves."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny
from hilboost.backends.exact_sums import limbs_of, top_for
from hilboost.backends.intrinsics import float_bits
from hilboost.backends.loss_gradients import curvature
from hilboost.engine.ops.cuda.blocks import (
    BEGIN,
    CHILD,
    END,
    FIRST_BLOCK,
    LEAF,
    PART,
    SIDE,
    THREADS,
    Kernel,
    add_to,
    add_word,
    clear,
    goes_left,
    item_of,
    product,
    raise_to,
    word_of,
)

LOWEST_TOP = -33

_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


class WalkWork(NamedTuple):
    """A tree, and the leaves of all rows."""

    words: NDArray[np.uint64]  # (n_words, n)
    steps: NDArray[np.int64]  # (n_nodes, N_FIELDS)
    leaf_of_row: NDArray[np.int32]  # (n,)
    missing_bin: int


class LeafWork(NamedTuple):
    """Leaves, and the exact sums of one or two numbers of their rows."""

    rows: NDArray[np.uint32]  # (2, m)
    steps: NDArray[np.int64]  # (n_leaves + 1, N_FIELDS)
    gradients: NDArray[np.float64]  # (n,)
    hessians: NDArray[np.float64]  # (n,), or (0,) for weights or ones
    weights: NDArray[np.float64]  # (n,), or (0,) for ones
    factors: NDArray[np.float64]  # what the numbers are multiplied by for each top
    tops: NDArray[np.uint32]  # (2 n_leaves,): above the lowest one
    sums: NDArray[np.int64]  # (8 n_leaves,): four limbs of both sums
    n_numbers: int
    whole: bool  # see :func:`~hilboost.backends.exact_sums.is_whole`
    logistic: bool
    rows_per_block: int


@inner
def walk_rows(block, thread, shared, work):
    """Find the leaves of some rows."""
    begin, steps = block * (PART * THREADS), work.steps
    end = min(begin + PART * THREADS, work.leaf_of_row.shape[0])
    for row in range(begin + thread, end, THREADS):
        node = int64(0)
        while steps[node, LEAF] < 0:
            left = goes_left(work.words, row, steps, node, work.missing_bin)
            node = steps[node, CHILD] + (int64(0) if left else int64(1))
        work.leaf_of_row[row] = steps[node, LEAF]


@tiny
def _number_of(row, which, work):
    """The gradient of a row, or what it is divided by, and how often it counts."""
    value, times = work.gradients[row], int64(1)
    if which == 1:
        if work.hessians.shape[0] == 0:
            return work.weights[row], times
        value = curvature(work.hessians[row], work.logistic)
    if work.weights.shape[0] > 0:
        if work.whole:
            times = int64(work.weights[row])
        else:
            value = product(value, work.weights[row])
    return value, times


@tiny
def _leaf_rows(block, work):
    item = item_of(block, work.steps)
    part = block - work.steps[item, FIRST_BLOCK]
    begin = work.steps[item, BEGIN] + part * work.rows_per_block
    return item, begin, min(begin + work.rows_per_block, work.steps[item, END])


@inner
def find_tops(block, thread, shared, work):
    """Find the tops of the exact sums of some rows."""
    item, begin, end = _leaf_rows(block, work)
    side = work.steps[item, SIDE]
    for which in range(work.n_numbers):
        top = int64(LOWEST_TOP)
        for i in range(begin + thread, end, THREADS):
            value, _ = _number_of(int64(work.rows[side, i]), which, work)
            top = max(top, int64(top_for(float_bits(value) & _MAGNITUDE)))
        raise_to(shared, which, uint32(top - LOWEST_TOP))


@inner
def raise_tops(block, thread, shared, work):
    """Raise the tops of a leaf to the ones of some of its rows."""
    if thread < work.n_numbers:
        raise_to(work.tops, 2 * item_of(block, work.steps) + thread, shared[thread])


@inner
def sum_limbs(block, thread, shared, work):
    """Add the limbs of the numbers of some rows."""
    item, begin, end = _leaf_rows(block, work)
    side = work.steps[item, SIDE]
    for which in range(work.n_numbers):
        factor = work.factors[int64(work.tops[2 * item + which])]
        a, b, c, d = int64(0), int64(0), int64(0), int64(0)
        for i in range(begin + thread, end, THREADS):
            value, times = _number_of(int64(work.rows[side, i]), which, work)
            first, second, third, fourth = limbs_of(product(value, factor))
            a += times * first
            b += times * second
            c += times * third
            d += times * fourth
        add_word(shared, 4 * which, a)
        add_word(shared, 4 * which + 1, b)
        add_word(shared, 4 * which + 2, c)
        add_word(shared, 4 * which + 3, d)


@inner
def add_limbs(block, thread, shared, work):
    """Add the limbs of a block to the ones of its leaf."""
    if thread < 4 * work.n_numbers:
        place = 8 * item_of(block, work.steps) + thread
        add_to(work.sums, place, word_of(shared, thread))


WALK = Kernel((walk_rows,), 1)

TOPS = Kernel((clear, find_tops, raise_tops), 2)

LIMBS = Kernel((clear, sum_limbs, add_limbs), 16)
