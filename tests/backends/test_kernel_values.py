"""Values of kernels in compiled loops, also of additive ones, against naive twins."""

import numpy as np
import pytest
from tests.reference import kernel_values as naive

from hilboost.backends import array_api
from hilboost.backends import kernel_values as compiled
from hilboost.kernels import Matern

NUMBERS = np.concatenate([[0.0, 1e-300, 1e-8], np.geomspace(1e-3, 700, 997)])
FACTORS = compiled.Factors(0.3, 1.7)


def test_exponentials():
    found, wanted = -NUMBERS, -NUMBERS
    compiled.exponentials(found)
    naive.exponentials(wanted)
    np.testing.assert_allclose(found, wanted, rtol=4e-16)


@pytest.mark.parametrize("is_slope", [False, True])
def test_matern_kernel(is_slope):
    found, wanted = NUMBERS.copy(), NUMBERS.copy()
    compiled.matern52(found, is_slope)
    naive.matern52(wanted, is_slope)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_what_is_too_small_is_zero_and_what_is_not_a_number_remains_so():
    found = np.array([-709.0, -1e300, -np.inf, np.nan])
    compiled.exponentials(found)
    np.testing.assert_array_equal(found, [0, 0, 0, np.nan])
    found = np.array([1e6, 1e300, np.nan])
    compiled.matern52(found, False)
    np.testing.assert_array_equal(found, [0, 0, np.nan])


@pytest.mark.parametrize("name", ["profile", "slope"])
def test_blocks_in_any_order_and_precision(name):
    squares = np.random.default_rng(0).gamma(1.0, size=(8, 6))
    compute = getattr(Matern(nu=2.5), name)
    wanted = compute(squares.copy())
    every_other = np.repeat(squares, 2, axis=1)[:, ::2]
    assert array_api.flat(every_other) is None
    for block in (np.asfortranarray(squares), every_other):
        np.testing.assert_allclose(compute(block), wanted, rtol=1e-15)
    found = compute(squares.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_values_are_those_of_each_pair(d, dtype):
    rng = np.random.default_rng(d)
    A, B = rng.normal(size=(d, 7)), rng.normal(size=(d, 5))
    found, expected = np.empty((7, 5), dtype), np.empty((7, 5), dtype)
    for module, out in ((compiled, found), (naive, expected)):
        module.additive_block(A, B, FACTORS, np.empty(5), np.empty(5), out)
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_pulls_are_sums_over_pairs(d):
    rng = np.random.default_rng(d)
    A, W = rng.normal(size=(d, 6)), rng.normal(size=(6, 6))
    found, expected = np.empty((d + 2, 6)), np.empty((d + 2, 6))
    for module, out in ((compiled, found), (naive, expected)):
        working = np.empty((d, 6)), np.empty(6), np.empty(6)
        module.additive_pulls(A, W, FACTORS, *working, out)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
