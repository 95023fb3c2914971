"""Leaf values in whole units of the gradients, for squared error with many rows.

Gradients then change by whole steps of their integers from stage to stage, and packed sums have
enough digits for the Newton steps.
"""

import numpy as np

from hilboost.backends.compiled import compiled, inner
from hilboost.engine.ops.cpu.criterion import leaf_value

_LEAST_MULTIPLE = 128
"""Half of the leaves add at least so many units, or else all digits."""
_LEAST_STEP = 2**11
"""In units, of half of the leaves, from which on sums of rounded gradients suffice."""


@inner
def _median_reaches(bound, numbers):
    """Whether the median of the magnitudes of some numbers is at least a bound."""
    n, n_above, below, above = numbers.shape[0], 0, 0.0, np.inf
    for i in range(n):
        magnitude = abs(numbers[i])
        if magnitude >= bound:
            n_above += 1
            above = min(above, magnitude)
        else:
            below = max(below, magnitude)
    if 2 * n_above == n:
        return (below + above) / 2 >= bound
    return 2 * n_above > n


@compiled
def unit_of_outputs(packing, total, fewest_rows):
    """The unit to multiples of which outputs may be rounded, or 0 if there are few rows.

    An even number of steps of the gradients: halves are rounded to the nearest even integer, and
    remain halves of the same parity.

    packing : Packing; total : int64, packed sum of the root; fewest_rows : float64, their weight
    """
    counts_rows = packing.count_step == 1.0 and packing.hessian_step == 0.0
    if not counts_rows or (total & packing.count_mask) < fewest_rows:
        return 0.0
    return 2.0 * packing.gradient_step


@compiled
def steps_of_totals(packing, leaves, totals, l2, unit, values):
    """Write the Newton steps of leaves from their packed sums; False if these are too coarse.

    The sums add gradients rounded to multiples of ``unit / 2``, or ``unit`` is 0.
    They are too coarse if the steps of half of the leaves are not much larger.

    packing : Packing, with counts of rows; leaves : (n_leaves,) int64, nodes
    totals : (n_nodes, 1) int64; values : (n_leaves, 1) float64, written
    """
    if unit == 0.0:
        return False
    for leaf in range(leaves.shape[0]):
        total = totals[leaves[leaf], 0]
        gradient = (total >> packing.gradient_shift) * packing.gradient_step
        values[leaf, 0] = leaf_value(gradient, np.float64(total & packing.count_mask), l2)
    return _median_reaches(_LEAST_STEP * unit, values[:, 0])


@compiled
def round_values(unit, rate, values, multiples):
    """Round what leaves add at this rate to whole units; False if that is too little.

    values : (n_leaves, 1) float64, replaced; multiples : (n_leaves,) float64, written
    """
    if unit == 0.0:
        return False
    for leaf in range(values.shape[0]):
        multiples[leaf] = np.rint(rate * values[leaf, 0] / unit)
    if not _median_reaches(_LEAST_MULTIPLE, multiples):
        return False
    for leaf in range(values.shape[0]):
        values[leaf, 0] = multiples[leaf] * unit / rate
    return True
