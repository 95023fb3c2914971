"""Loops that carry the histogram of the root from tree to tree, against their twins."""

import numpy as np
import pytest
from tests.reference import next_root as twin
from tests.twins import compared

from hilboost.engine.ops.cpu import next_root
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.column_splits import Packing
from hilboost.engine.ops.cpu.fixed_point import Compact
from hilboost.engine.ops.cpu.histogram import STRIDE, Histograms, OrderedRows
from hilboost.engine.ops.cpu.next_root import LeafSteps

seeded = pytest.mark.parametrize("seed", range(3))


@seeded
@pytest.mark.parametrize("room", [1, 5, 60])
@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize("compact", [Compact(0, 0, 20), Compact(16, 20, 41)])
def test_find_unexpected(seed, room, stay, compact):
    rng = np.random.default_rng(seed)
    n, bounds = 300, (-(2**30), 2**30)
    before = rng.integers(*bounds, size=n).astype(np.int32)
    leaves = LeafSteps(
        rng.integers(4, size=n).astype(np.uint8), rng.integers(-1000, 1000, size=4).astype(np.int32)
    )
    ordered = before.copy()
    ordered -= 0 if stay else leaves.steps[leaves.leaf_at]
    leaves = None if stay else leaves
    ordered[rng.choice(n, 8, replace=False)] += 1
    ordered[rng.choice(n, 8, replace=False)] = bounds[0]
    ordered[100:164] -= 1 if seed == 1 else 0  # more than there is room for
    for module, keep in compared(next_root, twin):
        positions, differences = np.zeros(room, np.uint32), np.zeros(room, np.int64)
        unexpected = OrderedRows(positions, differences)
        n_found = module.find_unexpected(before, leaves, compact, ordered, 20, 290, unexpected)
        keep(n_found, positions[: max(n_found, 0)], differences[: max(n_found, 0)])
    assert n_found == -1 if room < 60 or seed == 1 else n_found > 5


@seeded
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize("n_found", [0, 7])
def test_write_root(seed, n_threads, stay, n_found):
    rng = np.random.default_rng(seed)
    n, d, n_bins, n_leaves = 200, 21, 12, 4
    n_values = rng.integers(1, n_bins, size=d)
    words = np.zeros((3, n), dtype=np.uint64)
    bins = np.array([rng.choice([*range(k), n_bins - 1], n) for k in n_values])
    for f in range(d):
        words[f // 8] |= bins[f].astype(np.uint64) << np.uint64(8 * (f % 8))
    table = BinTable(words, words.view(np.uint8).reshape(-1), n_values, n_bins)
    packing = Packing(8, 0, 255, 8, 0.5, 0.0, 1.0, 1.0)
    before, leaf_at = rng.integers(-1000, 1000, size=n), rng.integers(n_leaves, size=n)
    steps = rng.integers(-300, 300, size=n_leaves)
    positions = rng.choice(n, n_found, replace=False).astype(np.uint32)
    changes = rng.integers(-9, 9, size=n_found)
    now = before.copy() if stay else before - steps[leaf_at]
    now[positions] += changes
    given = np.zeros((n_leaves + 1, d * STRIDE), dtype=np.int64)
    direct, kept = np.zeros((2, d * STRIDE), dtype=np.int64)
    for f in range(d):
        for leaf in range(n_leaves):
            here = leaf_at == leaf
            np.add.at(given[leaf], f * STRIDE + bins[f, here], (before[here] << 8) + 1)
        np.add.at(direct, f * STRIDE + bins[f], (now << 8) + 1)
        np.add.at(kept, f * STRIDE + bins[f], (before << 8) + 1)
    results = []
    for module in (next_root, twin):
        private = np.full((n_threads, 1, d * STRIDE), 99)
        histograms = Histograms(given.copy(), private, kept.copy())
        for thread in range(n_threads):
            of_leaves = None if stay else np.column_stack([np.arange(n_leaves), steps])
            found = OrderedRows(positions, changes << 8)
            module.write_root(thread, n_threads, table, of_leaves, packing, found, histograms)
        results.append((histograms.slots[0], histograms.kept))
    own = np.zeros(d * STRIDE, dtype=bool)  # the cells of bins that there are
    for f in range(d):
        own[f * STRIDE : f * STRIDE + n_values[f]] = own[f * STRIDE + n_bins - 1] = True
    for root, copy in results:
        np.testing.assert_array_equal(root[own], direct[own])
        np.testing.assert_array_equal(copy[own], (direct if stay else kept)[own])
