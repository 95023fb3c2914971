"""Compiled gradients from random orders against naive twins that carry exchanges out."""

import numpy as np
import pytest
from tests.backends.test_ranking import (
    by_place,
    draw,
    draws_of,
    gradients_of,
    positions_of,
    rows_of,
)
from tests.reference import drawn_orders as naive

from hilboost.backends import drawn_orders as compiled


def assert_near(ours, twin, rows, *arguments):
    found, starts = [], rows.starts
    for function in (ours, twin):
        written, places = gradients_of(len(rows.gains)), np.empty(9, np.int64)
        drawn = compiled.DrawnOrder(np.empty(9), places, np.empty(9), np.empty(9))
        function(rows, *arguments, by_place(starts), drawn, written)
        found.append(written)
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 10])
def test_neighbor_gradients(seed, k):
    rng, *drawn = draw(seed, 9)
    starts = drawn[0]
    arguments = rows_of(drawn, rng), positions_of(starts, k), draws_of(starts, rng), 3
    assert_near(compiled.neighbor_gradients, naive.neighbor_gradients, *arguments)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("only_first", [False, True])
def test_exchange_gradients(seed, k, only_first):
    rng, starts, gains, scores = draw(seed, 9)
    rows = rows_of((starts, (gains > 1).astype(float), scores), rng)
    arguments = rows, k, only_first, draws_of(starts, rng)
    assert_near(compiled.exchange_gradients, naive.exchange_gradients, *arguments)
