"""Naive twins of :mod:`hilboost.engine.ops.cpu.split_search`, by the twins for one column."""

import math

import numpy as np
from tests.reference import category_splits as levels_twin
from tests.reference import column_splits as split_twin

from hilboost.engine.ops.cpu.column_splits import Column
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, MISSING_LEFT, SLOT

NO_GAIN = -math.inf


def _column(histogram, number, n_channels, rules):
    base = int(number) * (256 if n_channels == 1 else rules.n_bins)
    return Column(histogram, base, int(rules.n_values[number]), rules.n_bins)


def search_columns(first, last, node, drawn, growth, scratch):
    found, rules, totals = [(NO_GAIN, 0, 0, 0)], growth.rules, growth.sums.totals[node]
    histogram = growth.histograms.slots[growth.nodes.fields[node, SLOT]]
    bounds = None if growth.constraints is None else growth.constraints.bounds[node]
    for f in range(first, last):
        if not drawn[f] or rules.n_values[f] == 0:
            continue
        column = _column(histogram, f, len(totals), rules)
        direction = rules.monotonic[f] if bounds is not None and len(rules.monotonic) else 0
        if bounds is not None and len(rules.is_category) and rules.is_category[f]:
            gain, cut = levels_twin.scan_levels(column, totals, rules, bounds, None)
            split = gain, cut, 0
        elif len(totals) == 1:
            given = column, totals[0], rules, direction, bounds, NO_GAIN, None
            gain, cut, missing_left = split_twin.scan(*given)
            bins = column.histogram[column.base : column.base + column.n_values]
            split = gain, int(np.flatnonzero(bins)[cut]) if gain > NO_GAIN else 0, missing_left
        elif len(totals) == 2 and rules.n_outputs == 1 and (bounds is None or not len(bounds)):
            split = split_twin.scan_pairs(column, totals, rules, NO_GAIN, None)
        else:
            split = split_twin.scan_channels(column, totals, rules, direction, bounds, None)
        found.append((split[0], f, *split[1:]))
    return max(found, key=lambda one: one[0])  # the first of equals


def best_of_parts(gains, splits):
    part = max(range(len(gains)), key=lambda i: gains[i])  # the first of equals
    return gains[part], *(int(x) for x in splits[part])


def settle_split(node, split, growth, scratch):
    gain, number, cut, missing_left = split
    nodes, sums, categories, rules = growth.nodes, growth.sums, growth.categories, growth.rules
    histogram = growth.histograms.slots[nodes.fields[node, SLOT]]
    nodes.gains[node] = NO_GAIN
    if gain <= 0 or gain < rules.limits.min_gain:
        return
    nodes.gains[node] = gain
    totals, left_totals = sums.totals[node], sums.left_totals[node]
    column = _column(histogram, number, len(totals), rules)
    if categories is not None and len(rules.is_category) and rules.is_category[number]:
        left_set = categories.left_sets[node]
        missing_left = levels_twin.settle_levels(
            column, totals, rules, cut, None, left_totals, left_set
        )
        nodes.fields[node, [COLUMN, BIN, MISSING_LEFT]] = number, 0, missing_left
        return
    n_channels = len(totals)
    bins = histogram[column.base * n_channels :][: column.n_bins * n_channels]
    bins = bins.reshape(column.n_bins, n_channels)
    left_totals[:] = bins[: cut + 1].sum(axis=0) + (bins[-1] if missing_left else 0)
    following = [b for b in range(cut + 1, column.n_values) if bins[b].any()]
    cut = (cut + following[0] - 1) // 2 if following else column.n_values - 1
    if not bins[-1].any():
        mask = rules.packing.count_mask
        left, whole = (int(x[0]) & mask if mask else int(x[-1]) for x in (left_totals, totals))
        missing_left = 2 * left >= whole
    nodes.fields[node, [COLUMN, BIN, MISSING_LEFT]] = number, cut, missing_left
