"""Naive twins of :mod:`hilboost.backends.trees.next_root`."""

import numpy as np
from tests.reference.column_splits import unpack

from hilboost.backends.trees.histogram import STRIDE


def find_unexpected(expected, ordered, begin, end, found):
    steps = expected.steps.astype(np.int64)
    difference = ordered.astype(np.int64) - expected.before + steps[expected.leaf_at]
    places = begin + np.flatnonzero(difference[begin:end])
    if len(places) <= len(found):
        found[: len(places)] = np.column_stack([places, difference[places]])
    return len(places)


def write_root(thread, n_threads, table, steps, found, packing, slots):
    """Unpack each cell, and pack the sums again."""
    d, unit = len(table.n_values), packing._replace(gradient_step=1.0)
    before = slots.copy()
    for f in range(d * thread // n_threads, d * (thread + 1) // n_threads):
        for b in (*range(table.n_values[f]), table.n_bins - 1):
            gradient, count = 0, 0
            for slot, step in enumerate(steps):
                g, _, _ = unpack(before[slot, f * STRIDE + b], unit)
                c = int(before[slot, f * STRIDE + b]) & packing.count_mask
                gradient, count = gradient + int(g) - int(step) * c, count + c
            for position, difference in found:
                word = int(table.words[f // 8, position])
                gradient += int(difference) * ((word >> 8 * (f % 8)) & 255 == b)
            slots[0, f * STRIDE + b] = (gradient << packing.gradient_shift) + count
