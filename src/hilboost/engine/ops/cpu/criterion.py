"""The value of a leaf and the gain of a split, from sums over their rows.

``gradient`` is the sum ``G`` of negative gradients, ``hessian`` the sum ``H`` of hessians.  A leaf
of value ``w`` reduces twice the quadratic loss by ``w (2 G - (H + l2) w)``; without bounds::

    value    G / (H + l2)     the Newton step, which reduces the loss most
    score    G² / (H + l2)    by how much
    gain     scores of both sides - score of the node

Splits and leaves use these functions; the twins: :mod:`hilboost.engine.ops.reference.criterion`.
"""

from typing import NamedTuple

import numpy as np

from hilboost.backends.compiled import compiled, inner, tiny


class LeafLimits(NamedTuple):
    """Limits of the value of a leaf."""

    l2: float  # added to the hessian
    lower: float  # least and greatest value below splits of columns that have a direction
    upper: float  # least and greatest value below splits of columns that have a direction


@tiny
def leaf_value(gradient, hessian, weight, limits):
    """The Newton step, 0 where the hessians vanish, or the bound that it exceeds.

    It does not depend on the weight of the rows; another rule may.
    """
    bottom = hessian + limits.l2
    return min(max(gradient / bottom if bottom > 0.0 else 0.0, limits.lower), limits.upper)


@inner
def limits_of(node, output, l2, bounds):
    """The limits of the value of a node.

    ``bounds``: (n_nodes, 2, n_outputs) float64, or (n_nodes, 0, 0) or ``None`` without any.
    """
    lower, upper = -np.inf, np.inf
    if bounds is not None and bounds.shape[1] > 0:
        lower, upper = bounds[node, 0, output], bounds[node, 1, output]
    return LeafLimits(l2, lower, upper)


@tiny
def score_of_value(value, gradient, hessian, l2):
    """By how much any value reduces twice the quadratic loss."""
    return value * (2.0 * gradient - (hessian + l2) * value)


@tiny
def leaf_score(gradient, hessian, l2):
    """By how much the Newton step does; 0 without hessians."""
    return gradient * gradient / (hessian + l2) if hessian > 0.0 else 0.0


@tiny
def score_of_sides(left_gradient, left_hessian, right_gradient, right_hessian, l2):
    """The sum of two scores by one division; not finite where the hessians of a side vanish."""
    a, c = left_hessian + l2, right_hessian + l2
    return (left_gradient * left_gradient * c + right_gradient * right_gradient * a) / (a * c)


@tiny
def split_gain(sides, parent, left_weight, right_weight):
    """The gain of a split from the sum of both sides' scores and the score of the node.

    It does not depend on the weights of the rows of both sides; another criterion may.
    """
    return sides - parent


@compiled
def leaf_values(gradients, hessians, weights, l2, bounds, values):
    """Write the values (n_leaves, r) of leaves; ``hessians`` may have one column for all.

    ``weights``: (n_leaves,) float64. ``bounds``: as in :func:`limits_of`, of the leaves.
    """
    last = hessians.shape[1] - 1
    for leaf in range(values.shape[0]):
        for k in range(values.shape[1]):
            hessian, limits = hessians[leaf, min(k, last)], limits_of(leaf, k, l2, bounds)
            values[leaf, k] = leaf_value(gradients[leaf, k], hessian, weights[leaf], limits)
