"""Naive twins of :mod:`hilboost.engine.ops.cpu.leaves`."""

import numpy as np
from tests.reference.criterion import leaf_values
from tests.reference.exact_sums import add_values

from hilboost.backends.exact_sums import empty_sums
from hilboost.engine.ops.cpu.nodes import ARRAY
from hilboost.engine.ops.reference import curvature


def mark_leaves(thread, n_threads, of_leaves, offsets, leaf_of_row, leaf_at):
    nodes, leaves, _ = of_leaves
    for leaf in range(thread, len(leaves), n_threads):
        begin, end = nodes[leaves[leaf], :2]
        rows = of_leaves.rows[nodes[leaves[leaf], ARRAY]]
        if leaf_at is not None:
            leaf_at[rows[begin:end]] = leaf
        if len(offsets):
            here = rows[begin:end].astype(int)
            rows[begin:end] = here // 65536 * 65536 + offsets[here]
        leaf_of_row[rows[begin:end]] = leaf


def sum_leaves(thread, n_threads, of_leaves, learned, scratch, sums):
    nodes, leaves, rows = of_leaves
    gradients, hessians, weights, _, whole, logistic = learned
    for leaf in range(thread, len(leaves), n_threads):
        begin, end = nodes[leaves[leaf], :2]
        chosen = rows[nodes[leaves[leaf], ARRAY], begin:end]
        w = weights[chosen] if len(weights) else weights
        sums[:, leaf] = empty_sums(*sums[:, leaf].shape[:2])
        add_values(gradients[chosen], w, whole, sums[0, leaf])
        if hessians.shape[1]:
            add_values(curvature(hessians[chosen], logistic), w, whole, sums[1, leaf])
        elif len(weights):
            add_values(w[:, None], w[:0], whole, sums[1, leaf, :1])


def add_leaf_values(values, leaf_of_row, raw, first, begin, end):
    raw[begin:end, first : first + values.shape[1]] += values[leaf_of_row[begin:end]]


def unit_of_outputs(packing, total, fewest_rows):
    counts_rows = packing.count_step == 1 and packing.steps[1] == 0
    is_large = total & packing.count_mask >= fewest_rows
    return 2 * packing.steps[0] if counts_rows and is_large else 0.0


def steps_of_totals(rule, leaves, unit, values):
    if unit == 0:
        return False
    packing, totals = rule.packing, rule.totals[leaves]
    weights = totals & packing.count_mask
    gradients = (totals >> packing.gradient_shift) * packing.steps[0]
    bounds = None if rule.bounds is None else rule.bounds[leaves]
    leaf_values(gradients, weights, weights[:, 0], rule.criterion, bounds, values)
    return bool(np.median(np.abs(values)) >= 2048 * unit)


def round_values(unit, rate, values, multiples):
    if unit == 0:
        return False
    multiples[:] = np.rint(rate * values[:, 0] / unit)
    if np.median(np.abs(multiples)) < 128:
        return False
    values[:, 0] = multiples * unit / rate
    return True
