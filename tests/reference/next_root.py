"""Naive twins of :mod:`hilboost.engine.ops.cpu.next_root`."""

from tests.reference.column_splits import unpack
from tests.reference.fixed_point import in_64_bits

from hilboost.engine.ops.cpu.histogram import STRIDE


def find_unexpected(before, leaves, compact, ordered, begin, end, unexpected):
    positions, differences = unexpected
    found = []
    for i in range(begin, end):
        then = int(before[i])
        if leaves is not None:
            then -= int(leaves.steps[leaves.leaf_at[i]])
        if int(ordered[i]) != then:
            found.append((i, in_64_bits(int(ordered[i]), compact) - in_64_bits(then, compact)))
    if len(found) >= len(positions):
        return -1
    for place, (i, difference) in enumerate(found):
        positions[place], differences[place] = i, difference
    return len(found)


def write_root(part, n_parts, table, steps, packing, unexpected, histograms):
    """Add up each cell; unpack those of leaves, and pack the sums again."""
    n_words, d = len(table.words), len(table.n_values)
    unit = packing._replace(gradient_step=1.0)
    slots, kept = histograms.slots.copy(), histograms.kept
    for f in range(d):
        if not n_words * part // n_parts <= f // 8 < n_words * (part + 1) // n_parts:
            continue
        for b in (*range(table.n_values[f]), table.n_bins - 1):
            cell = f * STRIDE + b
            if steps is None:
                root = int(kept[cell])
            else:
                gradient, count = 0, 0
                for slot, step in steps:
                    g, _, _ = unpack(slots[slot, cell], unit)
                    c = int(slots[slot, cell]) & packing.count_mask
                    gradient, count = gradient + int(g) - int(step) * c, count + c
                root = (gradient << packing.gradient_shift) + count
            for position, difference in zip(unexpected.rows, unexpected.gradients, strict=True):
                word = int(table.words[f // 8, position])
                root += int(difference) * ((word >> 8 * (f % 8)) & 255 == b)
            histograms.slots[0, cell] = root
            if steps is None:
                kept[cell] = root
