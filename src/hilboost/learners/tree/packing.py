"""How gradients become integers: which fields, how many bits, which scale."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.fixed_point import absolute_sums, pack_gradients, pack_one, packed_sums
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.learners.tree.workspace import Workspace

_BLOCK_ROWS = 32_768
_MOST_REPETITIONS = 2**27
_LARGEST_EXPONENT = 500.0
_MOST_ROWS_EXACT, _MOST_ROWS_ROUNDED = 2**17, 2**21
_FEWEST_STEPS = 256
"""A mean gradient is at least so many integer steps, so that rounding does not bias sums."""


@dataclass(frozen=True)
class Packed:
    """Fixed-point gradients and how to read them.

    Attributes
    ----------
    values : (n, n_channels) int64
    ordered : (2, m) int64, or (2, 0) with several channels
    totals : (n_channels,) int64
    n_outputs : int
    layout, scales : see :mod:`hilboost.backends.split`
    max_weight : float
        No row weighs more.
    """

    values: NDArray[np.int64]
    ordered: NDArray[np.int64]
    totals: NDArray[np.int64]
    n_outputs: int
    layout: NDArray[np.int64]
    scales: Floats
    max_weight: float


def pack(
    space: Workspace,
    negative: Floats,
    hessian: Floats,
    weight: Floats,
    sampled: bool,
    seed: int,
    team: ThreadTeam,
) -> Packed:
    """Choose a layout for these gradients and round them.

    The fields of an int64 are sized so that not even the sum over all rows overflows.  Where
    hessians are constant, a gradient and a count share it.  Otherwise a gradient, a hessian and a
    count do: up to about 20,000 rows with fine steps, and from 131,072 to two million rows with
    coarse steps and random rounding, which keeps sums right on average.  Between and beyond, the
    count has a channel of its own.
    """
    rows = space.rows[0] if sampled else space.rows[0, :0]
    m, r = space.rows.shape[1], negative.shape[1]
    blocks = range(0, m, _BLOCK_ROWS)
    sums = team.map(
        lambda b: absolute_sums(negative, hessian, weight, rows, b, min(b + _BLOCK_ROWS, m)),
        blocks,
    )
    sum_g = max(sum(s[0] for s in sums), 1e-300)
    sum_h = max(sum(s[1] for s in sums), 1e-300)
    sum_w = sum(s[2] for s in sums)
    max_weight = float(weight.max()) if len(weight) else 1.0
    curved = hessian.shape[1] > 0
    count_factor, whole = _count_factor(weight, sum_w)
    # Whole weights: nothing here may depend on how rows are split into repetitions.
    rounding = 0.5 * (sum_w if whole else m)
    count_bits = _bits(sum_w if whole else sum_w * count_factor + m)
    count_channel, salt = False, np.uint64(0)
    if not curved:
        hessian_bits, gradient_bits = 0, 63 - count_bits
    else:
        spare = 63 - count_bits
        hessian_bits = spare // 2 - 1
        gradient_bits = spare - hessian_bits
        mass = sum_w if whole else m
        if _MOST_ROWS_EXACT < mass <= _MOST_ROWS_ROUNDED:
            salt = np.uint64(seed | 1)
            hessian_bits = spare // 2
            gradient_bits = spare - hessian_bits
            rounding = 8 * mass**0.5
        elif 2.0**hessian_bits < _FEWEST_STEPS * mass:
            count_channel, count_bits, hessian_bits, gradient_bits = True, 0, 31, 31
    factors = np.array(
        [
            _factor(gradient_bits, sum_g, rounding),
            _factor(hessian_bits, sum_h, rounding) if curved else 1.0,
            count_factor,
        ]
    )
    layout = np.array(
        [
            count_bits,
            (1 << hessian_bits) - 1,
            (1 << count_bits) - 1,
            count_bits + hessian_bits,
        ],
        dtype=np.int64,
    )
    scales = np.array(
        [
            1 / factors[0],
            1 / factors[1] if curved else 0.0,
            0.0 if curved else 1 / count_factor,
            1 / count_factor,
        ]
    )
    values = space.packed(r + count_channel)
    ordered = space.ordered(r + count_channel)
    if len(values) == 0 and not sampled and not len(weight):
        team.map(
            lambda b: pack_one(
                negative, hessian, b, min(b + _BLOCK_ROWS, m), layout, factors, salt, ordered[0]
            ),
            blocks,
        )
    else:
        team.map(
            lambda b: pack_gradients(
                negative,
                hessian,
                weight,
                rows,
                b,
                min(b + _BLOCK_ROWS, m),
                layout,
                factors,
                whole,
                salt,
                count_channel,
                values,
                ordered[0],
            ),
            blocks,
        )
    totals = np.empty(r + count_channel, dtype=np.int64)
    packed_sums(values, ordered[0], space.rows[0], totals)
    return Packed(values, ordered, totals, r, layout, scales, max_weight)


def _bits(largest: float) -> int:
    return max(1, ceil(log2(largest + 1)))


def _factor(bits: int, total: float, rounding: float) -> float:
    """The largest power of two by which ``total`` may be multiplied and still fit.

    ``rounding`` bounds what rounding may add to the sum.
    """
    room = 2.0**bits - 1 - rounding
    exponent = np.floor(log2(max(room, 1.0)) - log2(total))
    return 2.0 ** min(exponent, _LARGEST_EXPONENT)


def _count_factor(weight: Floats, total: float) -> tuple[float, bool]:
    """Steps of one unit of weight, and whether weights are whole numbers (and not too large).

    About 1024 steps the mean where they are not.
    """
    if not len(weight) or (total < _MOST_REPETITIONS and np.array_equal(weight, np.rint(weight))):
        return 1.0, True
    return float(2.0 ** np.floor(log2(1024 * len(weight) / total))), False
