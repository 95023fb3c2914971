"""Naive twins of :mod:`hilboost.engine.ops.cpu.split_constraints`."""

import numpy as np
from tests.reference.column_splits import bounded_score

from hilboost.engine.ops.cpu.criterion import LeafLimits
from hilboost.engine.ops.cpu.nodes import COLUMN, LEFT, RIGHT


def bound_children(node, direction, nodes, totals, rules, bounds):
    children = nodes.fields[node, [LEFT, RIGHT]]
    bounds[children] = bounds[node]
    packing = rules.packing
    for k in range(bounds.shape[2] if direction else 0):
        limits = LeafLimits(rules.limits.criterion, *bounds[node, :, k])
        weights = (totals[children, 0] & packing.count_mask) * packing.count_step
        left, right = (
            bounded_score(totals[child, k], weight, packing, limits)[0]
            for child, weight in zip(children, weights, strict=True)
        )
        low, high = children[::direction]
        bounds[low, 1, k] = bounds[high, 0, k] = 0.5 * (left + right)


def permit_columns(node, nodes, constraints, permitted):
    allowed, _, group_start, group_columns, used = constraints
    children = nodes.fields[node, [LEFT, RIGHT]]
    used[children] = used[node]
    used[children, nodes.fields[node, COLUMN]] = 1
    path = set(np.flatnonzero(used[children[0]]))
    groups = [
        set(group_columns[first:last])
        for first, last in zip(group_start[:-1], group_start[1:], strict=True)
    ]
    together = set().union(*(group for group in groups if path <= group))
    permitted[:] = [allowed[f] if f in together else 0 for f in range(len(allowed))]
