"""Loops that carry the histogram of the root from tree to tree, against their twins."""

import numpy as np
import pytest
from tests.reference import next_root as twin

from hilboost.backends.trees import next_root
from hilboost.backends.trees.binning import BinTable
from hilboost.backends.trees.column_splits import Packing
from hilboost.backends.trees.histogram import STRIDE
from hilboost.backends.trees.next_root import ExpectedGradients

seeded = pytest.mark.parametrize("seed", range(3))


@seeded
@pytest.mark.parametrize("room", [0, 5, 40])
def test_find_unexpected(seed, room):
    rng = np.random.default_rng(seed)
    n, bounds = 300, (-(2**31), 2**31)
    expected = ExpectedGradients(
        rng.integers(*bounds, size=n).astype(np.int32),
        rng.integers(4, size=n).astype(np.uint8),
        rng.integers(-1000, 1000, size=4).astype(np.int32),
    )
    ordered = (expected.before - expected.steps[expected.leaf_at].astype(np.int64)).astype(np.int32)
    ordered[rng.choice(n, 8, replace=False)] += 1
    ordered[rng.choice(n, 8, replace=False)] = bounds[0]
    results = []
    for module in (next_root, twin):
        found = np.zeros((room, 2), dtype=np.int64)
        results.append((module.find_unexpected(expected, ordered, 20, 290, found), found))
    assert results[0][0] == results[1][0] > 5
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][1].any() == (room == 40)


@seeded
@pytest.mark.parametrize("n_threads", [1, 2])
def test_write_root(seed, n_threads):
    rng = np.random.default_rng(seed)
    n, d, n_bins, n_leaves = 200, 10, 12, 4
    n_values = rng.integers(1, n_bins, size=d)
    words = np.zeros((2, n), dtype=np.uint64)
    bins = np.array([rng.choice([*range(k), n_bins - 1], n) for k in n_values])
    for f in range(d):
        words[f // 8] |= bins[f].astype(np.uint64) << np.uint64(8 * (f % 8))
    table = BinTable(words, words.view(np.uint8).reshape(-1), n_values, n_bins)
    packing = Packing(8, 0, 255, 8, 0.5, 0.0, 1.0, 1.0)
    before, leaf_at = rng.integers(-1000, 1000, size=n), rng.integers(n_leaves, size=n)
    steps = rng.integers(-300, 300, size=n_leaves)
    found = np.column_stack([rng.choice(n, 7, replace=False), rng.integers(-9, 9, size=7)])
    now = before - steps[leaf_at]
    now[found[:, 0]] += found[:, 1]
    given = np.zeros((n_leaves + 1, d * STRIDE), dtype=np.int64)
    direct = np.zeros(d * STRIDE, dtype=np.int64)
    for f in range(d):
        for leaf in range(n_leaves):
            here = leaf_at == leaf
            np.add.at(given[leaf], f * STRIDE + bins[f, here], (before[here] << 8) + 1)
        np.add.at(direct, f * STRIDE + bins[f], (now << 8) + 1)
    results = []
    for module in (next_root, twin):
        slots = given.copy()
        for thread in range(n_threads):
            module.write_root(thread, n_threads, table, steps, found, packing, slots)
        results.append(slots)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0][0], direct)
