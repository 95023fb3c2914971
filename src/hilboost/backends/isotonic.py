"""Values of leaves in the order that a tree's directed splits set among them.

Every leaf on the lower side of a directed split lies below every leaf on its upper side; the sides
of other splits are free of each other.
"""

import numpy as np

from hilboost.backends.compiled import allocating


@allocating
def _meeting_point(low, low_weights, high, high_weights):
    """Where ``low``, cut from above, and ``high``, raised from below, meet at the least expense.

    The zero of the falling ``sum(w (low - m)+) - sum(w (m - high)+)``, found by walking its corners
    upwards: low values drop out of the pool, high values join it.
    """
    n_low = low.shape[0]
    values = np.concatenate((low, high))
    weights = np.concatenate((low_weights, high_weights))
    pool_weight, pool_sum = low_weights.sum(), (low_weights * low).sum()
    corners = np.argsort(values)
    middle = values[corners[0]]
    for i in range(corners.shape[0]):
        corner = corners[i]
        if pool_weight > 0.0 and pool_sum <= pool_weight * values[corner]:
            return min(max(pool_sum / pool_weight, middle), values[corner])
        middle = values[corner]
        sign = -1.0 if corner < n_low else 1.0
        pool_weight += sign * weights[corner]
        pool_sum += sign * weights[corner] * values[corner]
    return middle


@allocating
def nearest_in_order(children, leaf_number, directions, weights, values):
    r"""Move ``values`` to the nearest ones in order: isotonic regression on the order of a tree.

    ::

                 x0 > 1, direction 1        leaves  0 1 2, in order where
                 /     \                            v0 <= v1 and v0 <= v2
            leaf 0    x1 > 5, no direction  3 1 5  -> 2 2 5
                      /    \
                  leaf 1  leaf 2

    ``children``: (n_nodes,) int32, the left child, behind its parent; a leaf is its own.
    ``leaf_number``: (n_nodes,) int32. ``directions``: (n_nodes,) int64, 1 where the left side is
    the lower one, -1 where the right one is. ``weights``: (n_leaves,) float64, positive.
    ``values``: (n_leaves,) float64, changed.

    Notes
    -----
    Where every value of one set lies below every value of another, the nearest values are those of
    both sets by themselves, cut at one point.  So the tree is walked from the leaves up, and values
    are moved only where the two sides of a split overlap.  Cost O(n_leaves log(n_leaves) depth).
    The result is in order exactly, whatever the rounding.
    """
    n_nodes, n_leaves = children.shape[0], values.shape[0]
    first = np.zeros(n_nodes, np.int64)
    size = np.ones(n_nodes, np.int64)
    for node in range(n_nodes - 1, -1, -1):
        child = children[node]
        if child != node:
            size[node] = size[child] + size[child + 1]
    leaves = np.empty(n_leaves, np.int64)  # from left to right
    for node in range(n_nodes):
        child = children[node]
        if child != node:
            first[child] = first[node]
            first[child + 1] = first[node] + size[child]
        else:
            leaves[first[node]] = leaf_number[node]
    for node in range(n_nodes - 1, -1, -1):
        if directions[node] == 0:
            continue
        low = children[node] + (0 if directions[node] > 0 else 1)
        high = children[node] + (1 if directions[node] > 0 else 0)
        below = leaves[first[low] : first[low] + size[low]]
        above = leaves[first[high] : first[high] + size[high]]
        bottom, top = values[above].min(), values[below].max()
        if top <= bottom:
            continue
        below, above = below[values[below] > bottom], above[values[above] < top]
        middle = _meeting_point(values[below], weights[below], values[above], weights[above])
        for leaf in below:
            values[leaf] = min(values[leaf], middle)
        for leaf in above:
            values[leaf] = max(values[leaf], middle)
