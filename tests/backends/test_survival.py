"""Compiled loops over survival times against their naive twins."""

import numpy as np
import pytest
from tests.reference import survival as naive

from hilboost.backends import survival as compiled


@pytest.mark.parametrize("seed", range(6))
def test_concordant_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    sizes = rng.multinomial(n, np.ones(12) / 12)
    ends = np.cumsum(sizes[sizes > 0])
    event, rank = rng.uniform(size=n) < 0.6, rng.integers(1, 9, size=n)
    weight = rng.integers(1, 4, size=n).astype(float)
    found = []
    for module in (compiled, naive):
        totals = np.full(3, np.nan)
        module.concordant_pairs(ends, event, rank, weight, np.zeros(9), totals)
        found.append(totals)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_row_products(n):
    rng, found = np.random.default_rng(n), []
    values, matrix = rng.normal(size=(n, 5)), rng.normal(size=(5, 4))
    for module in (compiled, naive):
        found.append(np.full((n, 4), np.nan))
        module.row_products(values, matrix, found[-1])
    np.testing.assert_allclose(*found, rtol=1e-13)
