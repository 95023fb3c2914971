"""Families where formulas lose digits: extreme parameters, and targets that are not possible."""

import numpy as np
import pytest
from scipy import integrate, stats

from hilboost.distributions import ParametricDistribution
from hilboost.losses import (
    Beta,
    GammaShape,
    LogNormal,
    NegativeBinomial,
    Normal,
    Weibull,
    ZeroInflatedPoisson,
)

TAILS = [-np.inf, -1.0, np.inf]


def of(loss, *parameters):
    values = [np.array([one]) for one in parameters]
    return ParametricDistribution(loss, dict(zip(loss.parameters, values, strict=True)))


@pytest.mark.parametrize(
    ("loss", "parameters", "impossible"),
    [
        (Normal(), (0.0, 1.0), [-np.inf, np.inf]),
        (LogNormal(), (1.0, 1.0), [*TAILS, 0.0]),
        (GammaShape(), (1.0, 2.0), [*TAILS, 0.0]),
        (Weibull(), (1.0, 2.0), [*TAILS, 0.0]),
        (Beta(), (0.4, 3.0), [*TAILS, 0.0, 1.0, 2.5]),
        (Beta(), (0.4, 0.5), [0.0, 1.0]),
        (NegativeBinomial(), (3.0, 0.4), [*TAILS, 2.5]),
        (ZeroInflatedPoisson(), (3.0, 0.4), [*TAILS, 2.5]),
    ],
)
def test_impossible_targets_have_no_density(loss, parameters, impossible):
    found = of(loss, *parameters)
    for y in impossible:
        assert found.pdf(y) == 0
        assert found.log_score([y]) == np.inf
    assert np.isnan(found.pdf(np.nan))


@pytest.mark.parametrize("loss", [NegativeBinomial(), ZeroInflatedPoisson()])
def test_ends_of_counts(loss):
    np.testing.assert_array_equal(of(loss, 3.0, 0.4).quantile([0, 1]), [[0, np.inf]])


@pytest.mark.parametrize(
    ("loss", "parameters", "frozen"),
    [
        (LogNormal(), (1.0, 14.0), stats.lognorm(14.0)),
        (LogNormal(), (1.0, 20.0), stats.lognorm(20.0)),
        (Weibull(), (1.0, 0.02), stats.weibull_min(0.02)),
    ],
)
def test_crps_of_wide_distributions(loss, parameters, frozen):
    """The integral of squared differences of the distribution function, over logarithms."""
    for y in (1e-9, 1.0, 1e6):
        ends = np.linspace(np.log(1e-12), np.log(frozen.isf(1e-200)), 400)
        ends = np.sort(np.append(ends, np.log(y)))

        def squares(u, y=y):
            x = np.exp(u)
            return x * np.where(x < y, frozen.cdf(x), frozen.sf(x)) ** 2

        parts = [
            integrate.fixed_quad(squares, a, b, n=10)[0]
            for a, b in zip(ends[:-1], ends[1:], strict=True)
        ]
        np.testing.assert_allclose(of(loss, *parameters).crps([y]), sum(parts), rtol=1e-6)


@pytest.mark.parametrize("dispersion", [1e-6, 1e-3, 0.1, 3.0, 1e3])
@pytest.mark.parametrize("mean", [3e8, 3e9, 1e11])
def test_large_quantiles_of_counts(mean, dispersion):
    """From a billion on, they are interpolated; counting to 1e18 takes SciPy minutes."""
    found, levels = of(NegativeBinomial(), mean, dispersion), [0.01, 0.5, 0.99, 1 - 1e-6]
    size = 1 / dispersion
    expected = stats.nbinom(size, size / (size + mean)).ppf(levels)
    np.testing.assert_allclose(found.quantile(levels)[0], expected, rtol=1e-6)
    assert of(NegativeBinomial(), mean * 1e9, dispersion).quantile(1 - 1e-9) > mean * 1e9


@pytest.mark.parametrize("rate", [9e4, 2e5, 1e9, 1e10])
def test_large_quantiles_of_poisson(rate):
    found, levels = of(ZeroInflatedPoisson(), rate, 0.2), np.array([0.1, 0.25, 0.5, 0.99])
    expected = stats.poisson(rate).ppf(np.maximum(levels - 0.2, 0) / 0.8)
    np.testing.assert_allclose(found.quantile(levels)[0], np.maximum(expected, 0), atol=1)
    for large in (rate, 1e6 * rate):  # far beyond the rates of SciPy
        crps = of(ZeroInflatedPoisson(), large, 0.2).crps([0.9 * large])
        spread = 0.8**2 * np.sqrt(large / np.pi)  # half of the mean distance of two normal numbers
        assert crps[0] == pytest.approx(0.1 * large - spread, rel=1e-3)


@pytest.mark.parametrize("count", [2e5, 1e9, 4e14])
def test_densities_of_large_counts(count):
    """Close counts have smooth densities, which integrals over normal and gamma ones give."""
    near = count + np.array([[-2.0, 0.0, 3.0]]) * np.sqrt(count).round()
    poisson = of(ZeroInflatedPoisson(), count, 0.2).pdf(near)
    np.testing.assert_allclose(
        poisson, 0.8 * stats.norm(count, np.sqrt(count)).pdf(near), rtol=0.03
    )
    wide = count * np.array([[0.1, 1.0, 7.0]])
    counts = of(NegativeBinomial(), count, 2.0).pdf(wide)
    np.testing.assert_allclose(counts, stats.gamma(0.5, scale=2 * count).pdf(wide), rtol=1e-4)
