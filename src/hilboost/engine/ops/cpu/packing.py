"""How packed sums are read.

A packed gradient holds up to three integers, ``gradient | hessian | count`` from the highest bits
to the lowest; :class:`Packing` says where, and turns the integers into numbers.
"""

from typing import NamedTuple

from hilboost.backends.compiled import tiny


class Packing(NamedTuple):
    """How to read packed gradients."""

    hessian_shift: int  # the lowest bit of either
    hessian_mask: int  # their bits, before shifting; 0 where there are none
    count_mask: int  # their bits, before shifting; 0 where there are none
    gradient_shift: int  # the lowest bit of either
    gradient_step: float  # what one unit of the integers stands for
    hessian_step: float  # what one unit of the integers stands for
    hessian_of_count: float  # Hessian of one unit of the count, where hessians are constant; else 0
    count_step: float  # what one unit of the integers stands for


@tiny
def unpack(value, packing):
    """``(G, H, count)`` of a packed sum, the count still in steps."""
    count = value & packing.count_mask
    hessian = (
        (value >> packing.hessian_shift) & packing.hessian_mask
    ) * packing.hessian_step + count * packing.hessian_of_count
    gradient = (value >> packing.gradient_shift) * packing.gradient_step
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
