"""Naive twins of :mod:`hilboost.engine.ops.cpu.vector_levels`: Python sets, every sum afresh."""

from __future__ import annotations

import numpy as np
from tests.reference.random_bits import mix
from tests.reference.vector_cuts import NO_GAIN, rows_and_bins, score_of, weights_of

MOST_TRIED = 10


def subsets(levels):
    """Those without the last level, in the order of binary numbers."""
    for number in range(1, 2 ** (len(levels) - 1)):
        yield {level for i, level in enumerate(levels) if number >> i & 1}


def prefixes(levels, b, rows, gradients, weights):
    """Those of the levels sorted along the first principal component of their means."""
    mass = np.array([weights_of(weights, rows[b == level]).sum() for level in levels])
    sums = np.array([gradients[rows[b == level]].sum(axis=0) for level in levels])
    means = sums / mass[:, None] - sums.sum(axis=0) / mass.sum()
    _, _, directions = np.linalg.svd(np.sqrt(mass)[:, None] * means, full_matrices=False)
    places = means @ directions[0]
    ranked = [levels[i] for i in np.argsort(places)]
    for end in range(1, len(ranked)):
        yield set(ranked[:end])


def best_subset(b, rows, gradients, weights, min_weight, tie):
    """Score and levels of the best split."""
    levels = np.unique(b).tolist()
    if len(levels) <= MOST_TRIED:
        tried = subsets(levels)
    else:
        tried = prefixes(levels, b, rows, gradients, weights)
    best = NO_GAIN, set()
    for chosen in tried:
        score = score_of(rows, np.isin(b, list(chosen)), gradients, weights, min_weight)
        if score > best[0] + tie:
            best = score, chosen
    return best


def to_bits(chosen, left_set):
    for w in range(len(left_set)):
        left_set[w] = sum(1 << (level & 63) for level in chosen if level >> 6 == w)


def to_levels(left_set):
    return {64 * w + k for w, word in enumerate(left_set) for k in range(64) if int(word) >> k & 1}


def scan_subsets(column, min_weight, tie, scratch, levels, left_set):
    (rows, b, missing), gradients = rows_and_bins(column), column.gradients
    score, chosen = best_subset(b, rows, gradients.values, gradients.weights, min_weight, tie)
    to_bits(chosen - {missing}, left_set)
    return score, int(missing in chosen)


def score_subset(column, min_weight, left_set, missing_left, sums):
    (rows, b, missing), gradients = rows_and_bins(column), column.gradients
    chosen = to_levels(left_set) - {missing} | ({missing} if missing_left else set())
    goes_left = np.isin(b, list(chosen))
    return score_of(rows, goes_left, gradients.values, gradients.weights, min_weight)


def drawn_subset(b, missing, seed):
    """Levels that go left, ``None`` where there is only one."""
    levels = set(np.unique(b).tolist())
    if len(levels) < 2:
        return None
    state = seed
    while True:
        state = mix(state)
        chosen = {missing} & levels if state >> 63 else set()
        for w in range(4):
            state = mix(state)
            chosen |= {x for x in levels - {missing} if x >> 6 == w and state >> (x & 63) & 1}
        if chosen and chosen != levels:
            return chosen


def draw_subset(table, column, here, seed, present, left_set):
    _, b, missing = rows_and_bins((table, column, here, None))
    chosen = drawn_subset(b, missing, int(seed))
    if chosen is None:
        return -1
    to_bits(chosen - {missing}, left_set)
    return int(missing in chosen)


def settled_subset(b, rows, missing, weights, chosen):
    """All levels that go left, 255 for unseen ones, and whether missing values do."""
    mass = weights_of(weights, rows)
    heavier = 2 * mass[np.isin(b, list(chosen))].sum() >= (1 - 1e-6) * mass.sum()
    absent = set(range(256)) - (set(np.unique(b).tolist()) - {missing})
    side = missing in chosen if (b == missing).any() else heavier
    return chosen - {missing} | (absent if heavier else set()), bool(side)


def settle_subset(column, missing_left, present, left_set):
    (rows, b, missing), weights = rows_and_bins(column), column.gradients.weights
    chosen = to_levels(left_set) | ({missing} if missing_left else set())
    settled, side = settled_subset(b, rows, missing, weights, chosen)
    to_bits(settled, left_set)
    return int(side)
