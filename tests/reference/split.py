"""Naive twins of :mod:`hilboost.backends.split`: every cut is tried, in Python integers."""

import math

NO_GAIN = -math.inf


def _unpack(value, layout, scales):
    """Gradient, hessian and count of a packed sum."""
    hessian_shift, hessian_mask, count_mask, gradient_shift = (int(x) for x in layout)
    count = value & count_mask
    hessian = ((value >> hessian_shift) & hessian_mask) * float(scales[1]) + count * float(
        scales[2]
    )
    return (value >> gradient_shift) * float(scales[0]), hessian, count * float(scales[3])


def score(value, layout, scales, l2):
    gradient, hessian, count = _unpack(int(value), layout, scales)
    if hessian <= 0:
        return 0.0, 0.0, count
    return gradient * gradient / (hessian + l2), hessian, count


def bounded_score(value, layout, scales, l2, lower, upper):
    gradient, hessian, _ = _unpack(int(value), layout, scales)
    if hessian <= 0:
        return min(max(0.0, lower), upper), 0.0
    step = min(max(gradient / (hessian + l2), lower), upper)
    return step, step * (2 * gradient - (hessian + l2) * step)


def _gain_in_bounds(left, right, whole, layout, scales, l2, direction, bounds):
    """By the outputs' values on both sides, which must not be out of order."""
    gain, parent = 0.0, 0.0
    for k, (lower, upper) in enumerate(zip(*bounds, strict=True)):
        scores = [
            bounded_score(sums[k], layout, scales, l2, lower, upper)
            for sums in (left, right, whole)
        ]
        if direction * (scores[1][0] - scores[0][0]) < 0:
            return NO_GAIN
        gain += scores[0][1] + scores[1][1]
        parent += scores[2][1]
    return gain - parent


def cuts(histogram, base, n_values, missing_bin, n_channels):
    """(bin, missing_left, sums of the left side) of every cut, in the order of preference."""
    column = [
        [int(histogram[(base + b) * n_channels + c]) for c in range(n_channels)]
        for b in range(missing_bin + 1)
    ]
    some_missing = any(column[missing_bin])
    for missing_left in (0, 1) if some_missing else (0,):
        last = n_values if some_missing and not missing_left else n_values - 1
        for cut in range(last):
            if any(column[cut]):
                members = column[: cut + 1] + ([column[missing_bin]] if missing_left else [])
                yield cut, missing_left, [sum(channel) for channel in zip(*members, strict=True)]


def _is_missing_against_all(right, histogram, base, missing_bin):
    begin = (base + missing_bin) * len(right)
    return right == histogram[begin : begin + len(right)].tolist()


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
    l2, min_count, min_hessian, _ = (float(x) for x in limits)
    parent = score(total, layout, scales, l2)[0]
    best = NO_GAIN, 0, 0
    for cut, missing_left, (left,) in cuts(histogram, base, n_values, missing_bin, 1):
        left_g, left_h, left_c = _unpack(left, layout, scales)
        right_g, right_h, right_c = _unpack(int(total) - left, layout, scales)
        a, c = left_h + l2, right_h + l2
        if (
            min(left_c, right_c) < min_count
            or min(left_c, right_c) <= 0
            or min(left_h, right_h) < min_hessian
            or a * c <= 0
        ):
            continue
        gain = (left_g * left_g * c + right_g * right_g * a) / (a * c) - parent
        if len(bounds):
            right = [int(total) - left]
            asked = 0 if _is_missing_against_all(right, histogram, base, missing_bin) else direction
            gain = _gain_in_bounds([left], right, [total], layout, scales, l2, asked, bounds)
        if gain > best[0]:
            best = gain, cut, missing_left
    return best


def _score_channels(sums, n_outputs, layout, scales, l2):
    parts = [score(value, layout, scales, l2) for value in sums[:n_outputs]]
    count = sums[n_outputs] * float(scales[3]) if len(sums) > n_outputs else parts[0][2]
    return sum(p[0] for p in parts), sum(p[1] for p in parts), count


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
    l2, min_count, min_hessian, _ = (float(x) for x in limits)
    whole = [int(t) for t in totals]
    parent = _score_channels(whole, n_outputs, layout, scales, l2)[0]
    best = NO_GAIN, 0, 0
    for cut, missing_left, left in cuts(histogram, base, n_values, missing_bin, len(whole)):
        right = [t - x for t, x in zip(whole, left, strict=True)]
        left_score, left_h, left_c = _score_channels(left, n_outputs, layout, scales, l2)
        right_score, right_h, right_c = _score_channels(right, n_outputs, layout, scales, l2)
        if min(left_c, right_c) < min_count or min(left_h, right_h) < min_hessian or right_c <= 0:
            continue
        gain = left_score + right_score - parent
        if len(bounds):
            asked = 0 if _is_missing_against_all(right, histogram, base, missing_bin) else direction
            gain = _gain_in_bounds(left, right, whole, layout, scales, l2, asked, bounds)
        if gain > best[0]:
            best = gain, cut, missing_left
    return best
