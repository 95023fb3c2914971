"""How packed sums are read.

A packed gradient holds up to three integers, ``gradient | hessian | count`` from the highest bits
to the lowest; :class:`Packing` says where, and turns the integers into numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import tiny


class Packing(NamedTuple):
    """How to read packed gradients."""

    hessian_shift: int  # the lowest bit of the hessian
    hessian_mask: int  # its bits, once shifted; 0 where there are none
    count_mask: int  # the bits of the count, which are the lowest; 0 where there are none
    gradient_shift: int  # the lowest bit of the gradient
    hessian_of_count: float  # Hessian of one unit of the count, where hessians are constant; else 0
    count_step: float  # what one unit of the integers stands for
    # (2,) float64: what one unit stands for in gradients and in hessians (0 where constant); trees
    # that are grown one after the other write their own
    steps: NDArray[np.float64]

    def is_like(self, other: Packing) -> bool:
        """Return whether the integers of both mean the same."""
        return self[:-1] == other[:-1] and np.array_equal(self.steps, other.steps)


@tiny
def unpack(value, packing):
    """``(G, H, count)`` of a packed sum, the count still in steps."""
    count = value & packing.count_mask
    hessian = ((value >> packing.hessian_shift) & packing.hessian_mask) * packing.steps[
        1
    ] + count * packing.hessian_of_count
    gradient = (value >> packing.gradient_shift) * packing.steps[0]
    return gradient, hessian, count


@tiny
def count_bits(sums, packing):
    """The weight in sums (n_channels,), in steps."""
    of_count = 0 if packing.count_mask != 0 else sums.shape[0] - 1
    mask = packing.count_mask if packing.count_mask != 0 else -1
    return sums[of_count] & mask


@tiny
def weight_of(sums, packing):
    """The weight in sums (n_channels,)."""
    return count_bits(sums, packing) * packing.count_step
