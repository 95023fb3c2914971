"""The search for splits in plain NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.criterion import Criterion, LeafLimits, LeafSums
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, MISSING_LEFT, SLOT
from hilboost.engine.ops.cpu.split_search import SplitRules
from hilboost.engine.ops.reference.criterion import (
    leaf_score,
    leaf_value,
    score_of_sides,
    score_of_value,
    split_gain,
    value_within,
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
    limits, criterion, n_outputs = rules.limits, rules.limits.criterion, rules.n_outputs or 1
    parts = [
        [_unpack(sums, rules, k) for k in range(n_outputs)]
        for sums in (left, totals - left, totals[None])
    ]
    left_c, right_c = (part[0].weight for part in parts[:2])
    smallest = np.minimum(left_c, right_c)
    hessians = [sum(sums.hessian for sums in part) for part in parts[:2]]
    allowed = (smallest >= limits.min_count) & (smallest > 0)
    allowed &= np.minimum(hessians[0], hessians[1]) >= limits.min_hessian
    if n_outputs == 1:
        sides = score_of_sides(parts[0][0], parts[1][0], criterion)
        gains = split_gain(sides, leaf_score(parts[2][0], criterion), left_c, right_c, criterion)
    else:
        left_score, right_score, of_node = (
            np.sum([leaf_score(sums, criterion) for sums in part], axis=0) for part in parts
        )
        gains = split_gain(left_score + right_score, of_node, left_c, right_c, criterion)
    if bounds is not None:
        sides, of_node, ordered = _bounded_sides(parts, criterion, directions, bounds)
        gains = split_gain(sides, of_node, left_c, right_c, criterion)
        allowed &= ordered
    return np.where(allowed, gains, NO_GAIN)


def _bounded_sides(
    parts: list[list[LeafSums]], criterion: Criterion, directions: NDArray, bounds: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Scores of both sides and the node with values in bounds; whether these are in order."""
    sides, of_parent = np.zeros(len(directions)), np.zeros(1)
    ordered = np.ones(len(directions), dtype=bool)
    for k, (lower, upper) in enumerate(bounds.T):
        limits = LeafLimits(criterion, float(lower), float(upper))
        (left, left_score), (right, right_score), (_, of_node) = (
            _bounded_score(part[k], limits) for part in parts
        )
        ordered &= ~(directions * (right - left) < 0)
        sides = sides + (left_score + right_score)
        of_parent = of_parent + of_node
    return sides, of_parent, ordered


def _best_levels(by_bin: Sums, totals: Sums, rules: SplitRules, bounds: Floats | None) -> _Split:
    """The best cut of the levels in the order of their smoothed Newton steps."""
    limits, criterion = rules.limits, rules.limits.criterion
    bins = np.flatnonzero(by_bin.any(axis=1))
    of_node = LeafSums(*(float(np.ravel(one)[0]) for one in _unpack(totals[None], rules)))
    if of_node.hessian <= 0 or of_node.weight <= 0:
        return _NONE
    pooled = by_bin[bins].copy()
    light = _unpack(pooled, rules).weight < limits.level_count
    pooled[light] = pooled[light].sum(axis=0)
    g, h, weights = _unpack(pooled, rules)
    beyond = LeafSums(g - of_node.gradient / of_node.hessian * h, h, weights)
    smoothing = float(limits.level_smoothing * of_node.hessian / of_node.weight)
    steps = leaf_value(beyond, criterion._replace(l2=smoothing))
    order = np.argsort(steps, kind="stable")
    sums = by_bin[bins[order]].cumsum(axis=0)[:-1]
    left = _unpack(sums, rules)
    right = LeafSums(*(whole - part for whole, part in zip(of_node, left, strict=True)))
    smallest = np.minimum(left.weight, right.weight)
    allowed = (np.diff(steps[order]) != 0) & (smallest >= limits.min_count) & (smallest > 0)
    allowed &= np.minimum(left.hessian, right.hessian) >= limits.min_hessian
    of_sides = criterion._replace(l2=criterion.l2 + limits.level_l2)
    if bounds is None:
        parent = leaf_score(of_node, criterion)
        scores = leaf_score(left, of_sides) + leaf_score(right, of_sides)
    else:
        within = LeafLimits(criterion, *bounds[:, 0].tolist())
        parent = _bounded_score(of_node, within)[1]
        within = within._replace(criterion=of_sides)
        scores = _bounded_score(left, within)[1]
        scores = scores + _bounded_score(_unpack(totals - sums, rules), within)[1]
    gains = np.where(
        allowed, split_gain(scores, parent, left.weight, right.weight, of_sides), NO_GAIN
    )
    if not len(gains) or gains.max() == NO_GAIN:
        return _NONE
    place = int(gains.argmax())
    chosen, last = bins[order[: place + 1]], len(by_bin) - 1
    side = int(last in chosen) if bins[-1] == last else None
    levels, present = chosen[chosen < last], bins[bins < last]
    return _Split(float(gains[place]), sums[place], 0, side, levels, present)


def _unpack(sums: Sums, rules: SplitRules, output: int = 0) -> LeafSums:
    """The sums of an output, and the weights, of packed sums (n, n_channels)."""
    packing, packed = rules.packing, sums[:, output]
    hessian = (packed >> packing.hessian_shift) & packing.hessian_mask
    count = packed & packing.count_mask
    return LeafSums(
        packing.steps[0] * (packed >> packing.gradient_shift),
        packing.steps[1] * hessian + np.float64(packing.hessian_of_count) * count,
        np.float64(packing.count_step) * _counts(sums, rules),
    )


def _counts(sums: Sums, rules: SplitRules) -> Sums:
    """Counts of sums (..., n_channels) in steps."""
    mask = rules.packing.count_mask
    return sums[..., 0] & mask if mask else sums[..., -1]


def _bounded_score(sums: LeafSums, limits: LeafLimits) -> tuple[Floats, Floats]:
    """The leaf value within bounds, and its score."""
    curved = np.asarray(sums.hessian) > 0
    value = value_within(sums._replace(gradient=np.where(curved, sums.gradient, 0.0)), limits)
    return value, np.where(curved, score_of_value(value, sums, limits.criterion), 0.0)


def stride_of(growth: Growth) -> int:
    """Bins that a column takes in a histogram."""
    return STRIDE if growth.packed is None else growth.rules.n_bins


def is_category(rules: SplitRules, column: int) -> bool:
    """Whether a column is split on sets of levels."""
    return len(rules.is_category) > 0 and bool(rules.is_category[column])
