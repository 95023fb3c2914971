"""The search for splits in plain NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.criterion import LeafLimits
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, MISSING_LEFT, SLOT
from hilboost.engine.ops.cpu.packing import Packing
from hilboost.engine.ops.cpu.split_search import SplitRules
from hilboost.engine.ops.reference.criterion import (
    Pair,
    leaf_score,
    leaf_value,
    score_of_sides,
    score_of_value,
    split_gain,
)

Sums = NDArray[np.int64]
_NOWHERE = np.zeros(0)  # no directions


def search(growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
    """Note the best split of each node on its columns; the first one wins a tie."""
    rules = growth.rules
    if rules.symmetric:
        _search_together(growth, nodes, columns[0])
        return
    for node, drawn in zip(nodes, columns, strict=True):
        totals, best = growth.sums.totals[node], _NONE
        bounds = None
        if growth.constraints is not None and len(growth.constraints.bounds[node]):
            bounds = growth.constraints.bounds[node]
        for column in map(int, np.flatnonzero((drawn != 0) & (rules.n_values > 0))):
            by_bin = _sums_by_bin(growth, node, column)
            if is_category(rules, column):
                found = _best_levels(by_bin, totals, rules, bounds)
            else:
                direction = int(rules.monotonic[column]) if len(rules.monotonic) else 0
                found = _best_cut(by_bin, totals, rules, direction, bounds)
            if found.gain > best.gain:
                best = found._replace(column=column)
        _note(growth, int(node), best, totals)


def _sums_by_bin(growth: Growth, node: np.int64, column: int) -> Sums:
    """Sums of a node by bin of a column; the last one is that of missing values."""
    rules, slot = growth.rules, growth.histograms.slots[growth.nodes.fields[node, SLOT]]
    sums = slot.reshape(len(rules.n_values), stride_of(growth), -1)[column, : rules.n_bins]
    return np.vstack([sums[: rules.n_values[column]], sums[-1:]])


def _search_together(growth: Growth, nodes: NDArray[np.int64], drawn: NDArray[np.uint8]) -> None:
    """Note the cut of the largest sum of gains for all nodes that permit it."""
    rules, totals, best, chosen = growth.rules, growth.sums.totals[nodes], 0.0, None
    for column in map(int, np.flatnonzero((drawn != 0) & (rules.n_values > 0))):
        by_bin = np.array([_sums_by_bin(growth, node, column) for node in nodes])
        has_missing = bool(by_bin[:, -1].any())
        for missing_left in (0, 1) if has_missing else (0,):
            beyond = has_missing and not missing_left
            last = by_bin.shape[1] - 1 if beyond else by_bin.shape[1] - 2
            left = by_bin[:, :last].cumsum(axis=1) + missing_left * by_bin[:, -1:]
            pairs = zip(left, totals, strict=True)
            gains = [_gains(one, total, rules, _NOWHERE, None) for one, total in pairs]
            summed = np.zeros(last)
            for of_node in gains:  # in this order, as sums are rounded
                summed += np.where(of_node > NO_GAIN, of_node, 0.0)
            if last and summed.max() > best:
                cut = int(summed.argmax())
                end = cut + int(np.append(summed[cut:] != summed[cut], True).argmax()) - 1
                cut = end if beyond and end == last - 1 else (cut + end) // 2
                side = missing_left
                if not has_missing:
                    on_left = _counts(left[:, cut], rules).sum()
                    side = int(2 * on_left >= _counts(totals, rules).sum())
                own = np.array(gains)[:, cut]
                best, chosen = summed[cut], (own, left[:, cut], [column, cut, side])
    growth.nodes.gains[nodes] = NO_GAIN
    if chosen is not None and best >= rules.limits.min_gain:
        gain, growth.sums.left_totals[nodes], split = chosen
        allowed = gain > NO_GAIN
        growth.nodes.gains[nodes[allowed]] = np.maximum(gain[allowed], 0.0)
        growth.nodes.fields[nodes[allowed][:, None], [COLUMN, BIN, MISSING_LEFT]] = split


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
    left_c, right_c = (np.float64(packing.count_step) * _counts(s, rules) for s in (left, right))
    smallest = np.minimum(left_c, right_c)
    parts = [[_unpack(sums[:, k], packing) for k in range(n_outputs)] for sums in (left, right)]
    parent = [_unpack(totals[k : k + 1], packing) for k in range(n_outputs)]
    hessians = [sum(h for _, h in part) for part in parts]
    allowed = (smallest >= limits.min_count) & (smallest > 0)
    allowed &= np.minimum(hessians[0], hessians[1]) >= limits.min_hessian
    if n_outputs == 1:
        sides = score_of_sides(parts[0][0], parts[1][0], l2)
        gains = split_gain(sides, leaf_score(*parent[0], l2), left_c, right_c)
    else:
        left_score, right_score, of_node = (
            np.sum([leaf_score(*one, l2) for one in part], axis=0) for part in (*parts, parent)
        )
        gains = split_gain(left_score + right_score, of_node, left_c, right_c)
    if bounds is not None:
        weights = left_c, right_c, packing.count_step * _counts(totals, rules)
        sides, of_node, ordered = _bounded_sides((*parts, parent), weights, l2, directions, bounds)
        gains = split_gain(sides, of_node, left_c, right_c)
        allowed &= ordered
    return np.where(allowed, gains, NO_GAIN)


def _bounded_sides(
    parts: tuple, weights: tuple, l2: float, directions: NDArray, bounds: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Scores of both sides and the node with values in bounds; whether these are in order."""
    sides, of_parent = np.zeros(len(directions)), np.zeros(1)
    ordered = np.ones(len(directions), dtype=bool)
    for k, (lower, upper) in enumerate(bounds.T):
        limits = LeafLimits(l2, float(lower), float(upper))
        (left, left_score), (right, right_score), (_, of_node) = (
            _bounded_score(part[k], weight, limits)
            for part, weight in zip(parts, weights, strict=True)
        )
        ordered &= ~(directions * (right - left) < 0)
        sides = sides + (left_score + right_score)
        of_parent = of_parent + of_node
    return sides, of_parent, ordered


def _best_levels(by_bin: Sums, totals: Sums, rules: SplitRules, bounds: Floats | None) -> _Split:
    """The best cut of the levels in the order of their smoothed Newton steps."""
    limits, packing = rules.limits, rules.packing
    bins = np.flatnonzero(by_bin.any(axis=1))
    (mean_g,), (mean_h,) = _unpack(totals[:1], packing)
    count = _counts(totals[None], rules)[0] * packing.count_step
    if mean_h <= 0 or count <= 0:
        return _NONE
    pooled = by_bin[bins].copy()
    light = _counts(pooled, rules) * packing.count_step < limits.level_count
    pooled[light] = pooled[light].sum(axis=0)
    g, h = _unpack(pooled[:, 0], packing)
    smoothed = LeafLimits(limits.level_smoothing * mean_h / count, -np.inf, np.inf)
    weights = np.float64(packing.count_step) * _counts(pooled, rules)
    steps = leaf_value(g - mean_g / mean_h * h, h, weights, smoothed)
    order = np.argsort(steps, kind="stable")
    left = by_bin[bins[order]].cumsum(axis=0)[:-1]
    left_g, left_h = _unpack(left[:, 0], packing)
    left_c = np.float64(packing.count_step) * _counts(left, rules)
    right_h, right_c = mean_h - left_h, count - left_c
    smallest = np.minimum(left_c, right_c)
    allowed = (np.diff(steps[order]) != 0) & (smallest >= limits.min_count) & (smallest > 0)
    allowed &= np.minimum(left_h, right_h) >= limits.min_hessian
    l2 = limits.l2 + limits.level_l2
    if bounds is None:
        parent = leaf_score(mean_g, mean_h, limits.l2)
        sides = leaf_score(left_g, left_h, l2) + leaf_score(mean_g - left_g, right_h, l2)
    else:
        of_node = LeafLimits(limits.l2, *bounds[:, 0].tolist())
        parent = _bounded_score((mean_g, mean_h), count, of_node)[1]
        right, of_sides = _unpack(totals[0] - left[:, 0], packing), of_node._replace(l2=l2)
        sides = _bounded_score((left_g, left_h), left_c, of_sides)[1]
        sides = sides + _bounded_score(right, right_c, of_sides)[1]
    gains = np.where(allowed, split_gain(sides, parent, left_c, right_c), NO_GAIN)
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
        packing.steps[0] * (packed >> packing.gradient_shift),
        packing.steps[1] * hessian + np.float64(packing.hessian_of_count) * count,
    )


def _counts(sums: Sums, rules: SplitRules) -> Sums:
    """Counts of sums (..., n_channels) in steps."""
    mask = rules.packing.count_mask
    return sums[..., 0] & mask if mask else sums[..., -1]


def _bounded_score(sums: Pair, weight: Floats, limits: LeafLimits) -> Pair:
    """The leaf value within bounds, and its score."""
    (gradient, hessian), curved = sums, sums[1] > 0
    value = leaf_value(np.where(curved, gradient, 0.0), hessian, weight, limits)
    score = score_of_value(value, gradient, hessian, limits.l2)
    return value, np.where(curved, score, 0.0)


def stride_of(growth: Growth) -> int:
    """Bins that a column takes in a histogram."""
    return STRIDE if growth.packed is None else growth.rules.n_bins


def is_category(rules: SplitRules, column: int) -> bool:
    """Whether a column is split on sets of levels."""
    return len(rules.is_category) > 0 and bool(rules.is_category[column])
