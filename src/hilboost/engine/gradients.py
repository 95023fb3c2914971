"""Fixed-point packing of gradients into integers: fields, bits and scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, empty_sums, rounded
from hilboost.backends.threads import ThreadTeam
from hilboost.core.exchange import RowShare
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.next_root import NextRoot
from hilboost.engine.ops.cpu.fixed_point import (
    Compact,
    Layout,
    Rounding,
    WeightedGradients,
    absolute_sums,
    factor_of,
    pack_compact,
)
from hilboost.engine.ops.cpu.packing import Packing
from hilboost.engine.ops.cpu.row_order import ROWS_PER_BLOCK
from hilboost.engine.tree_data import TreeData
from hilboost.reductions.sums import count, largest, on_any_worker, sum_of_blocks

_MOST_REPETITIONS = 2**27
_MOST_ROWS_EXACT, _MOST_ROWS_ROUNDED = 2**17, 2**21
_FEWEST_ROWS_COMPACT = 2**18
"""With fewer rows, a gradient may need more than 32 bits, and little memory is saved."""
_COMPACT_HESSIAN_BITS = 16
_FEWEST_STEPS = 256
"""Minimum number of integer steps of a mean gradient, so that rounding does not bias sums."""


@dataclass(frozen=True)
class Packed:
    """Fixed-point gradients and their layout."""

    # (n, width) int64 or None: ``None`` with one channel; see :meth:`Layout.width`
    values: NDArray[np.int64] | None
    totals: NDArray[np.int64]  # (n_channels,) int64
    n_outputs: int
    packing: Packing
    max_weight: float  # maximum weight of a row
    # how the 32 bits of a row are read, if they take the place of 64
    compact: Compact | None = None


class _Fields(NamedTuple):
    """Bits of the fields of an int64, and the rounding error of a sum, in steps."""

    gradient_bits: int
    hessian_bits: int
    count_bits: int
    rounding: float
    at_random: bool


def pack(
    # ``rows`` contains the training rows of the tree; the integers are written to its arrays
    space: TreeBuffers,
    learned: WeightedGradients,
    of_probabilities: bool,  # see :class:`~hilboost.core.gradients.Gradients`
    salt: np.uint64,  # key of random rounding, where gradients are rounded at random; not 0
    data: TreeData,
    next_root: NextRoot | None = None,  # compares integers of 32 bits with those that it expects
) -> Packed:
    """Choose a layout for the gradients and round them; sorted rows have their order."""
    team, share, order = data.team, data.share, data.order
    weight, m, r = learned.weights, len(space.rows), learned.gradients.shape[1]
    blocks = [(b, min(b + ROWS_PER_BLOCK, m)) for b in range(0, max(m, 1), ROWS_PER_BLOCK)]
    found = _totals(learned, blocks, team, share)
    curved = learned.hessians.shape[1] > 0
    layout = layout_of(curved, of_probabilities, found.weight, learned.whole, count(m, share))
    layout = _scaled(layout, found, salt)
    n_channels, width = layout.n_channels(r), layout.width(r, weighted=len(weight) > 0)
    is_plain = n_channels == 1 and not len(learned.rows) and not len(weight)
    of_fit = share is None and data.plan.operations is None
    if is_plain and space.may_be_compact and of_fit and m >= _FEWEST_ROWS_COMPACT:
        compact = _pack_in_32_bits(space, learned, layout, blocks, data, next_root)
        if compact is not None:
            return compact
    values = space.packed(n_channels, width)
    into = space.ordered(1)[:, None] if values is None else values
    numbers = None if share is None or not layout.at_random else share.numbers
    totals = np.zeros(n_channels, dtype=np.int64)
    if m:  # a worker may have none of the rows
        totals = data.operations.quantize(learned, layout, numbers, into)
    if order is not None:
        order.arrange_all(into)
    totals = totals if share is None else share.exchange.sum(totals)
    max_weight = largest(float(weight.max(initial=0.0)), share) or 1.0
    return Packed(values, totals, r, layout.packing, max_weight)


def _pack_in_32_bits(
    space: TreeBuffers,
    learned: WeightedGradients,
    layout: Layout,
    blocks: Sequence[tuple[int, int]],
    data: TreeData,
    next_root: NextRoot | None,
) -> Packed | None:
    """Round the gradients of all rows, or return ``None`` if a row does not fit into 32 bits."""
    packing, order = layout.packing, data.order
    hessian_bits = _COMPACT_HESSIAN_BITS if learned.hessians.shape[1] else 0
    compact = Compact(hessian_bits, packing.hessian_shift, packing.gradient_shift)
    ordered = space.ordered(1, compact=True)
    if next_root is not None:
        next_root.expect(packing, len(ordered))

    def round_block(block: tuple[int, int]) -> NDArray[np.int64]:
        begin, end = block
        result = np.empty(2, dtype=np.int64)
        pack_compact(learned, compact, layout.rounding, begin, end, ordered, result)
        if order is not None:
            order.arrange(ordered[:, None], begin)
        if next_root is not None:
            next_root.compare(compact, ordered, begin, end)
        return result

    results = np.array(data.team.map(round_block, blocks, 2))
    space.may_be_compact = not results[:, 1].any()
    if not space.may_be_compact:
        return None
    return Packed(None, results[:, 0].sum(keepdims=True), 1, packing, 1.0, compact)


class _Totals(NamedTuple):
    """Weighted sums of ``|gradient|`` and hessian, largest over the outputs, and of the weights."""

    gradient: float
    hessian: float
    weight: float


def _totals(
    learned: WeightedGradients,
    blocks: list[tuple[int, int]],
    team: ThreadTeam,
    share: RowShare | None,
) -> _Totals:
    """Add the learned rows, exactly: fields and scales must not depend on the rows' order."""
    r = learned.gradients.shape[1]

    def sums_of(block: tuple[int, int]) -> NDArray[np.int64]:
        begin, end = block
        sums = empty_sums(2 * r + 1)
        absolute_sums(learned, begin, end, np.empty((2, CHUNK)), sums)
        return sums

    found = rounded(sum_of_blocks(team.map(sums_of, blocks, 2), share))
    weighted = on_any_worker(len(learned.weights) > 0, share)
    weight = float(found[-1]) if weighted else float(count(blocks[-1][1], share))
    return _Totals(float(found[:r].max()), float(found[r : 2 * r].max()), weight)


@lru_cache(maxsize=64)
def layout_of(curved: bool, of_probabilities: bool, weight: float, whole: bool, m: int) -> Layout:
    """Choose fields for ``m`` rows of this total weight."""
    of_count, whole = _count_factor(m, weight, whole)
    fields = _fields(curved, of_probabilities, whole, of_count, weight, m)
    packing = Packing(
        hessian_shift=fields.count_bits,
        hessian_mask=(1 << fields.hessian_bits) - 1,
        count_mask=(1 << fields.count_bits) - 1,
        gradient_shift=fields.count_bits + fields.hessian_bits,
        hessian_of_count=0.0 if curved else 1 / of_count,
        count_step=1 / of_count,
        steps=np.array([1.0, float(curved)]),
    )
    bits = fields.gradient_bits, fields.hessian_bits
    rooms = [max(2.0**field - 1 - fields.rounding, 1.0) for field in bits]
    rounding = Rounding(1.0, 1.0, of_count, whole, np.uint64(0), 0)
    return Layout(packing, rounding, rooms[0], rooms[1], fields.at_random)


def _scaled(layout: Layout, totals: _Totals, salt: np.uint64) -> Layout:
    """Choose factors by the sums over all rows."""
    curved = layout.packing.steps[1] > 0
    of_gradient = factor_of(totals.gradient, layout.gradient_room)
    of_hessian = factor_of(totals.hessian, layout.hessian_room) if curved else 1.0
    steps = np.array([1 / of_gradient, 1 / of_hessian if curved else 0.0])
    packing = layout.packing._replace(steps=steps)
    rounding = layout.rounding._replace(of_gradient=of_gradient, of_hessian=of_hessian)
    if layout.at_random:
        rounding = rounding._replace(salt=salt)
    return layout._replace(packing=packing, rounding=rounding)


def _fields(
    curved: bool, of_probabilities: bool, whole: bool, of_count: float, sum_w: float, m: int
) -> _Fields:
    """Divide an int64 into fields so that the sum over all rows does not overflow any of them.

    If hessians are constant, a gradient and a count share an int64.  Otherwise a gradient, a
    hessian and a count share it up to about 20,000 rows, with fine steps.  For more rows, the count
    has its own channel, and from 131,072 rows on the others are rounded at random, since they may
    be much smaller than the mean: sums remain unbiased.

    Probabilities are an exception, from 131,072 to two million rows, unless weights are fractional:
    three fields with coarse steps.  Their gradients are at most one and vary by the root of the
    hessian, so that coarse steps add little to the noise of any node.
    """
    # Integer weights: the layout must not depend on how rows are repeated.
    mass = sum_w if whole else m
    most = sum_w if whole else sum_w * of_count + m
    count_bits = max(1, ceil(log2(most + 1)))
    spare = 63 - count_bits
    if not curved:
        return _Fields(spare, 0, count_bits, 0.5 * mass, False)
    if mass > _MOST_ROWS_EXACT:
        coarse = of_probabilities and whole and mass < _MOST_ROWS_ROUNDED
        gradient_bits = max(spare - spare // 2, count_bits + 1)  # two steps of the mean, or more
        if coarse:
            return _Fields(gradient_bits, spare - gradient_bits, count_bits, 8 * mass**0.5, True)
        return _Fields(32, 31, 0, 8 * mass**0.5, True)
    hessian_bits = spare // 2 - 1
    if 2.0**hessian_bits < _FEWEST_STEPS * mass:
        return _Fields(31, 31, 0, 0.5 * mass, False)
    return _Fields(spare - hessian_bits, hessian_bits, count_bits, 0.5 * mass, False)


def _count_factor(m: int, weight: float, whole: bool) -> tuple[float, bool]:
    """Return the steps per unit of weight, and whether weights are integers (and not too large).

    If they are not, the mean weight is about 1024 steps.
    """
    if whole and weight < _MOST_REPETITIONS:
        return 1.0, True
    return float(2.0 ** np.floor(log2(1024 * m / weight))), False
