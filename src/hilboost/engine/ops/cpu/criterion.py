"""The value of a leaf and the gain of a split, from sums over their rows.

``gradient`` is the sum ``G`` of negative gradients, ``hessian`` the sum ``H`` of hessians.  A leaf
of value ``w`` reduces twice the quadratic loss by ``w (2 G - (H + l2) w)``::

    value    G / (H + l2)     the Newton step, which reduces the loss most
    score    G² / (H + l2)    by how much
    gain     scores of both sides - score of the node

Splits and leaves use these functions; the twins: :mod:`hilboost.engine.ops.reference.criterion`.
Values and gains of other rules may depend on the weight of the rows, too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny


class Criterion(NamedTuple):
    """Parameters of leaf values and gains."""

    l2: float  # added to the hessian


def criterion_of(l2: float) -> Criterion:
    """Return the criterion of these parameters, whose types compiled code relies on."""
    return Criterion(float(l2))


class LeafSums(NamedTuple):
    """Sums over the rows of a leaf, or of several leaves."""

    gradient: float | NDArray[np.float64]
    hessian: float | NDArray[np.float64]
    weight: float | NDArray[np.float64]


class LeafLimits(NamedTuple):
    """Parameters and bounds of the value of a leaf."""

    criterion: Criterion
    lower: float  # least and greatest value below splits of columns that have a direction
    upper: float


@tiny
def with_l2(criterion, l2):
    """The same criterion with another ``l2``."""
    return Criterion(l2)


@tiny
def leaf_value(sums, criterion):
    """The Newton step, 0 where the hessians vanish."""
    bottom = sums.hessian + criterion.l2
    return sums.gradient / bottom if bottom > 0.0 else 0.0


@tiny
def value_within(sums, limits):
    """The value of a leaf, or the bound that it exceeds."""
    return min(max(leaf_value(sums, limits.criterion), limits.lower), limits.upper)


@tiny
def score_of_value(value, sums, criterion):
    """By how much any value reduces twice the quadratic loss."""
    return value * (2.0 * sums.gradient - (sums.hessian + criterion.l2) * value)


@tiny
def leaf_score(sums, criterion):
    """By how much the value of a leaf does; 0 without hessians."""
    gradient, hessian = sums.gradient, sums.hessian
    return gradient * gradient / (hessian + criterion.l2) if hessian > 0.0 else 0.0


@tiny
def score_of_sides(left, right, criterion):
    """The sum of two scores by one division; ``-inf`` where the hessians of a side vanish."""
    a, c = left.hessian + criterion.l2, right.hessian + criterion.l2
    top = left.gradient * left.gradient * c + right.gradient * right.gradient * a
    return top / (a * c) if a * c > 0.0 else -np.inf


@tiny
def split_gain(sides, parent, left_weight, right_weight, criterion):
    """The gain of a split from the sum of both sides' scores and the score of the node."""
    return sides - parent


@inner
def limits_of(node, output, criterion, bounds):
    """The limits of the value of a node.

    ``bounds``: (n_nodes, 2, n_outputs) float64, or (n_nodes, 0, 0) or ``None`` without any.
    """
    lower, upper = -np.inf, np.inf
    if bounds is not None and bounds.shape[1] > 0:
        lower, upper = bounds[node, 0, output], bounds[node, 1, output]
    return LeafLimits(criterion, lower, upper)


@compiled
def leaf_values(gradients, hessians, weights, criterion, bounds, values):
    """Write the values (n_leaves, r) of leaves; ``hessians`` may have one column for all.

    ``weights``: (n_leaves,) float64. ``bounds``: as in :func:`limits_of`, of the leaves.
    """
    last = hessians.shape[1] - 1
    for leaf in range(values.shape[0]):
        for k in range(values.shape[1]):
            sums = LeafSums(gradients[leaf, k], hessians[leaf, min(k, last)], weights[leaf])
            values[leaf, k] = value_within(sums, limits_of(leaf, k, criterion, bounds))
