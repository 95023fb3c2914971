"""Naive twins of :mod:`hilboost.backends.search`, by the twins for one column."""

import math

from tests.reference import levels as levels_twin
from tests.reference import split as split_twin

from hilboost.backends.nodes import BIN, COLUMN, MISSING_LEFT

NO_GAIN = -math.inf


def _base(column, n_bins, n_channels):
    return int(column) * (256 if n_channels == 1 else n_bins)


def search_columns(
    first,
    last,
    histogram,
    n_bins,
    n_values,
    drawn,
    totals,
    n_outputs,
    layout,
    scales,
    limits,
    monotonic,
    bounds,
    levels,
    scratch,
    scan_sums,
    scan_gains,
    gain_out,
    split_out,
):
    found = [(NO_GAIN, 0, 0, 0)]
    for f in range(first, last):
        if not drawn[f] or n_values[f] == 0:
            continue
        here = histogram, _base(f, n_bins, len(totals))
        numbers = layout, scales, limits[:4]
        direction = monotonic[f] if len(monotonic) else 0
        if len(levels) and levels[f]:
            gain, cut = levels_twin.scan_levels(
                *here, n_bins, totals, layout, scales, limits, bounds, None, None, None
            )
            found.append((gain, f, cut, 0))
            continue
        column = *here, n_values[f], n_bins - 1
        if len(totals) == 1:
            split = split_twin.scan(
                *column, totals[0], *numbers, direction, bounds, None, None, None
            )
        else:
            split = split_twin.scan_channels(
                *column, totals, n_outputs, *numbers, direction, bounds, None
            )
        found.append((split[0], f, *split[1:]))
    best = max(found, key=lambda one: one[0])  # the first of equals
    gain_out[0] = best[0]
    if best[0] > NO_GAIN:
        split_out[:3] = best[1:]


def settle_split(
    node,
    histogram,
    n_bins,
    n_values,
    nodes,
    gains,
    totals,
    left_totals,
    best_gain,
    best_split,
    layout,
    scales,
    limits,
    levels,
    left_sets,
    scan_sums,
    scan_gains,
):
    thread = max(range(len(best_gain)), key=lambda t: best_gain[t, 0])  # the first of equals
    gain = best_gain[thread, 0]
    gains[node] = NO_GAIN
    if gain <= 0 or gain < limits[3]:
        return
    gains[node] = gain
    column, cut, missing_left = (int(x) for x in best_split[thread, :3])
    n_channels = len(totals[node])
    base = _base(column, n_bins, n_channels)
    if len(levels) and levels[column]:
        missing_left = levels_twin.settle_levels(
            *(histogram, base, n_bins, totals[node], layout, scales, limits, cut),
            *(None, None, left_totals[node], left_sets[node]),
        )
        nodes[node, [COLUMN, BIN, MISSING_LEFT]] = column, 0, missing_left
        return
    bins = histogram[base * n_channels : (base + n_bins) * n_channels].reshape(n_bins, n_channels)
    left_totals[node] = bins[: cut + 1].sum(axis=0) + (bins[-1] if missing_left else 0)
    following = [b for b in range(cut + 1, n_values[column]) if bins[b].any()]
    cut = (cut + following[0] - 1) // 2 if following else n_values[column] - 1
    if not bins[-1].any():
        packed = int(layout[2])
        left, whole = (
            int(sums[0]) & packed if packed else int(sums[-1])
            for sums in (left_totals[node], totals[node])
        )
        missing_left = 2 * left >= whole
    nodes[node, [COLUMN, BIN, MISSING_LEFT]] = column, cut, missing_left
