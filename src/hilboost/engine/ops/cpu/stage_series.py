"""Steps between stages within a compiled call: rows, leaf values, gradients.

They are the same as between calls of one stage each::

    draw rows -> trees -> add leaf values -> gradients, losses -> draw rows -> trees -> …
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny
from hilboost.backends.exact_sums import FIELDS, NOT_FINITE, TOP, add_to_groups
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.loss_gradients import FlatGradients, add_squares, logistic, softmax
from hilboost.backends.row_draws import hashes_of_rows

LEARNED, HELD_OUT = range(2)
"""The parts of the rows, whose losses are added up."""


class RowDraws(NamedTuple):
    """How each stage draws rows, if it does not learn from all of them."""

    pool: NDArray[np.uint32]  # (m,) uint32: the rows to draw from; (0,) for all
    hashes: NDArray[np.uint64]  # (2, m) uint64: working memory
    keys: NDArray[np.uint64]  # (n_stages,) uint64: of the stages; (0,) for all rows


class Series(NamedTuple):
    """Consecutive stages of one member of an ensemble.

    One stage from given gradients is a series, too (:data:`ONE_STAGE`): another type of argument
    would compile all of growth once more.
    """

    n_stages: int
    y: NDArray[np.float64]  # (c, n) float64: targets, unless they are classes in ``codes``
    codes: NDArray[np.int64]  # (n,) int64: of the log loss of more than two classes; (0,)
    raw: NDArray[np.float64]  # (r n,) float64: the outputs, column after column; updated
    negative: NDArray[np.float64]  # (r n,) float64: the memory of the gradients of the trees
    hessian: NDArray[np.float64]  # (r n,) float64: the same; (0,) for squared error
    parts: NDArray[np.int64]  # (n,) int64: ``LEARNED`` or ``HELD_OUT``
    draws: RowDraws
    rate: float  # factor of the leaf values
    values: NDArray[np.float64]  # (2, n) float64: working memory
    # (n_threads, n_stages, 2, 5) int64: exact sums of the losses of both parts after each stage, by
    # the thread that added them up; written
    losses: NDArray[np.int64]
    # (1,) int64: number of stages, or fewer if a loss was not finite; written
    n_fitted: NDArray[np.int64]


ONE_STAGE = Series(
    n_stages=1,
    y=np.empty((1, 0)),
    codes=np.empty(0, np.int64),
    raw=np.empty(0),
    negative=np.empty(0),
    hessian=np.empty(0),
    parts=np.empty(0, np.int64),
    draws=RowDraws(np.empty(0, np.uint32), np.empty((2, 0), np.uint64), np.empty(0, np.uint64)),
    rate=0.0,
    values=np.empty((2, 0)),
    losses=np.empty((0, 1, 2, FIELDS), np.int64),
    n_fitted=np.ones(1, np.int64),
)
"""A stage whose gradients are given, and whose outputs are added elsewhere."""


@tiny
def evaluates(series):
    """Whether gradients are computed between stages: they are not given."""
    return series.raw.shape[0] > 0


@inner
def _smallest(numbers, k):
    """The k-th smallest of different numbers, from 0 on; cost O(n).

    numbers : (n,) uint64, reordered
    """
    first, last = 0, numbers.shape[0] - 1
    while first < last:
        pivot = numbers[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return numbers[k]


@inner
def draw_rows(number, draws, rows):
    """Draw the rows of a stage, as :func:`hilboost.backends.row_draws.draw_rows`.

    rows : (size,) uint32, written
    """
    keep_apart()
    if draws.keys.shape[0] > 0:
        pool, hashes, copies = draws.pool, draws.hashes[0], draws.hashes[1]
        hashes_of_rows(draws.keys[number], pool, hashes)
        for i in range(hashes.shape[0]):
            copies[i] = hashes[i]
        largest, n_drawn = _smallest(copies, rows.shape[0] - 1), 0
        for i in range(hashes.shape[0]):
            if hashes[i] <= largest:
                rows[n_drawn] = pool[i] if pool.shape[0] > 0 else i
                n_drawn += 1


@inner
def _evaluate_classes(series, begin, end):
    """Compute the gradients and log losses of some rows."""
    n, raw, codes = series.values.shape[1], series.raw, series.codes[begin:end]
    value, totals = series.values[0, begin:end], series.values[1, begin:end]
    gradients = FlatGradients(series.negative[begin:], series.hessian[begin:], n)
    softmax(raw.shape[0] // n, raw[begin:], n, codes, value, totals, gradients)


@inner
def _evaluate_targets(series, begin, end):
    """Compute the gradients and losses of some rows."""
    y, raw, value, negative = series.y, series.raw, series.values[0], series.negative
    if series.hessian.shape[0] > 0:
        gradients, hessians = negative[begin:end], series.hessian[begin:end]
        logistic(y[0, begin:end], raw[begin:end], value[begin:end], gradients, hessians)
        return
    for k in range(y.shape[0]):
        own = slice(k * series.values.shape[1] + begin, k * series.values.shape[1] + end)
        add_squares(y[k, begin:end], raw[own], k == 0, value[begin:end], negative[own])


@inner
def evaluate_rows(begin, end, thread, number, series, weights, whole):
    """Compute gradients of some rows, and add up their losses after a stage, -1 for none.

    weights : (n,) float64, or (0,) for ones; whole : bool, whether they are whole numbers
    """
    if series.codes.shape[0] > 0:
        _evaluate_classes(series, begin, end)
    else:
        _evaluate_targets(series, begin, end)
    if number >= 0:
        _add_up_losses(begin, end, thread, number, series, weights, whole)


@inner
def _add_up_losses(begin, end, thread, number, series, weights, whole):
    keep_apart()
    sums, parts, value = series.losses[thread, number], series.parts, series.values[0]
    add_to_groups(parts[begin:end], value[begin:end], weights[begin:end], whole, sums)
    if sums[LEARNED, TOP] >= NOT_FINITE or sums[HELD_OUT, TOP] >= NOT_FINITE:
        series.n_fitted[0] = number + 1


@inner
def add_outputs(tree, series, values, leaf_of_row, begin, end):
    """Add the leaf values of the tree of an output to ``raw`` at some rows, unless it is empty.

    values : (n_leaves, 1) float64; leaf_of_row : (n,) int32
    """
    keep_apart()
    if evaluates(series):
        n = leaf_of_row.shape[0]
        raw = series.raw[tree * n : (tree + 1) * n]
        for i in range(begin, end):
            raw[i] += series.rate * values[leaf_of_row[i], 0]
