"""Splits on subsets of levels for vector leaves: compiled loops, naive twins, all subsets."""

from itertools import product

import numpy as np
import pytest
from tests.backends.random_arguments import table_of
from tests.engine.ops.test_vector_grow import draw_scratch, draw_sums, node_of, rows_of, weightings
from tests.reference import vector_levels as twin

from hilboost.engine.ops.cpu import vector_levels
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.vector_cuts import NodeColumn, VectorGradients
from hilboost.engine.ops.cpu.vector_levels import MOST_TRIED, LevelScratch, empty_levels

SEEDS = range(8)
seeded = pytest.mark.parametrize("seed", SEEDS)
either = pytest.mark.parametrize("missing", [False, True])


def draw_levels(rng, n, n_levels, missing):
    """A table of one column of codes; the last bin, where there is one, is that of missing."""
    codes = rng.integers(n_levels, size=n)
    codes[: min(n, n_levels)] = np.arange(min(n, n_levels))
    if missing:
        codes[rng.uniform(size=n) < 0.15] = n_levels
    return table_of(codes.astype(np.uint64)[None], 1, n_levels + 1)


def own_levels(n_levels, k):
    return LevelScratch(*(array[0] for array in empty_levels(1, n_levels + 1, k)))


def new_set():
    return np.zeros(SET_WORDS, dtype=np.uint64)


@seeded
@weightings
@either
@pytest.mark.parametrize("n_levels", [2, 6, MOST_TRIED, MOST_TRIED + 1, 40, 200, 255])
def test_scan_subsets(seed, weighted, missing, n_levels):
    rng = np.random.default_rng([seed, weighted, missing, n_levels])
    n, k = int(rng.integers(20, 60)) + n_levels, int(rng.integers(1, 9))
    table = draw_levels(rng, n, n_levels, missing)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    gradients[:, 0] *= 3  # so that one direction leads
    here = node_of(rng, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    for min_weight in (1.0, 4.0):
        results = []
        for module in (vector_levels, twin):
            left_set = new_set()
            scratch = draw_scratch(n, n_levels + 1, k), own_levels(n_levels, k)
            found = module.scan_subsets(
                NodeColumn(table, 0, here, learned), min_weight, 1e-12, *scratch, left_set
            )
            results.append((found, left_set))
        (ours, our_set), (theirs, their_set) = results
        assert ours[0] == pytest.approx(theirs[0], rel=1e-9)
        if twin.to_levels(our_set) == twin.to_levels(their_set):
            assert ours[1] == theirs[1]
        else:  # the order has no direction: its mirror image is cut at the same place
            side = twin.score_subset(
                NodeColumn(table, 0, here, learned), min_weight, our_set, ours[1], np.empty(k)
            )
            assert side == pytest.approx(theirs[0], rel=1e-9)


@seeded
@weightings
@either
def test_the_best_of_few_levels_is_the_best_of_all_subsets(seed, weighted, missing):
    rng = np.random.default_rng([seed, weighted, missing])
    n, k, n_levels = 60, int(rng.integers(1, 9)), int(rng.integers(2, 8))
    table = draw_levels(rng, n, n_levels, missing)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    here = rows_of(np.arange(n, dtype=np.uint32), 0, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    left_set, levels = new_set(), own_levels(n_levels, k)
    best, side = vector_levels.scan_subsets(
        NodeColumn(table, 0, here, learned),
        1.0,
        0.0,
        draw_scratch(n, n_levels + 1, k),
        levels,
        left_set,
    )
    scores = []
    for bits in product([0, 1], repeat=n_levels + 1):
        tried = new_set()
        tried[0] = sum(bit << b for b, bit in enumerate(bits[:-1]))
        arguments = NodeColumn(table, 0, here, learned), 1.0, tried, bits[-1], np.empty(k)
        score = vector_levels.score_subset(*arguments)
        assert score == pytest.approx(twin.score_subset(*arguments), rel=1e-12)
        scores.append(score)
    assert best == pytest.approx(max(scores), rel=1e-12)
    own = vector_levels.score_subset(
        NodeColumn(table, 0, here, learned), 1.0, left_set, side, np.empty(k)
    )
    assert own == pytest.approx(best, rel=1e-12)


@seeded
@weightings
def test_the_best_of_many_levels_of_one_output_is_the_best_of_all_subsets(seed, weighted):
    rng = np.random.default_rng([seed, weighted])
    n, n_levels = 90, MOST_TRIED + 2
    table = draw_levels(rng, n, n_levels, False)
    gradients, weights = draw_sums(rng, n, 1, weighted, False)
    here = rows_of(np.arange(n, dtype=np.uint32), 0, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    scratch = draw_scratch(n, n_levels + 1, 1)
    best, _ = vector_levels.scan_subsets(
        NodeColumn(table, 0, here, learned), 1.0, 0.0, scratch, own_levels(n_levels, 1), new_set()
    )
    b = table.flat[::8][:n].astype(int)
    mass = np.bincount(b, weights if weighted else None)
    sums = np.bincount(b, gradients[:, 0])
    bits = np.array(list(product([0, 1], repeat=n_levels - 1)))[1:]
    left_sum, left_mass = bits @ sums[:-1], bits @ mass[:-1]
    right = (sums.sum() - left_sum) ** 2 / (mass.sum() - left_mass)
    assert best == pytest.approx((left_sum**2 / left_mass + right).max(), rel=1e-9)


def test_levels_that_lie_on_a_line_in_the_output_space_are_cut_exactly():
    rng = np.random.default_rng(0)
    n, n_levels = 400, 30
    table = draw_levels(rng, n, n_levels, False)
    b, direction = table.flat[::8][:n].astype(int), rng.normal(size=12)
    group = rng.permutation(n_levels) < 11
    gradients = np.where(group, 1.0, -1.0)[b][:, None] * direction + 0.1 * rng.normal(size=(n, 12))
    here = rows_of(np.arange(n, dtype=np.uint32), 0, n, gradients, np.empty(0))
    learned = VectorGradients(gradients, np.empty(0), np.empty(0))
    left_set, levels = new_set(), own_levels(n_levels, 12)
    vector_levels.scan_subsets(
        NodeColumn(table, 0, here, learned),
        1.0,
        0.0,
        draw_scratch(n, n_levels + 1, 12),
        levels,
        left_set,
    )
    found = twin.to_levels(left_set)
    assert found in (set(np.flatnonzero(group)), set(np.flatnonzero(~group)))


@pytest.mark.parametrize("module", [vector_levels, twin], ids=["compiled", "twin"])
def test_a_column_of_one_level_is_not_split(module):
    table = table_of(np.full((1, 9), 3, dtype=np.uint64), 1, 6)
    gradients = np.arange(9.0)[:, None]
    here = rows_of(np.arange(9, dtype=np.uint32), 0, 9, gradients, np.empty(0))
    learned = VectorGradients(gradients, np.empty(0), np.empty(0))
    found = module.scan_subsets(
        NodeColumn(table, 0, here, learned),
        1.0,
        0.0,
        draw_scratch(9, 6, 1),
        own_levels(5, 1),
        new_set(),
    )
    assert found[0] == -np.inf
    assert module.draw_subset(table, 0, here, np.uint64(5), new_set(), new_set()) == -1


@seeded
@either
@pytest.mark.parametrize("n_levels", [2, 9, 80, 255])
def test_draw_subset_and_settle_subset(seed, missing, n_levels):
    rng = np.random.default_rng([seed, missing, n_levels])
    table = draw_levels(rng, 70, n_levels, missing)
    weights = rng.uniform(0.1, 2, size=70) if seed % 2 else np.empty(0)
    here = node_of(rng, 70, np.zeros((70, 1)), weights)
    results = []
    for module in (vector_levels, twin):
        left_set = new_set()
        number = np.uint64(seed * 12345)
        side = module.draw_subset(table, 0, here, number, new_set(), left_set)
        drawn, learned = left_set.copy(), VectorGradients(np.zeros((70, 1)), weights, weights)
        if side >= 0:
            column = NodeColumn(table, 0, here, learned)
            settled = module.settle_subset(column, side, new_set(), left_set)
            results.append((side, drawn.tolist(), settled, left_set.tolist()))
    assert not results or results[0] == results[1]


def test_all_proper_subsets_are_drawn_equally_often():
    table = table_of(np.array([[0, 1, 2, 3]], dtype=np.uint64), 1, 4)  # the last one is missing
    here = rows_of(np.arange(4, dtype=np.uint32), 0, 4, np.zeros((4, 1)), np.empty(0))
    counts = {}
    for seed in range(7000):
        left_set = new_set()
        side = vector_levels.draw_subset(table, 0, here, np.uint64(seed), new_set(), left_set)
        key = int(left_set[0]) | side << 3
        counts[key] = counts.get(key, 0) + 1
    assert set(counts) == set(range(1, 15))
    assert min(counts.values()) > 420
    assert max(counts.values()) < 580
