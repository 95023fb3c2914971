"""Distributions given by points, and calibrated ones."""

import numpy as np
import pytest
from scipy import stats

from hilboost.distributions import CalibratedDistribution, TabulatedDistribution
from hilboost.distributions.interpolated import knots_of
from hilboost.losses import NegativeBinomial, Normal

RNG = np.random.default_rng(0)
LEVELS = np.linspace(0.02, 0.98, 49)
LOCATION = np.linspace(-1, 1, 400)
Y = LOCATION + RNG.normal(size=400)
TABLE = TabulatedDistribution.of(LOCATION[:, None] + stats.norm.ppf(LEVELS), LEVELS)
NO_GROUPS = np.empty(0, dtype=np.int64)


def normal(scale=1.0):
    return Normal().distribution_of(np.column_stack([LOCATION, np.full(400, np.log(scale))]))


def test_points_of_a_normal_distribution():
    exact, levels = normal(), [0.001, 0.1, 0.5, 0.9, 0.999]
    assert len(TABLE) == 400
    np.testing.assert_allclose(TABLE.quantile([0.1, 0.5]), exact.quantile([0.1, 0.5]), atol=1e-2)
    np.testing.assert_allclose(TABLE.cdf(TABLE.quantile(levels)), np.tile(levels, (400, 1)))
    np.testing.assert_allclose(TABLE.mean, LOCATION, atol=1e-6)
    np.testing.assert_allclose(TABLE.std, 1, atol=0.05)
    np.testing.assert_allclose(TABLE.crps(Y).mean(), exact.crps(Y).mean(), rtol=1e-3)
    np.testing.assert_allclose(TABLE.log_score(Y).mean(), exact.log_score(Y).mean(), atol=0.02)


def test_density_is_the_slope_of_the_distribution_function():
    places = LOCATION[:, None] + np.array([-4.0, -1.01, 0.3, 5.0])
    slope = (TABLE.cdf(places + 1e-6) - TABLE.cdf(places - 1e-6)) / 2e-6
    np.testing.assert_allclose(TABLE.pdf(places), slope, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("quantiles", [[0.0, 0.0, 0.0], [1.0, 1.0, 2.0], [-5.0, -5.0, -5.0]])
def test_equal_quantiles(quantiles, unit):
    found = TabulatedDistribution.of(unit * np.array([quantiles]), np.array([0.1, 0.5, 0.9]))
    for values in (found.mean, found.std, found.crps([unit]), found.log_score([0.3 * unit])):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(found.quantile(0.5), unit * quantiles[1], rtol=1e-5, atol=1e-200)


def test_calibration_makes_levels_uniform():
    narrow, y = normal(0.5), LOCATION + 0.5 + RNG.normal(size=400)
    assert stats.kstest(narrow.pit(y), "uniform").pvalue < 1e-6
    found = CalibratedDistribution.of(narrow, [knots_of(narrow.pit(y), None)], NO_GROUPS)
    new = LOCATION + 0.5 + RNG.normal(size=400)
    assert stats.kstest(found.pit(new), "uniform").statistic < 1.358 * np.sqrt(2 / 400)
    assert found.log_score(new).mean() < narrow.log_score(new).mean() - 0.5
    assert found.crps(new).mean() < narrow.crps(new).mean()
    levels = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(found.cdf(found.quantile(levels)), np.tile(levels, (400, 1)))
    places = found.quantile([0.21, 0.52, 0.83])
    slope = (found.cdf(places + 1e-6) - found.cdf(places - 1e-6)) / 2e-6
    np.testing.assert_allclose(found.pdf(places), slope, rtol=1e-3)


def test_calibrated_counts_have_probabilities():
    base = NegativeBinomial().distribution_of(np.tile([1.0, -1.0], (400, 1)))
    y = RNG.poisson(4.0, size=400).astype(float)
    found = CalibratedDistribution.of(base, [knots_of(base.pit(y), None)], NO_GROUPS)
    counts = np.tile(np.arange(60.0), (400, 1))
    np.testing.assert_allclose(found.pdf(counts).sum(axis=1), 1, atol=1e-3)
    assert stats.kstest(found.pit(RNG.poisson(4.0, size=400)), "uniform").pvalue > 0.05
    assert set(found.quantile(LEVELS).ravel()) <= set(range(60))


def test_weights_of_calibration_rows_are_repetitions():
    levels, weight = RNG.uniform(size=30), RNG.integers(1, 4, size=30)
    repeated = knots_of(np.repeat(levels, weight), None)
    np.testing.assert_allclose(knots_of(levels, weight.astype(float))[[0, -1]], [0, 1], atol=1e-12)
    np.testing.assert_allclose(knots_of(levels, weight.astype(float)), repeated, atol=0.06)


def test_levels_of_each_row():
    own = np.linspace(0.1, 0.9, 400)[:, None]
    np.testing.assert_allclose(TABLE.cdf(TABLE.quantile(own)), own)
