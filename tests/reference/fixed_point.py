"""Naive twins of :mod:`hilboost.backends.fixed_point`."""

import numpy as np


def _chosen(weights, rows, begin, end):
    chosen = rows[begin:end] if len(rows) else np.arange(begin, end)
    return chosen, weights[chosen] if len(weights) else np.ones(len(chosen))


def absolute_sums(gradients, hessians, weights, rows, begin, end):
    chosen, w = _chosen(weights, rows, begin, end)
    sum_g = (w[:, None] * np.abs(gradients[chosen])).sum(axis=0).max()
    sum_h = (w[:, None] * hessians[chosen]).sum(axis=0).max(initial=0.0)
    return sum_g, sum_h, w.sum()


def pack_gradients(
    gradients,
    hessians,
    weights,
    rows,
    begin,
    end,
    layout,
    factors,
    whole,
    salt,
    count_channel,
    packed,
    ordered,
):
    hessian_shift, _, count_mask, gradient_shift = (int(x) for x in layout)
    chosen, w = _chosen(weights, rows, begin, end)
    n_outputs = gradients.shape[1]

    def rounded(value, weight, factor):
        scaled = value * factor
        return int(np.rint(weight * (np.rint(scaled) if whole else scaled)))

    for i, (row, weight) in enumerate(zip(chosen, w, strict=True), start=begin):
        count = int(np.rint(weight * factors[2]))
        for k in range(n_outputs):
            value = rounded(gradients[row, k], weight, factors[0]) * 2**gradient_shift
            if hessians.shape[1]:
                value += rounded(hessians[row, k], weight, factors[1]) * 2**hessian_shift
            if count_mask:
                value += count
            if packed.shape[1] == 1:
                ordered[i] = value
            else:
                packed[row, k] = value
        if count_channel:
            packed[row, n_outputs] = count


def pack_one(gradients, hessians, begin, end, layout, factors, salt, ordered):
    nothing = np.empty(0)
    pack_gradients(
        gradients,
        hessians,
        nothing,
        nothing,
        begin,
        end,
        layout,
        np.array([factors[0], factors[1], 1.0]),
        True,
        salt,
        False,
        np.empty((0, 1)),
        ordered,
    )


def packed_sums(packed, ordered, rows, totals):
    totals[:] = ordered.sum() if packed.shape[1] == 1 else packed[rows].sum(axis=0)
