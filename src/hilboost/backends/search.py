"""The best split of a node over many columns, from its histogram."""

import numpy as np

from hilboost.backends.compiled import compiled
from hilboost.backends.histogram import STRIDE
from hilboost.backends.levels import scan_levels, settle_levels
from hilboost.backends.nodes import BIN, COLUMN, MISSING_LEFT
from hilboost.backends.split import COUNT_MASK, MIN_GAIN, NO_GAIN, scan, scan_channels
from hilboost.backends.sync import keep_apart


@compiled
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
    """Best split over the columns ``[first, last)``; the first one wins a tie."""
    best = NO_GAIN
    stride = STRIDE if totals.shape[0] == 1 else n_bins
    for f in range(first, last):
        if not drawn[f] or n_values[f] == 0:
            continue
        direction = monotonic[f] if monotonic.shape[0] > 0 else 0
        if levels.shape[0] > 0 and levels[f]:
            left = np.int64(0)
            gain, cut = scan_levels(
                histogram,
                f * stride,
                n_bins,
                totals,
                layout,
                scales,
                limits,
                bounds,
                scratch[0],
                scan_sums[1],
                scan_gains,
            )
        elif totals.shape[0] == 1:
            gain, cut, left = scan(
                histogram,
                f * stride,
                n_values[f],
                n_bins - 1,
                totals[0],
                layout,
                scales,
                limits,
                direction,
                bounds,
                scan_sums[0],
                scan_sums[1],
                scan_gains,
            )
        else:
            gain, cut, left = scan_channels(
                histogram,
                f * stride,
                n_values[f],
                n_bins - 1,
                totals,
                n_outputs,
                layout,
                scales,
                limits,
                direction,
                bounds,
                scratch,
            )
        if gain > best:
            best = gain
            split_out[0], split_out[1], split_out[2] = f, cut, left
    gain_out[0] = best


@compiled
def _is_empty(histogram, leaf, n_channels):
    empty = True
    for c in range(n_channels):
        empty &= histogram[leaf + c] == 0
    return empty


@compiled
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
    """Choose among the threads' candidates and note the split and the sums of its left side.

    A cut anywhere between two neighboring bins that hold rows sends the same rows left: the middle
    one is taken.  Rows without a value follow the larger part where none was seen.
    """
    keep_apart()
    n_channels = left_totals.shape[1]
    chosen = 0
    for t in range(1, best_gain.shape[0]):
        if best_gain[t, 0] > best_gain[chosen, 0]:
            chosen = t
    gain = best_gain[chosen, 0]
    gains[node] = NO_GAIN
    if gain == NO_GAIN or gain < limits[MIN_GAIN] or gain <= 0.0:
        return
    gains[node] = gain
    column, cut, missing_left = (
        best_split[chosen, 0],
        best_split[chosen, 1],
        best_split[chosen, 2],
    )
    base = column * (STRIDE if n_channels == 1 else n_bins)
    if levels.shape[0] > 0 and levels[column]:
        missing_left = settle_levels(
            histogram,
            base,
            n_bins,
            totals[node],
            layout,
            scales,
            limits,
            cut,
            scan_sums[1],
            scan_gains,
            left_totals[node],
            left_sets[node],
        )
        nodes[node, COLUMN], nodes[node, BIN], nodes[node, MISSING_LEFT] = column, 0, missing_left
        return
    for c in range(n_channels):
        left = 0
        for b in range(cut + 1):
            left += histogram[(base + b) * n_channels + c]
        if missing_left:
            left += histogram[(base + n_bins - 1) * n_channels + c]
        left_totals[node, c] = left
    following = cut + 1
    last = n_values[column]
    while following < last and _is_empty(histogram, (base + following) * n_channels, n_channels):
        following += 1
    cut = (cut + following - 1) // 2 if following < last else last - 1
    if _is_empty(histogram, (base + n_bins - 1) * n_channels, n_channels):
        count_channel = 0 if layout[COUNT_MASK] != 0 else n_channels - 1
        mask = layout[COUNT_MASK] if layout[COUNT_MASK] != 0 else -1
        left_count = left_totals[node, count_channel] & mask
        missing_left = 2 * left_count >= (totals[node, count_channel] & mask)
    nodes[node, COLUMN], nodes[node, BIN], nodes[node, MISSING_LEFT] = column, cut, missing_left
