"""Compiled losses and gradients of two classes against naive ones."""

import numpy as np
import pytest
from tests.reference import loss_gradients as naive

from hilboost.backends import loss_gradients as compiled

EXTREMES = np.array([0.0, -0.0, 1e-300, 36.0, 300.0, 600.0])


def evaluated(module, y, raw):
    found = np.empty((3, len(raw)))
    module.logistic(y, raw, *found)
    return found


@pytest.mark.parametrize("n", [0, 1, 100])
def test_logistic(n):
    rng = np.random.default_rng(n)
    y, raw = rng.integers(2, size=n).astype(float), 5 * rng.normal(size=n)
    found, wanted = (evaluated(module, y, raw) for module in (compiled, naive))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_all_sizes_of_scores(label):
    """Losses to a few units in the last place, those of scores close to a rounding included."""
    raw = np.concatenate([EXTREMES, -EXTREMES, np.linspace(-40, 40, 10_001)])
    raw = np.concatenate([raw, np.log(2) * (np.arange(-40, 40) + 0.5)])
    found, wanted = (
        evaluated(module, np.full(len(raw), label), raw) for module in (compiled, naive)
    )
    np.testing.assert_allclose(found[0], wanted[0], rtol=4e-15)
    np.testing.assert_allclose(found[1:], wanted[1:], rtol=0, atol=4e-16)


def test_the_hessian_follows_from_the_gradient():
    raw = np.concatenate([EXTREMES, -EXTREMES, 9 * np.random.default_rng(0).normal(size=50)])
    value, negative, hessian = evaluated(compiled, np.ones(len(raw)), raw)
    size = np.abs(negative)
    np.testing.assert_array_equal(hessian, size * np.maximum(1 - size, 0.1))
    alone = np.empty((2, len(raw)))
    compiled.logistic(np.ones(len(raw)), raw, *alone, None)
    np.testing.assert_array_equal(alone, [value, negative])


def test_a_score_has_the_same_result_wherever_it_is():
    raw = np.random.default_rng(0).normal(size=37) * 9
    whole = evaluated(compiled, np.ones(37), raw)
    for i in range(37):
        alone = evaluated(compiled, np.ones(1), raw[i : i + 1])
        np.testing.assert_array_equal(alone[:, 0], whole[:, i])


def test_what_is_not_a_number_remains_so():
    assert np.isnan(evaluated(compiled, np.ones(2), np.array([np.nan, 1.0]))[:, 0]).all()
