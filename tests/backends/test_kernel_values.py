"""Values of kernels in compiled loops against formulas of whole arrays."""

import numpy as np
import pytest
from tests.reference import kernel_values as naive

from hilboost.backends import array_api
from hilboost.backends import kernel_values as compiled
from hilboost.kernels import Matern

NUMBERS = np.concatenate([[0.0, 1e-300, 1e-8], np.geomspace(1e-3, 700, 997)])


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
