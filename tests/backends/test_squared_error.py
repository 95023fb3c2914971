"""Squared errors against their twin."""

import numpy as np
import pytest
from tests.reference import loss_gradients as naive

from hilboost.backends import loss_gradients as compiled


@pytest.mark.parametrize("n", [0, 1, 3, 100])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e140])
def test_add_squares(n, is_first, scale):
    rng = np.random.default_rng(n)
    y, raw, before = scale * rng.normal(size=(3, n))
    results = []
    for module in (compiled, naive):
        value, negative = before.copy(), np.empty(n)
        module.add_squares(y, raw, is_first, value, negative)
        results.append((value, negative))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)
