"""Fits in several Python threads take as long as in turn, and give the same models."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hilboost import BoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=300)


def predicted(seed):
    return BoostingRegressor(random_state=seed).fit(X, Y).predict(X)


def processor_seconds(seeds, n_threads):
    began = time.process_time()
    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(predicted, seeds))
    return time.process_time() - began, found


@pytest.mark.parametrize("n_threads", [2, 4])
def test_default_fits_at_once(n_threads):
    predicted(0)  # compile, and set the number of BLAS threads from the main thread
    seeds = range(n_threads)
    alone, expected = processor_seconds(seeds, 1)
    together, found = processor_seconds(seeds, n_threads)
    assert together < 1.3 * alone
    np.testing.assert_array_equal(found, expected)
