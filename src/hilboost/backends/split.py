"""The best split of one column from its histogram.

A packed gradient holds up to three integers, ``gradient | hessian | count`` from the highest bits
to the lowest.  ``layout`` says where: ``(count_bits, hessian_bits)`` as masks and shifts, and
``scales`` turns the integers into numbers.  All sums are integers, so a split does not depend on
the order in which rows were added.
"""

import numpy as np

from hilboost.backends.compiled import compiled
from hilboost.backends.sync import keep_apart

# layout (int64): shift and mask of the hessian, mask of the count, shift of the gradient
HESSIAN_SHIFT, HESSIAN_MASK, COUNT_MASK, GRADIENT_SHIFT = 0, 1, 2, 3
# scales (float64): gradient, hessian, hessian of one count, count
GRADIENT, HESSIAN, HESSIAN_OF_COUNT, COUNT = 0, 1, 2, 3
# limits (float64)
L2, MIN_COUNT, MIN_HESSIAN, MIN_GAIN = 0, 1, 2, 3

NO_GAIN = -np.inf


@compiled
def score(value, layout, scales, l2):
    """``(G² / (H + l2), H, count)`` of one packed sum."""
    count = value & layout[COUNT_MASK]
    hessian = ((value >> layout[HESSIAN_SHIFT]) & layout[HESSIAN_MASK]) * scales[
        HESSIAN
    ] + count * scales[HESSIAN_OF_COUNT]
    gradient = (value >> layout[GRADIENT_SHIFT]) * scales[GRADIENT]
    if hessian <= 0.0:
        return 0.0, 0.0, count * scales[COUNT]
    return gradient * gradient / (hessian + l2), hessian, count * scales[COUNT]


@compiled
def bounded_score(value, layout, scales, l2, lower, upper):
    """``(w, w (2 G - (H + l2) w))`` for the Newton step ``w`` of a packed sum, kept in bounds.

    What ``w`` takes off twice the quadratic loss; :func:`score` where no bound is reached.
    """
    count = value & layout[COUNT_MASK]
    hessian = ((value >> layout[HESSIAN_SHIFT]) & layout[HESSIAN_MASK]) * scales[
        HESSIAN
    ] + count * scales[HESSIAN_OF_COUNT]
    gradient = (value >> layout[GRADIENT_SHIFT]) * scales[GRADIENT]
    if hessian <= 0.0:
        return min(max(0.0, lower), upper), 0.0
    bottom = hessian + l2
    step = min(max(gradient / bottom, lower), upper)
    return step, step * (2.0 * gradient - bottom * step)


@compiled
def _bound_gains(sums, n_cuts, n_ordered, total, layout, scales, l2, direction, bounds, gains):
    """Gains of the same cuts where values have bounds, and must not fall in ``direction``.

    Cuts from ``n_ordered`` on divide missing values from all others, which have no order.
    """
    keep_apart()
    lower, upper = bounds[0, 0], bounds[1, 0]
    _, parent = bounded_score(total, layout, scales, l2, lower, upper)
    for b in range(n_cuts):
        if gains[b] == NO_GAIN:
            continue
        left, left_score = bounded_score(sums[b], layout, scales, l2, lower, upper)
        right, right_score = bounded_score(total - sums[b], layout, scales, l2, lower, upper)
        refused = b < n_ordered and direction * (right - left) < 0.0
        gains[b] = NO_GAIN if refused else left_score + right_score - parent


@compiled
def _fill_gains(sums, n_cuts, total, layout, scales, limits, gains):
    """Gains of all cuts of a column from the running sums of its bins.

    Straight-line arithmetic over a short array, which the compiler turns into vector code; a cut
    that is not allowed gets ``NO_GAIN``.  One division a cut: both terms share a denominator.
    """
    hessian_shift, hessian_mask = layout[HESSIAN_SHIFT], layout[HESSIAN_MASK]
    count_mask, gradient_shift = layout[COUNT_MASK], layout[GRADIENT_SHIFT]
    hessian_scale, count_hessian = scales[HESSIAN], scales[HESSIAN_OF_COUNT]
    gradient_scale, count_scale = scales[GRADIENT], scales[COUNT]
    l2, min_count, min_hessian = limits[L2], limits[MIN_COUNT], limits[MIN_HESSIAN]
    parent, _, _ = score(total, layout, scales, l2)
    for b in range(n_cuts):
        left = sums[b]
        right = total - left
        left_count = np.float64(left & count_mask)
        right_count = np.float64(right & count_mask)
        left_hessian = (
            np.float64((left >> hessian_shift) & hessian_mask) * hessian_scale
            + left_count * count_hessian
        )
        right_hessian = (
            np.float64((right >> hessian_shift) & hessian_mask) * hessian_scale
            + right_count * count_hessian
        )
        left_gradient = np.float64(left >> gradient_shift) * gradient_scale
        right_gradient = np.float64(right >> gradient_shift) * gradient_scale
        a, c = left_hessian + l2, right_hessian + l2
        gain = (left_gradient * left_gradient * c + right_gradient * right_gradient * a) / (a * c)
        smallest = min(left_count, right_count) * count_scale
        allowed = (
            (smallest >= min_count)
            & (smallest > 0.0)
            & (min(left_hessian, right_hessian) >= min_hessian)
            & (a * c > 0.0)
        )
        gains[b] = gain - parent if allowed else NO_GAIN


@compiled
def scan(
    histogram,
    base,
    n_values,
    missing_bin,
    total,
    layout,
    scales,
    limits,
    direction,
    bounds,
    sums,
    places,
    gains,
):
    """Best split of a column with one channel.

    Parameters
    ----------
    histogram : flat int64; the column's bins start at ``base``
    n_values : int, bins of the column without the one for missing values
    missing_bin : int
    total : int64, packed sum of the node
    direction : int, the sign of right minus left value that the column asks for, 0 for none
    bounds : (2, 1) float64, least and greatest value below the node, or (0, 0) without bounds
    sums, places : (n_bins,) int64, gains : (n_bins,) float64, scratch

    Returns
    -------
    gain, bin, missing_left
        ``gain`` is ``NO_GAIN`` where no split is allowed; the first of equal cuts wins.

    Notes
    -----
    Bins without rows are squeezed out first: small nodes have few others.
    """
    best_gain, best_bin, best_left = NO_GAIN, 0, 0
    column = histogram[base : base + missing_bin + 1]
    missing = column[missing_bin]
    directions = 2 if missing != 0 else 1
    for missing_left in range(directions):
        left = missing if missing_left else np.int64(0)
        # Missing against all the rest is one more place to cut.
        last = n_values if (directions == 2 and missing_left == 0) else n_values - 1
        n_cuts = np.int64(0)
        for b in range(last):
            here = column[b]
            left += here
            sums[n_cuts] = left
            places[n_cuts] = b
            n_cuts += np.int64(here != 0)
        _fill_gains(sums, n_cuts, total, layout, scales, limits, gains)
        if bounds.shape[0] > 0:
            n_ordered = n_cuts - (last == n_values)
            _bound_gains(
                sums,
                n_cuts,
                n_ordered,
                total,
                layout,
                scales,
                limits[L2],
                direction,
                bounds,
                gains,
            )
        for i in range(n_cuts):
            if gains[i] > best_gain:
                best_gain, best_bin, best_left = gains[i], places[i], missing_left
    return best_gain, best_bin, best_left


@compiled
def _score_channels(sums, n_outputs, layout, scales, l2):
    total_score, total_hessian, count = 0.0, 0.0, 0.0
    for k in range(n_outputs):
        part, hessian, count_k = score(sums[k], layout, scales, l2)
        total_score += part
        total_hessian += hessian
        if k == 0:
            count = count_k
    if sums.shape[0] > n_outputs:
        count = sums[n_outputs] * scales[COUNT]
    return total_score, total_hessian, count


@compiled
def _bounded_gain(left, right, n_outputs, layout, scales, l2, direction, bounds):
    """Both sides' scores within bounds, or ``NO_GAIN`` where some output is out of order."""
    keep_apart()
    gain = 0.0
    for k in range(n_outputs):
        lower, upper = bounds[0, k], bounds[1, k]
        left_value, left_score = bounded_score(left[k], layout, scales, l2, lower, upper)
        right_value, right_score = bounded_score(right[k], layout, scales, l2, lower, upper)
        if direction * (right_value - left_value) < 0.0:
            return NO_GAIN
        gain += left_score + right_score
    return gain


@compiled
def scan_channels(
    histogram,
    base,
    n_values,
    missing_bin,
    totals,
    n_outputs,
    layout,
    scales,
    limits,
    direction,
    bounds,
    scratch,
):
    """The same with several channels: one per output and, where needed, one for the count.

    ``totals`` (n_channels,) int64; ``bounds`` (2, n_outputs) or (0, 0) float64; ``scratch``
    (2, n_channels) int64.  The gain is the sum over outputs, and ``MIN_HESSIAN`` bounds the sum of
    their hessians.
    """
    keep_apart()
    best_gain, best_bin, best_left = NO_GAIN, 0, 0
    n_channels = totals.shape[0]
    l2, min_count, min_hessian = limits[L2], limits[MIN_COUNT], limits[MIN_HESSIAN]
    left, right = scratch[0], scratch[1]
    parent, _, _ = _score_channels(totals, n_outputs, layout, scales, l2)
    bounded = bounds.shape[0] > 0
    if bounded:
        parent = 0.0
        for k in range(n_outputs):
            parent += bounded_score(totals[k], layout, scales, l2, bounds[0, k], bounds[1, k])[1]
    directions = 1
    for c in range(n_channels):
        if histogram[(base + missing_bin) * n_channels + c] != 0:
            directions = 2
    for missing_left in range(directions):
        for c in range(n_channels):
            left[c] = histogram[(base + missing_bin) * n_channels + c] if missing_left else 0
        last = n_values if (directions == 2 and missing_left == 0) else n_values - 1
        for b in range(last):
            empty = True
            for c in range(n_channels):
                here = histogram[(base + b) * n_channels + c]
                if here != 0:
                    empty = False
                left[c] += here
                right[c] = totals[c] - left[c]
            if empty:
                continue
            left_score, left_hessian, left_count = _score_channels(
                left, n_outputs, layout, scales, l2
            )
            if left_count < min_count or left_hessian < min_hessian:
                continue
            right_score, right_hessian, right_count = _score_channels(
                right, n_outputs, layout, scales, l2
            )
            if right_count < min_count or right_hessian < min_hessian or right_count <= 0:
                break
            gain = left_score + right_score - parent
            if bounded:
                ordered = last < n_values
                for c in range(n_channels):
                    ordered |= right[c] != histogram[(base + missing_bin) * n_channels + c]
                asked = direction if ordered else 0
                gain = (
                    _bounded_gain(left, right, n_outputs, layout, scales, l2, asked, bounds)
                    - parent
                )
            if gain > best_gain:
                best_gain, best_bin, best_left = gain, b, missing_left
    return best_gain, best_bin, best_left
