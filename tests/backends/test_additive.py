"""Compiled additive kernels against their naive twins."""

import numpy as np
import pytest
from tests.reference import kernel_values as twin

from hilboost.backends import kernel_values

FACTORS = kernel_values.Factors(0.3, 1.7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_values_are_those_of_each_pair(d, dtype):
    rng = np.random.default_rng(d)
    A, B = rng.normal(size=(d, 7)), rng.normal(size=(d, 5))
    found, expected = np.empty((7, 5), dtype), np.empty((7, 5), dtype)
    for module, out in ((kernel_values, found), (twin, expected)):
        module.additive_block(A, B, FACTORS, np.empty(5), np.empty(5), out)
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_pulls_are_sums_over_pairs(d):
    rng = np.random.default_rng(d)
    A, W = rng.normal(size=(d, 6)), rng.normal(size=(6, 6))
    found, expected = np.empty((d + 2, 6)), np.empty((d + 2, 6))
    for module, out in ((kernel_values, found), (twin, expected)):
        working = np.empty((d, 6)), np.empty(6), np.empty(6)
        module.additive_pulls(A, W, FACTORS, *working, out)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
