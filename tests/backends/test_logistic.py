"""Compiled losses and gradients of two classes against naive ones."""

import numpy as np
import pytest
from tests.reference import logistic as naive

from hilboost.backends import logistic as compiled


@pytest.mark.parametrize("n", [0, 1, 100])
def test_finish_logistic(n):
    rng = np.random.default_rng(n)
    y, raw = rng.integers(2, size=n).astype(float), 5 * rng.normal(size=n)
    found = []
    for module in (compiled, naive):
        value, negative = np.log1p(np.exp(-np.abs(raw))), np.tanh(raw / 2)
        hessian = np.empty(n)
        module.finish_logistic(y, raw, value, negative, hessian)
        found.append((value, negative, hessian))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
