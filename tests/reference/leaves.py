"""Naive twins of :mod:`hilboost.engine.ops.cpu.leaves`."""

import numpy as np
from tests.reference.exact_sums import add_values
from tests.reference.fixed_point import curvature

from hilboost.backends.exact_sums import empty_sums, rounded
from hilboost.engine.ops.reference import leaf_value


def mark_leaves(thread, n_threads, nodes, leaves, rows, offsets, leaf_of_row, leaf_at):
    for leaf in range(thread, len(leaves), n_threads):
        begin, end = nodes[leaves[leaf], :2]
        if leaf_at is not None:
            leaf_at[rows[begin:end]] = leaf
        if offsets is not None:
            here = rows[begin:end].astype(int)
            rows[begin:end] = here // 65536 * 65536 + offsets[here]
        leaf_of_row[rows[begin:end]] = leaf


def leaf_sums(
    thread, n_threads, nodes, leaves, rows, values, weights, whole, scratch, sums, both, curved
):
    for leaf in range(thread, len(leaves), n_threads):
        begin, end = nodes[leaves[leaf], :2]
        chosen = rows[begin:end]
        w = weights[chosen, 0] if len(weights) else weights[:, 0]
        add_values(values[chosen], w, whole, sums[leaf])
        if both:
            add_values(curvature(values[chosen], True), w, whole, curved[leaf])


def newton_leaves(thread, n_threads, nodes, leaves, rows, learned, scratch, sums, values):
    gradients, hessians, weights, ones, whole, l2, logistic = learned
    hessians = curvature(hessians, logistic)
    if not hessians.shape[1]:
        hessians = np.ones_like(gradients)
    mine = leaves[thread::n_threads]
    found = []
    for numbers in (gradients, hessians):
        sums = empty_sums(len(mine), numbers.shape[1])
        leaf_sums(0, 1, nodes, mine, rows, numbers, weights, whole, scratch, sums, False, sums)
        found.append(rounded(sums))
    values[thread::n_threads] = leaf_value(found[0], found[1], l2)


def add_leaf_values(values, leaf_of_row, raw, first, begin, end):
    raw[begin:end, first : first + values.shape[1]] += values[leaf_of_row[begin:end]]
