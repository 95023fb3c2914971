"""Compiled gradients from random orders against naive twins that carry exchanges out."""

import numpy as np
import pytest
from tests.backends.test_ranking import discounts, draw, order_of
from tests.reference import drawn_orders as naive

from hilboost.backends import drawn_orders as compiled


def both(ours, twin, *arguments, n):
    found = []
    for function in (ours, twin):
        results = np.full(n, np.nan), np.full(n, np.nan)
        function(*arguments, *results)
        found.append(results)
    return found


def key_and_numbers(starts, rng):
    return np.uint64(rng.integers(2**63)), rng.permutation(len(starts) - 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 10])
def test_neighbor_gradients(seed, k):
    rng, starts, gains, scores = draw(seed, 9)
    n, longest = len(gains), 9
    ideals = np.full(len(starts) - 1, np.nan)
    scratch = order_of(starts, rng), ideals, np.empty(n), np.empty(longest, np.int64)
    scratch += tuple(np.empty(longest) for _ in range(4))
    arguments = (
        gains,
        scores,
        starts,
        k,
        discounts(starts),
        *key_and_numbers(starts, rng),
        3,
        scratch,
    )
    ours, twin = both(compiled.neighbor_gradients, naive.neighbor_gradients, *arguments, n=n)
    np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("only_first", [False, True])
def test_exchange_gradients(seed, k, only_first):
    rng, starts, gains, scores = draw(seed, 9)
    n, longest, relevant = len(gains), 9, (gains > 1).astype(float)
    scratch = order_of(starts, rng), np.empty(longest, np.int64)
    scratch += tuple(np.empty(longest) for _ in range(6))
    arguments = relevant, scores, starts, k, only_first, *key_and_numbers(starts, rng), scratch
    ours, twin = both(compiled.exchange_gradients, naive.exchange_gradients, *arguments, n=n)
    np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-13)
