"""Constraints that the children of a split inherit: bounds of their values, allowed columns."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.column_splits import bounded_score
from hilboost.engine.ops.cpu.criterion import LeafLimits
from hilboost.engine.ops.cpu.nodes import COLUMN, LEFT, RIGHT
from hilboost.engine.ops.cpu.packing import weight_of


class SplitConstraints(NamedTuple):
    """Constraints that nodes inherit from their ancestors."""

    allowed: NDArray[np.uint8]  # (d,) uint8: columns this tree may use
    # (n_nodes, 2, n_outputs) float64: least and greatest value below a node, ``bounds[0]`` filled;
    # (n_nodes, 0, 0) where no column has a direction
    bounds: NDArray[np.float64]
    # (n_groups + 1,) and flat, int64: columns that may meet on a path from the root; (0,) where all
    # may
    group_start: NDArray[np.int64]
    group_columns: NDArray[np.int64]
    # (n_nodes, d) uint8: columns split on above a node, ``used[0]`` zero; (0, d) where all may meet
    used: NDArray[np.uint8]


@compiled
def bound_children(node, direction, nodes, totals, rules, bounds):
    """Values below a split that has a direction stay on their side of the middle of both sides.

    ::

        node    lower [ ------------------------- ] upper
        left    lower [ -----l---- ] middle                    direction 1
        right               middle [ -----r------ ] upper

    nodes : NodeStore; totals : (n_nodes, n_channels) int64; rules : SplitRules
    bounds : (n_nodes, 2, n_outputs) float64, written at the children
    """
    keep_apart()
    left, right = nodes.fields[node, LEFT], nodes.fields[node, RIGHT]
    low, high = (left, right) if direction >= 0 else (right, left)
    packing = rules.packing
    n_left, n_right = weight_of(totals[left], packing), weight_of(totals[right], packing)
    for k in range(bounds.shape[2]):
        lower, upper = bounds[node, 0, k], bounds[node, 1, k]
        bounds[left, 0, k], bounds[left, 1, k] = lower, upper
        bounds[right, 0, k], bounds[right, 1, k] = lower, upper
        if direction != 0:
            limits = LeafLimits(rules.limits.criterion, lower, upper)
            left_value, _ = bounded_score(totals[left, k], n_left, packing, limits)
            right_value, _ = bounded_score(totals[right, k], n_right, packing, limits)
            middle = 0.5 * (left_value + right_value)
            bounds[low, 1, k] = middle
            bounds[high, 0, k] = middle


@compiled
def permit_columns(node, nodes, constraints, permitted):
    """Permit below a split what some group holds together with all columns used so far.

    nodes : NodeStore; constraints : SplitConstraints, ``used`` is written
    permitted : (d,) uint8, written
    """
    keep_apart()
    allowed, used = constraints.allowed, constraints.used
    group_start, group_columns = constraints.group_start, constraints.group_columns
    left, right = nodes.fields[node, LEFT], nodes.fields[node, RIGHT]
    column = nodes.fields[node, COLUMN]
    n_used = 0
    for f in range(allowed.shape[0]):
        here = np.int64(used[node, f]) | np.int64(f == column)
        used[left, f], used[right, f] = here, here
        n_used += here
        permitted[f] = 0
    for group in range(group_start.shape[0] - 1):
        n_shared = 0
        for i in range(group_start[group], group_start[group + 1]):
            n_shared += np.int64(used[left, group_columns[i]])
        if n_shared == n_used:
            for i in range(group_start[group], group_start[group + 1]):
                permitted[group_columns[i]] = allowed[group_columns[i]]
