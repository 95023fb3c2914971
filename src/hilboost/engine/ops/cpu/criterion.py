"""The value of a leaf and the gain of a split, from sums over their rows.

``gradient`` is the sum ``G`` of negative gradients, ``hessian`` the sum ``H`` of hessians.  A leaf
of value ``w`` reduces twice the quadratic loss by ``w (2 G - (H + l2) w)``::

    value    G / (H + l2)     the Newton step, which reduces the loss most
    score    G² / (H + l2)    by how much
    gain     scores of both sides - score of the node

Splits and leaves use these functions; the twins: :mod:`hilboost.engine.ops.reference.criterion`.
"""

from hilboost.backends.compiled import compiled, tiny


@tiny
def leaf_value(gradient, hessian, l2):
    """The Newton step; 0 where the hessians vanish."""
    bottom = hessian + l2
    return gradient / bottom if bottom > 0.0 else 0.0


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
def split_gain(sides, parent, left_count, right_count):
    """The gain of a split from the sum of both sides' scores and the score of the node.

    The weights of the rows of both sides do not matter to this gain; they may to another one.
    """
    return sides - parent


@compiled
def leaf_values(gradients, hessians, l2, values):
    """Write the values (n_leaves, r) of leaves; ``hessians`` may have one column for all."""
    last = hessians.shape[1] - 1
    for leaf in range(values.shape[0]):
        for k in range(values.shape[1]):
            values[leaf, k] = leaf_value(gradients[leaf, k], hessians[leaf, min(k, last)], l2)
