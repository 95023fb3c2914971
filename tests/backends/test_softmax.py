"""Compiled gradients of the log loss against naive ones."""

import numpy as np
import pytest
from tests.reference import softmax as naive

from hilboost.backends import softmax as compiled


@pytest.mark.parametrize("n_classes", [3, 26])
@pytest.mark.parametrize("n", [0, 1, 100])
def test_softmax_gradients(n, n_classes):
    rng = np.random.default_rng(n)
    values = np.exp(3 * rng.normal(size=(n_classes, n)))
    totals, codes = values.sum(axis=0), rng.integers(n_classes, size=n)
    found = []
    for module in (compiled, naive):
        negative, hessian = values.copy(), np.empty_like(values)
        module.softmax_gradients(negative, totals, codes, 1.25, hessian)
        found.append((negative, hessian))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("n", [0, 1, 100])
def test_shift_scores(n):
    rng = np.random.default_rng(n)
    scores, codes = rng.normal(size=(5, n)), rng.integers(5, size=n)
    found = []
    for module in (compiled, naive):
        shifted, highest, own = scores.copy(), np.empty(n), np.empty(n)
        module.shift_scores(shifted, codes, highest, own)
        found.append((shifted, highest, own))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
