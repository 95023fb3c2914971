"""Naive twins of :mod:`hilboost.backends.exact_sums`, in rational numbers."""

from fractions import Fraction

import numpy as np

EMPTY = [0, 0, 0, 0, -33]


def value_of(total):
    """The value of a sum (5,)."""
    units = [Fraction(2) ** (31 * (int(total[4]) - limb)) for limb in range(4)]
    return sum(int(total[limb]) * units[limb] for limb in range(4))


def top_of(addends):
    """The lowest top above -34 for which every addend is less than half of the next unit."""
    largest, top = max(map(abs, addends), default=0), -33
    while largest >= Fraction(2) ** (31 * (top + 1)) / 2:
        top += 1
    return top


def sum_of(values, repeats, top):
    """Each value rounded to a multiple of the lowest unit, ties to even, and then repeated."""
    units = np.rint(np.ldexp(values, -31 * (top - 3)))  # exact
    return sum(n * int(unit) for unit, n in zip(units.tolist(), repeats, strict=True))


def add_numbers(values, weights, whole, total):
    """Add to an empty sum."""
    assert list(total) == EMPTY
    repeats = np.ones(len(values))
    if len(weights):
        values, repeats = (values, weights) if whole else (values * weights, repeats)
    total[4] = top_of(values.tolist())
    number = sum_of(values, [int(n) for n in repeats], int(total[4]))
    for limb in (3, 2, 1):
        total[limb], number = number % 2**31, number >> 31
    total[0] = number


def add_to_groups(groups, values, weights, whole, sums):
    for k in range(len(sums)):
        here = groups == k
        add_numbers(values[here], weights[here] if len(weights) else weights, whole, sums[k])


def add_values(values, weights, whole, sums):
    for k in range(values.shape[1]):
        add_numbers(values[:, k], weights, whole, sums[k])


def merge_sums(sums, others):
    for total, other in zip(sums, others, strict=True):
        top = max(int(total[4]), int(other[4]))
        limbs = np.zeros(4, dtype=np.int64)
        for part in (total, other):
            below = top - int(part[4])
            limbs[below:] += part[: max(4 - below, 0)]
        total[:4], total[4] = limbs, top


def round_sums(sums, result):
    for i, total in enumerate(sums):
        value = value_of(total)
        try:
            result[i] = float(value)
        except OverflowError:
            result[i] = np.inf if value > 0 else -np.inf


def prefix_sums(values, weights, whole, starts, total, result):
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        for i in range(begin, end):
            before = np.array([EMPTY])
            w = weights[begin:i] if len(weights) else weights
            add_numbers(values[begin:i], w, whole, before[0])
            round_sums(before, result[i : i + 1])
