"""Columns on one scale."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidData
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.inputs import Inputs, require_complete

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) * [1, 10, 0.1, 3] + [5, -3, 0, 1e3]


def test_columns_have_mean_zero_and_deviation_one():
    scaled = Inputs.of(X, None)(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-12)
    assert scaled.dtype == np.float64
    assert Inputs.of(X, None)(X, dtype="float32").dtype == np.float32


def test_weights_are_repetitions():
    weight = RNG.integers(1, 4, size=40)
    one, other = Inputs.of(X, weight.astype(float)), Inputs.of(np.repeat(X, weight, axis=0), None)
    np.testing.assert_allclose(one.center, other.center, rtol=1e-12)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3, -1e-12, 1e100])
def test_constant_columns_become_zero(value):
    wide = np.column_stack([X, np.full(40, value)])
    inputs = Inputs.of(wide, RNG.uniform(size=40))
    assert inputs.scale[-1] == 1
    np.testing.assert_allclose(inputs(wide)[:, -1], 0, atol=1e-9 * max(abs(value), 1))


def test_untouched_columns():
    inputs = Inputs.of(X, None, untouched=(1, 3))
    np.testing.assert_array_equal(inputs(X)[:, [1, 3]], X[:, [1, 3]])
    np.testing.assert_allclose(inputs(X)[:, [0, 2]].std(axis=0), 1)


def test_one_scale_for_all_columns():
    inputs = Inputs.of(X, None, common=True)
    np.testing.assert_allclose(inputs.scale, np.sqrt(X.var(axis=0).mean()))
    np.testing.assert_allclose(inputs(X).var(axis=0).mean(), 1)


def test_unchanged():
    np.testing.assert_array_equal(Inputs.unchanged(4)(X), X)


@pytest.mark.parametrize(("n_columns", "is_common"), [(64, False), (65, True)])
def test_many_columns_of_like_spread_have_one_scale(n_columns, is_common):
    images = RNG.uniform(0.5, 2, size=n_columns) * RNG.normal(size=(30, n_columns))
    scale = KernelMachineConfig(kernel="auto").prepare(images, None, 0, 1).inputs.scale
    assert (len(np.unique(scale)) == 1) == is_common
    images[:, 0] *= 1e3
    scale = KernelMachineConfig(kernel="auto").prepare(images, None, 0, 1).inputs.scale
    assert len(np.unique(scale)) == n_columns


def test_gaps_are_refused():
    bad = X.copy()
    bad[3, 2] = np.nan
    assert require_complete(X) is None
    for refuse in (require_complete, lambda X: KernelMachineConfig().prepare(X, None, 0, 1)):
        with pytest.raises(InvalidData, match="NaN in column 2"):
            refuse(bad)
