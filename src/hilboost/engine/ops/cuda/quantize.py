"""Gradients to integers."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny
from hilboost.backends.loss_gradients import curvature
from hilboost.engine.ops.cpu.fixed_point import Rounding, row_bits
from hilboost.engine.ops.cuda.blocks import (
    THREADS,
    Kernel,
    add_to,
    add_word,
    clear,
    integer_below,
    nearest,
    product,
    word_of,
)


class QuantizeWork(NamedTuple):
    """Gradients of the learned rows, and where their integers are written."""

    gradients: NDArray[np.float64]  # (n,)
    hessians: NDArray[np.float64]  # (n,), or (0,) where constant
    weights: NDArray[np.float64]  # (n,), or (0,) for ones
    learned: NDArray[np.uint32]  # (m,), or (0,) for all rows
    numbers: NDArray[np.uint32]  # (n,): in the table of all workers, or (0,)
    rows: NDArray[np.uint32]  # (2, m)
    ordered: NDArray[np.int64]  # (2, m), or (2, 0) with two channels
    packed: NDArray[np.int64]  # (n, width), or (0, 1) with one channel
    totals: NDArray[np.int64]  # (2,)
    gradient_shift: int  # of the fields of the packed integers
    hessian_shift: int
    counts: bool  # whether the count is one of these fields
    rounding: Rounding
    logistic: bool
    rows_per_block: int


@tiny
def _in_steps(scaled, weight, bits, rounding):
    """A weighted number in steps, as an integer."""
    if rounding.salt == uint64(0):
        return int64(nearest(product(weight, nearest(scaled) if rounding.whole else scaled)))
    part = product(np.float64(int64(bits & uint64(0xFFFFFF))), 5.9604644775390625e-08)
    return int64(integer_below(product(weight, scaled) + part))


@inner
def _integers(row, work):
    """The packed gradient of a row, and its count."""
    rounding, weight, number = work.rounding, 1.0, int64(row)
    if work.weights.shape[0] > 0:
        weight = work.weights[row]
    if work.numbers.shape[0] > 0:
        number = int64(work.numbers[row])
    bits = row_bits(number, rounding)
    scaled = product(work.gradients[row], rounding.of_gradient)
    value = _in_steps(scaled, weight, bits, rounding) << int64(work.gradient_shift)
    if work.hessians.shape[0] > 0:
        hessian = product(curvature(work.hessians[row], work.logistic), rounding.of_hessian)
        hessian_steps = _in_steps(hessian, weight, bits >> uint64(32), rounding)
        value += hessian_steps << int64(work.hessian_shift)
    count = int64(nearest(product(weight, rounding.of_count)))
    return value + count if work.counts else value, count


@inner
def quantize_rows(block, thread, shared, work):
    """Round and pack the gradients of some rows, and add them up."""
    begin = block * work.rows_per_block
    end = min(begin + work.rows_per_block, work.rows.shape[1])
    total, total_count = int64(0), int64(0)
    for i in range(begin + thread, end, THREADS):
        row = int64(i)
        if work.learned.shape[0] > 0:
            row = int64(work.learned[i])
        value, count = _integers(row, work)
        total += value
        total_count += count
        work.rows[0, i] = row
        if work.packed.shape[0] == 0:
            work.ordered[0, i] = value
        else:
            work.packed[row, 0] = value
            if work.packed.shape[1] > 1:
                work.packed[row, 1] = count
    add_word(shared, 0, total)
    add_word(shared, 1, total_count)


@inner
def add_totals(block, thread, shared, work):
    """Add the sums of a block to the sums of all."""
    if thread < 2:
        add_to(work.totals, thread, word_of(shared, thread))


QUANTIZE = Kernel((clear, quantize_rows, add_totals), 4)
