"""What the children of a split inherit: bounds of their values, columns they may be split on."""

from hilboost.backends.compiled import compiled
from hilboost.backends.nodes import COLUMN, LEFT, RIGHT
from hilboost.backends.split import bounded_score
from hilboost.backends.sync import keep_apart


@compiled
def bound_children(node, direction, n_outputs, nodes, totals, layout, scales, l2, bounds):
    """Values below a split that has a direction stay on their side of the middle of both sides.

    ::

        node    lower [ ------------------------- ] upper
        left    lower [ -----l---- ] middle                    direction 1
        right               middle [ -----r------ ] upper
    """
    keep_apart()
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    low, high = (left, right) if direction >= 0 else (right, left)
    for k in range(n_outputs):
        lower, upper = bounds[node, 0, k], bounds[node, 1, k]
        bounds[left, 0, k], bounds[left, 1, k] = lower, upper
        bounds[right, 0, k], bounds[right, 1, k] = lower, upper
        if direction != 0:
            left_value, _ = bounded_score(totals[left, k], layout, scales, l2, lower, upper)
            right_value, _ = bounded_score(totals[right, k], layout, scales, l2, lower, upper)
            middle = 0.5 * (left_value + right_value)
            bounds[low, 1, k] = middle
            bounds[high, 0, k] = middle


@compiled
def permit_columns(node, nodes, allowed, group_start, group_columns, used, permitted):
    """Permit below a split what some group holds together with all columns used so far."""
    keep_apart()
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    n_used = 0
    for f in range(allowed.shape[0]):
        here = used[node, f] | (f == nodes[node, COLUMN])
        used[left, f], used[right, f] = here, here
        n_used += here
        permitted[f] = 0
    for group in range(group_start.shape[0] - 1):
        n_shared = 0
        for i in range(group_start[group], group_start[group + 1]):
            n_shared += used[left, group_columns[i]]
        if n_shared == n_used:
            for i in range(group_start[group], group_start[group + 1]):
                permitted[group_columns[i]] = allowed[group_columns[i]]
