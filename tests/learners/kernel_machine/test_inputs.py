"""Columns on one scale."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidData
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.inputs import bounds_of, with_scales
from hilboost.persistence.values import former_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) * [1, 10, 0.1, 3] + [5, -3, 0, 1e3]


def scaled(X, weight, **options):
    return with_scales(FeatureMap.unscaled(X.shape[1]), X, weight, **options)


def test_columns_have_mean_zero_and_deviation_one():
    found = scaled(X, None)(X)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1, rtol=1e-12)
    assert found.dtype == np.float64
    assert scaled(X, None)(X, dtype="float32").dtype == np.float32


def test_weights_are_repetitions():
    weight = RNG.integers(1, 4, size=40)
    one, other = scaled(X, weight.astype(float)), scaled(np.repeat(X, weight, axis=0), None)
    np.testing.assert_allclose(one.center, other.center, rtol=1e-12)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3, -1e-12, 1e100])
def test_constant_columns_become_zero(value):
    wide = np.column_stack([X, np.full(40, value)])
    inputs = scaled(wide, RNG.uniform(size=40))
    assert inputs.scale[-1] == 1
    np.testing.assert_allclose(inputs(wide)[:, -1], 0, atol=1e-9 * max(abs(value), 1))


def test_untouched_columns():
    inputs = scaled(X, None, untouched=(1, 3))
    np.testing.assert_array_equal(inputs(X)[:, [1, 3]], X[:, [1, 3]])
    np.testing.assert_allclose(inputs(X)[:, [0, 2]].std(axis=0), 1)


def test_one_scale_for_all_columns():
    inputs = scaled(X, None, common=True)
    np.testing.assert_allclose(inputs.scale, np.sqrt(X.var(axis=0).mean()))
    np.testing.assert_allclose(inputs(X).var(axis=0).mean(), 1)


def test_unchanged():
    np.testing.assert_array_equal(FeatureMap.unscaled(4)(X), X)


def test_features_of_earlier_files():
    center, scale, flag = np.array([5.0, 1.0]), np.array([2.0, 0.5]), np.array([3.0])
    features = former_features(
        columns=np.array([0, 2]),
        low=np.array([-1.0, -2.0]),
        high=np.array([9.0, 2.0]),
        center=center,
        scale=scale,
        levels=((1, np.array([0.5, -0.5])),),
        missing=np.array([0]),
        missing_scale=flag,
        rotation=np.eye(3)[:, ::-1],
    )
    table = np.array([[4.0, 0, 1], [np.nan, 0, 0], [99, 0, np.nan], [-99, 0, 7]])
    numbers = np.array([[4, -0.5], [5, 0.5], [9, 0], [-1, 0]])
    expected = np.column_stack([(numbers - center) * scale, [0, 3, 0, 0]])[:, ::-1]
    assert features.is_valid(3)
    np.testing.assert_allclose(features(table), expected, rtol=1e-15)


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
    given = KernelMachineConfig(kernel=Gaussian(1.0))
    for refuse in (lambda X: given.prepare(X, None, 0, 1), FeatureMap.unscaled(4)):
        with pytest.raises(InvalidData, match="NaN in column 2"):
            refuse(bad)


def wrong_cells(n=400, share=0.002, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 3)) * [1, 100, 1e-3]
    table[rng.choice(n, max(1, round(share * n)), replace=False), 1] = 1e6
    return table


def test_outlying_cells_do_not_determine_the_scale():
    table = wrong_cells()
    _, bounds = bounds_of(table, None)
    clean = table[table[:, 1] < 1e5, 1]
    low, high = np.sort(clean)[[3, -4]]  # 1 % of 400 rows on each side, one of which is wrong
    assert bounds[1] == pytest.approx(2 * high - low, rel=0.1)
    assert (bounds[[0, 2]] > 1e300).all()
    inputs = KernelMachineConfig().prepare(table, None, 0, 1).inputs
    np.testing.assert_allclose(inputs(table)[:, 1][table[:, 1] < 1e5].std(), 1, rtol=0.15)
    assert np.abs(inputs(table)).max() < 10
    kept = KernelMachineConfig(standardize=True).prepare(table, None, 0, 1).inputs
    assert not kept.is_bounded
    assert kept.scale[1] > 1e4


@pytest.mark.parametrize(
    "column",
    [
        RNG.normal(size=500),
        np.exp(RNG.normal(size=500)),
        RNG.standard_t(3, size=500),
        np.repeat([0.0, 1.0], 250),
        np.append(np.zeros(499), 1e6),  # rare, not outlying: no range to compare with
        np.zeros(500),
        np.array([-1.7e308, 1.7e308] * 250),
    ],
)
def test_usual_columns_are_not_bounded(column):
    low, high = bounds_of(column[:, None], None)
    assert (low < -1e308).all()
    assert (high > 1e308).all()


def test_bounds_count_weights_as_repetitions_and_leave_codes():
    table = wrong_cells()
    weight = RNG.integers(1, 4, size=len(table))
    one = bounds_of(table, weight.astype(float))
    other = bounds_of(np.repeat(table, weight, axis=0), None)
    np.testing.assert_array_equal(one, other)
    assert scaled(table, None, bounded=True).is_bounded
    assert not scaled(table, None, untouched=(1,), bounded=True).is_bounded


def test_bounds_follow_the_unit():
    table = wrong_cells()
    one, other = bounds_of(table, None), bounds_of(1024 * table, None)
    np.testing.assert_array_equal(1024 * one[1][1], other[1][1])
