"""The operations of growth in plain NumPy, to which the operations of all devices are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import add_numbers, empty_sums
from hilboost.backends.random_bits import bits_of
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN, Packing
from hilboost.engine.ops.cpu.fixed_point import Layout, Rounding, WeightedGradients
from hilboost.engine.ops.cpu.grown_tree import GrownTree
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.leaves import LeafGradients
from hilboost.engine.ops.cpu.nodes import (
    ARRAY,
    BEGIN,
    BIN,
    COLUMN,
    END,
    LEFT_ARRAY,
    MISSING_LEFT,
    SLOT,
)
from hilboost.engine.ops.cpu.split_search import SplitRules

_RANDOM_BITS = np.uint64(0xFFFF), np.uint64(0xFFFFFF)
Sums = NDArray[np.int64]
Pair = tuple[Floats, Floats]  # sums of gradients and of hessians


def quantize(
    learned: WeightedGradients, layout: Layout, numbers: NDArray[np.uint32] | None, into: Sums
) -> Sums:
    """Round gradients to packed integers and return their sums."""
    packing, rounding = layout.packing, layout.rounding
    gradients, hessians, weights, rows, logistic = learned
    n, r = gradients.shape
    chosen = rows.astype(np.int64) if len(rows) else np.arange(n)
    weight = weights[chosen, None] if len(weights) else np.ones((len(chosen), 1))
    places = chosen if numbers is None else numbers[chosen].astype(np.int64)
    bits = _bits_of_outputs(places[:, None] * r + np.arange(r), rounding.salt)
    packed = _steps(gradients[chosen] * rounding.of_gradient, weight, bits, rounding)
    packed <<= packing.gradient_shift
    if hessians.shape[1]:
        scaled = curvature(hessians[chosen], logistic) * rounding.of_hessian
        steps = _steps(scaled, weight, bits >> np.uint64(32), rounding)
        packed += steps << packing.hessian_shift
    counts = np.rint(weight * rounding.of_count).astype(np.int64)
    packed = packed + counts if packing.count_mask else np.hstack([packed, counts])
    into[chosen if packed.shape[1] > 1 else slice(None)] = packed[:, : into.shape[1]]
    return packed.sum(axis=0)


def _bits_of_outputs(places: Sums, salt: np.uint64) -> NDArray[np.uint64]:
    """Random bits of the outputs at some places of the whole table."""
    low, _ = _RANDOM_BITS
    offset = (salt & low) * np.uint64(2**8 + 2**40)
    bits = [bits_of(salt | low, place) for place in places.ravel().tolist()]
    return np.array(bits, dtype=np.uint64).reshape(places.shape) + offset


def _steps(
    scaled: Floats, weight: Floats, bits: NDArray[np.uint64], rounding: Rounding
) -> NDArray[np.int64]:
    """Weighted numbers as integers: the nearest ones or, with a salt, a neighbor at random."""
    if rounding.salt:
        part = (bits & _RANDOM_BITS[1]).astype(np.float64) / 2.0**24
        return np.floor(weight * scaled + part).astype(np.int64)
    return np.rint(weight * (np.rint(scaled) if rounding.whole else scaled)).astype(np.int64)


def curvature(hessians: Floats, logistic: bool) -> Floats:
    """The hessians; the log loss of two classes derives them from its gradients."""
    magnitude = np.abs(hessians)
    return magnitude * np.maximum(1 - magnitude, 0.1) if logistic else hessians


def partition(growth: Growth, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide the rows of each node by its split, the left ones first, into the other array."""
    found = []
    for node in nodes:
        begin, end, array = growth.nodes.fields[node, [BEGIN, END, ARRAY]]
        goes_left = _goes_left(growth, int(node), growth.buffers.rows[array, begin:end])
        order = np.argsort(~goes_left, kind="stable")
        for moved in (growth.buffers.rows, growth.buffers.ordered):
            if moved.size:
                moved[1 - array, begin:end] = moved[array, begin:end][order]
        growth.nodes.fields[node, LEFT_ARRAY] = 1 - array
        found.append(goes_left.sum())
    return np.array(found, dtype=np.int64)


def _goes_left(growth: Growth, node: int, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the split of a node sends each of some rows to the left."""
    column, cut, missing_left = growth.nodes.fields[node, [COLUMN, BIN, MISSING_LEFT]]
    bins = _bins(growth, column)[rows]
    goes_left = bins <= cut
    if _is_category(growth.rules, column) and growth.categories is not None:
        goes_left = _members(growth.categories.left_sets[node])[bins]
    return np.where(bins == growth.table.n_bins - 1, missing_left != 0, goes_left)


def histogram(growth: Growth, nodes: NDArray[np.int64]) -> None:
    """Sum the rows of each node into its slot."""
    d, n_channels = len(growth.table.n_values), growth.sums.totals.shape[1]
    for node in nodes:
        begin, end, array, slot = growth.nodes.fields[node, [BEGIN, END, ARRAY, SLOT]]
        rows = growth.buffers.rows[array, begin:end]
        if growth.packed is None:
            values = growth.buffers.ordered[array, begin:end, None].astype(np.int64)
        else:  # a last channel that is not stored counts one for each row
            values = np.ones((len(rows), n_channels), dtype=np.int64)
            values[:, : growth.packed.shape[1]] = growth.packed[rows]
        sums = np.zeros((d, _stride(growth), n_channels), dtype=np.int64)
        for column in range(d):
            np.add.at(sums[column], _bins(growth, column)[rows], values)
        growth.histograms.slots[slot] = sums.ravel()


def search(growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
    """Note the best split of each node on its columns; the first one wins a tie."""
    d, rules = len(growth.table.n_values), growth.rules
    for node, drawn in zip(nodes, columns, strict=True):
        sums = growth.histograms.slots[growth.nodes.fields[node, SLOT]]
        sums = sums.reshape(d, _stride(growth), -1)[:, : rules.n_bins]
        totals, best = growth.sums.totals[node], _NONE
        bounds = None
        if growth.constraints is not None and len(growth.constraints.bounds[node]):
            bounds = growth.constraints.bounds[node]
        for column in map(int, np.flatnonzero((drawn != 0) & (rules.n_values > 0))):
            by_bin = np.vstack([sums[column, : rules.n_values[column]], sums[column, -1:]])
            if _is_category(rules, column):
                found = _best_levels(by_bin, totals, rules, bounds)
            else:
                direction = int(rules.monotonic[column]) if len(rules.monotonic) else 0
                found = _best_cut(by_bin, totals, rules, direction, bounds)
            if found.gain > best.gain:
                best = found._replace(column=column)
        _note(growth, int(node), best, totals)


def leaves(growth: Growth, leaves: NDArray[np.int64], learned: LeafGradients) -> Sums:
    """Sum the rows of each leaf exactly: gradients, and hessians or weights."""
    gradients, hessians, weights, _, whole, _, logistic = learned
    numbers = np.hstack([gradients, curvature(hessians, logistic)])
    is_curved, none = hessians.shape[1] > 0, np.empty(0)
    sums = empty_sums(len(leaves), numbers.shape[1] + (not is_curved))
    for leaf, node in enumerate(leaves):
        begin, end, array = growth.nodes.fields[node, [BEGIN, END, ARRAY]]
        rows = growth.buffers.rows[array, begin:end]
        weight = weights[rows, 0] if len(weights) else none
        for k, column in enumerate(numbers[rows].T):
            add_numbers(column.copy(), weight, whole, sums[leaf, k])
        if not is_curved:
            ones = weight if len(weights) else np.ones(len(rows))
            add_numbers(ones, none, whole, sums[leaf, -1])
    return sums


def walk(growth: Growth, tree: GrownTree, leaf_of_row: NDArray[np.int32]) -> None:
    """Find the leaves of the rows that are marked with -1, level by level."""
    child, leaf_number = tree.child, tree.leaf_number
    rows = np.flatnonzero(leaf_of_row < 0)
    at = np.zeros(len(rows), dtype=np.int64)
    for node in range(len(child)):  # parents before their children
        here = at == node
        if leaf_number[node] >= 0:
            leaf_of_row[rows[here]] = leaf_number[node]
        else:
            at[here] = np.where(_goes_left(growth, node, rows[here]), child[node], child[node] + 1)


class _Split(NamedTuple):
    gain: float
    left: Sums  # (n_channels,)
    cut: int = 0
    missing_left: int | None = None  # ``None`` if no row lacks a value
    levels: NDArray[np.intp] | None = None  # the bins that go left, and all that hold rows
    present: NDArray[np.intp] | None = None
    column: int = -1


_NONE = _Split(NO_GAIN, np.empty(0, dtype=np.int64))


def _note(growth: Growth, node: int, split: _Split, totals: Sums) -> None:
    """Write a split, if it is good enough; what was not seen goes to the heavier side."""
    growth.nodes.gains[node] = NO_GAIN
    if not split.gain > 0 or split.gain < growth.rules.limits.min_gain:
        return
    heavier = 2 * _counts(split.left[None], growth.rules)[0] >= _counts(totals[None], growth.rules)
    missing_left = int(heavier[0]) if split.missing_left is None else split.missing_left
    if split.levels is not None and growth.categories is not None:
        goes_left = np.full(64 * SET_WORDS, heavier[0])
        goes_left[split.present] = False
        goes_left[split.levels] = True
        words = np.packbits(goes_left, bitorder="little").view(np.uint64)
        growth.categories.left_sets[node] = words
    growth.nodes.gains[node] = split.gain
    growth.sums.left_totals[node] = split.left
    fields = [COLUMN, BIN, MISSING_LEFT]
    growth.nodes.fields[node, fields] = split.column, split.cut, missing_left


def _best_cut(
    by_bin: Sums, totals: Sums, rules: SplitRules, direction: int, bounds: Floats | None
) -> _Split:
    """The best cut of a column, whose last bin is that of missing values."""
    n_values, best = len(by_bin) - 1, _NONE
    occupied: NDArray[np.bool_] = np.any(by_bin, axis=1)
    missing = by_bin[-1]
    for missing_left in (0, 1) if occupied[-1] else (0,):
        beyond = occupied[-1] and not missing_left  # missing values against all others
        last = n_values if beyond else n_values - 1
        left = by_bin[:last].cumsum(axis=0) + missing_left * missing
        directions = np.full(last, direction)
        if beyond:
            directions[(totals - left == missing).all(axis=1)] = 0
        gains = _gains(left, totals, rules, directions, bounds)
        gains[~occupied[:last]] = NO_GAIN
        if last and gains.max() > best.gain:
            cut = int(gains.argmax())
            following = np.flatnonzero(occupied[cut + 1 : n_values])
            middle = cut + following[0] // 2 if len(following) else n_values - 1
            side = missing_left if occupied[-1] else None
            best = _Split(float(gains[cut]), left[cut], int(middle), side)
    return best


def _gains(
    left: Sums, totals: Sums, rules: SplitRules, directions: NDArray, bounds: Floats | None
) -> Floats:
    """Gains of cuts by the sums of their left sides, (n_cuts, n_channels)."""
    limits, packing, l2 = rules.limits, rules.packing, rules.limits.l2
    n_outputs, right = rules.n_outputs or 1, totals - left
    counts = [_counts(sums, rules) * packing.count_step for sums in (left, right)]
    smallest = np.minimum(counts[0], counts[1])
    parts = [[_unpack(sums[:, k], packing) for k in range(n_outputs)] for sums in (left, right)]
    parent = [_unpack(totals[k : k + 1], packing) for k in range(n_outputs)]
    hessians = [sum(h for _, h in part) for part in parts]
    allowed = (smallest >= limits.min_count) & (counts[1] > 0)
    allowed &= np.minimum(hessians[0], hessians[1]) >= limits.min_hessian
    if len(totals) == 1 or (len(totals) == 2 and n_outputs == 1 and bounds is None):
        sides = score_of_sides(parts[0][0], parts[1][0], l2)
        allowed &= smallest > 0
        gains = split_gain(sides, leaf_score(*parent[0], l2))
    else:
        left_score, right_score, of_node = (
            np.sum([leaf_score(*one, l2) for one in part], axis=0) for part in (*parts, parent)
        )
        gains = split_gain(left_score + right_score, of_node)
    if bounds is not None:
        gains, ordered = _bounded_gains(parts, parent, l2, directions, bounds)
        allowed &= ordered
    return np.where(allowed, gains, NO_GAIN)


def _bounded_gains(
    parts: list, parent: list, l2: float, directions: NDArray, bounds: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Gains with values in bounds, and whether these are in the order of the column."""
    sides, of_parent = np.zeros(len(directions)), np.zeros(1)
    ordered = np.ones(len(directions), dtype=bool)
    for k, (lower, upper) in enumerate(bounds.T):
        limits = l2, float(lower), float(upper)
        left, left_score = _bounded_score(parts[0][k], limits)
        right, right_score = _bounded_score(parts[1][k], limits)
        ordered &= ~(directions * (right - left) < 0)
        sides = sides + (left_score + right_score)
        of_parent = of_parent + _bounded_score(parent[k], limits)[1]
    return split_gain(sides, of_parent), ordered


def _best_levels(by_bin: Sums, totals: Sums, rules: SplitRules, bounds: Floats | None) -> _Split:
    """The best cut of the levels in the order of their smoothed Newton steps."""
    limits, packing = rules.limits, rules.packing
    bins = np.flatnonzero(by_bin.any(axis=1))
    (mean_g,), (mean_h,) = _unpack(totals[:1], packing)
    count = _counts(totals[None], rules)[0] * packing.count_step
    if mean_h <= 0 or count <= 0:
        return _NONE
    pooled, weights = by_bin[bins].copy(), _counts(by_bin[bins], rules) * packing.count_step
    light = weights < limits.level_count
    pooled[light] = pooled[light].sum(axis=0)
    g, h = _unpack(pooled[:, 0], packing)
    steps = leaf_value(g - mean_g / mean_h * h, h, limits.level_smoothing * mean_h / count)
    order = np.argsort(steps, kind="stable")
    left = by_bin[bins[order]].cumsum(axis=0)[:-1]
    (left_g, left_h), left_c = _unpack(left[:, 0], packing), _counts(left, rules)
    right_h, right_c = mean_h - left_h, count - left_c * packing.count_step
    smallest = np.minimum(left_c * packing.count_step, right_c)
    allowed = (np.diff(steps[order]) != 0) & (smallest >= limits.min_count) & (smallest > 0)
    allowed &= np.minimum(left_h, right_h) >= limits.min_hessian
    l2 = limits.l2 + limits.level_l2
    if bounds is None:
        parent = leaf_score(mean_g, mean_h, limits.l2)
        sides = leaf_score(left_g, left_h, l2) + leaf_score(mean_g - left_g, right_h, l2)
    else:
        lower, upper = bounds[:, 0].tolist()
        parent = _bounded_score((mean_g, mean_h), (limits.l2, lower, upper))[1]
        right = _unpack(totals[0] - left[:, 0], packing)
        sides = _bounded_score((left_g, left_h), (l2, lower, upper))[1]
        sides = sides + _bounded_score(right, (l2, lower, upper))[1]
    gains = np.where(allowed, split_gain(sides, parent), NO_GAIN)
    if not len(gains) or gains.max() == NO_GAIN:
        return _NONE
    place = int(gains.argmax())
    chosen, last = bins[order[: place + 1]], len(by_bin) - 1
    side = int(last in chosen) if bins[-1] == last else None
    levels, present = chosen[chosen < last], bins[bins < last]
    return _Split(float(gains[place]), left[place], 0, side, levels, present)


def _unpack(packed: Sums, packing: Packing) -> Pair:
    """Gradients and hessians of packed sums."""
    hessian = (packed >> packing.hessian_shift) & packing.hessian_mask
    count = packed & packing.count_mask
    return (
        np.float64(packing.gradient_step) * (packed >> packing.gradient_shift),
        np.float64(packing.hessian_step) * hessian + np.float64(packing.hessian_of_count) * count,
    )


def _counts(sums: Sums, rules: SplitRules) -> Sums:
    """Counts of sums (..., n_channels) in steps."""
    mask = rules.packing.count_mask
    return sums[..., 0] & mask if mask else sums[..., -1]


_quietly = np.errstate(divide="ignore", invalid="ignore")


@_quietly
def leaf_value(gradient: Floats, hessian: Floats, l2: float) -> Floats:
    """The Newton step; 0 where the hessians vanish."""
    return np.where(hessian + l2 > 0, np.divide(gradient, hessian + l2), 0.0)


def score_of_value(value: Floats, gradient: Floats, hessian: Floats, l2: float) -> Floats:
    """By how much any value reduces twice the quadratic loss."""
    return value * (2.0 * gradient - (hessian + l2) * value)


@_quietly
def leaf_score(gradient: Floats, hessian: Floats, l2: float) -> Floats:
    """By how much the Newton step does; 0 without hessians."""
    return np.where(hessian > 0, np.divide(gradient * gradient, hessian + l2), 0.0)


@_quietly
def score_of_sides(left: Pair, right: Pair, l2: float) -> Floats:
    """The sum of two scores by one division, or ``NO_GAIN`` where the hessians of a side vanish."""
    a, c = left[1] + l2, right[1] + l2
    top = left[0] * left[0] * c + right[0] * right[0] * a
    return np.where(a * c > 0, np.divide(top, a * c), NO_GAIN)


def split_gain(sides: Floats, parent: Floats) -> Floats:
    """The gain of a split from the sum of both sides' scores and the score of the node."""
    return sides - parent


def _bounded_score(sums: Pair, limits: tuple[float, float, float]) -> Pair:
    """The leaf value within bounds, and its score."""
    (gradient, hessian), (l2, lower, upper) = sums, limits
    value = np.where(hessian > 0, leaf_value(gradient, hessian, l2), 0.0)
    value = np.minimum(np.maximum(value, lower), upper)
    return value, np.where(hessian > 0, score_of_value(value, gradient, hessian, l2), 0.0)


def _bins(growth: Growth, column: int) -> NDArray[np.intp]:
    """Bins of a column, (n,)."""
    word, byte = divmod(int(column), 8)
    return growth.table.flat.reshape(len(growth.table.words), -1, 8)[word, :, byte].astype(np.intp)


def _stride(growth: Growth) -> int:
    return STRIDE if growth.packed is None else growth.rules.n_bins


def _is_category(rules: SplitRules, column: int) -> bool:
    return len(rules.is_category) > 0 and bool(rules.is_category[column])


def _members(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """The bins whose bits are set."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
