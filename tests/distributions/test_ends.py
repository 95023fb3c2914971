"""Distributions at the ends of their support and beyond, where formulas overflow."""

import numpy as np
import pytest
from scipy import stats

from hilboost.distributions import (
    CalibratedDistribution,
    ParametricDistribution,
    TabulatedDistribution,
)
from hilboost.losses import (
    Beta,
    GammaShape,
    Laplace,
    LogNormal,
    MixtureOfNormals,
    NegativeBinomial,
    Normal,
    StudentT,
    Weibull,
    ZeroInflatedPoisson,
)
from hilboost.losses.scipy_distribution import ScipyDistribution

N = 20
FAMILIES = [
    *(Normal(), Normal(2.0), Laplace(), StudentT(), MixtureOfNormals(), LogNormal(), GammaShape()),
    *(Weibull(), NegativeBinomial(), ZeroInflatedPoisson(), Beta()),
    *(ScipyDistribution("gumbel_r"), ScipyDistribution("expon"), ScipyDistribution("t", (4,))),
]
ENDS = {
    "numbers": (-np.inf, np.inf),
    "positive": (0.0, np.inf),
    "counts": (0.0, np.inf),
    "fractions": (0.0, 1.0),
}


def drawn(family):
    rng = np.random.default_rng(0)
    draws = {
        "location": lambda: 5 * rng.normal(size=N),
        "scale": lambda: np.exp(2 * rng.normal(size=N)),
        "level": lambda: np.exp(2 * rng.normal(size=N)),
        "rate": lambda: np.exp(2 * rng.normal(size=N)),
        "positive": lambda: np.exp(rng.normal(size=N)),
        "above_one": lambda: 1 + np.exp(2 * rng.normal(size=N)),
        "probability": lambda: rng.uniform(0.01, 0.99, size=N),
        "number": lambda: rng.normal(size=N),
    }
    values = {name: draws[kind]() for name, kind in family.parameters.items()}
    return ParametricDistribution(family, values)


def calibrated(base):
    knots = [np.array([0.0, 0.2, 0.6, 1.0])]
    return CalibratedDistribution.of(base, knots, np.array([], dtype=np.int64))


def cases():
    values = np.sort(np.random.default_rng(1).normal(size=(N, 5)), axis=1)
    table = TabulatedDistribution.of(values, np.array([0.1, 0.2, 0.5, 0.7, 0.9]))
    for support, found in (
        *((family.support, drawn(family)) for family in FAMILIES),
        ("numbers", table),
    ):
        name = type(getattr(found, "family", found)).__name__
        yield pytest.param(*ENDS[support], found, id=name)
        yield pytest.param(*ENDS[support], calibrated(found), id=f"calibrated {name}")


@pytest.mark.parametrize(("least", "most", "found"), list(cases()))
def test_infinite_and_missing_targets(least, most, found):
    for y, level, score in (
        (-np.inf, 0.0, np.inf),
        (np.inf, 1.0, np.inf),
        (np.nan, np.nan, np.nan),
    ):
        rows = np.full(N, y)
        np.testing.assert_array_equal(found.cdf(y), np.full(N, level))
        np.testing.assert_allclose(found.pit(rows), np.full(N, level), rtol=1e-12)
        np.testing.assert_array_equal(found.pdf(y), np.full(N, 0 * level))
        for scores in (found.crps(rows), found.log_score(rows), found.interval_score(rows)):
            np.testing.assert_array_equal(scores, np.full(N, score))
    for y in (-1e308, 1e308):
        rows = np.full(N, y)
        np.testing.assert_allclose(found.cdf(y), float(y > 0), atol=1e-3)
        assert (found.crps(rows) > 9e307).all()
        assert (found.log_score(rows) > 10).all()


@pytest.mark.parametrize(("least", "most", "found"), list(cases()))
def test_targets_outside_of_the_support(least, most, found):
    """The CRPS is that of the end, plus the distance from it."""
    for y, end in (
        (least - 1e-9, least),
        (least - 3, least),
        (most + 1e-9, most),
        (most + 3, most),
    ):
        if np.isfinite(end):
            rows = np.full(N, y)
            np.testing.assert_array_equal(found.cdf(y), float(y > end))
            np.testing.assert_array_equal(found.pdf(y), 0.0)
            np.testing.assert_array_equal(found.log_score(rows), np.inf)
            expected = found.crps(np.full(N, end)) + abs(y - end)
            np.testing.assert_allclose(found.crps(rows), expected, rtol=1e-9)


@pytest.mark.parametrize(("least", "most", "found"), list(cases()))
def test_quantiles_ascend_from_end_to_end(least, most, found):
    quantiles = found.quantile(np.linspace(0, 1, 101))
    assert not np.isnan(quantiles).any()
    assert (quantiles[:, :-1] <= quantiles[:, 1:]).all()
    assert (quantiles[:, 0] >= least).all()
    assert (quantiles[:, -1] <= most).all()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: type(one).__name__)
def test_bounds_have_the_scores_of_targets_and_intervals(family):
    found, bounds = drawn(family), np.empty(N, dtype=[("lower", float), ("upper", float)])
    for y in (-1.0, 0.0, 0.5, 1.0, 2.0):
        bounds["lower"] = bounds["upper"] = y
        np.testing.assert_array_equal(found.log_score(bounds), found.log_score(np.full(N, y)))
    least, most = ENDS[family.support]
    for lower, upper in ((-3.0, -1.0), (-np.inf, 0.0), (-np.inf, -1.0), (0.0, 1.0), (2.0, 5.0)):
        bounds["lower"], bounds["upper"] = lower, upper
        scores, chance = found.log_score(bounds), found.cdf(upper) - found.cdf(lower)
        likely = chance > 1e-3
        np.testing.assert_allclose(scores[likely], -np.log(chance[likely]), atol=1e-4)
        possible = lower < most and (upper > least or (upper == 0 and family.support == "counts"))
        assert np.isfinite(scores).all() if possible else np.isposinf(scores).all()


@pytest.mark.parametrize("dispersion", [1e-6, 0.01, 1.0, 30.0])
def test_crps_of_many_counts(dispersion):
    """Sums over all counts, also for calibrated distributions, whose levels here stay the same."""
    family, size, mean = NegativeBinomial(), 1 / dispersion, 3000.0
    frozen = stats.nbinom(size, size / (size + mean))
    found = ParametricDistribution(
        family, {"mean": np.array([mean]), "dispersion": np.array([dispersion])}
    )
    same = CalibratedDistribution(found, np.linspace(0, 1, 4)[None])
    counts = np.arange(frozen.isf(1e-5) + 10)  # beyond, squares are at most 1e-10
    below, above = frozen.cdf(counts), frozen.sf(counts)
    for y in (0.0, 1.0, 2.5, 1500.0, 3000.0, 8000.5):
        known = np.where(counts < y, below, above) ** 2
        between = np.ceil(y) - y
        expected = known.sum() + between * (1 - 2 * frozen.cdf(np.floor(y)))
        expected += max(y - counts[-1] - 1, 0.0)
        for one in (found, same):
            np.testing.assert_allclose(one.crps([y]), expected, rtol=5e-4)


@pytest.mark.parametrize("rate", [0.01, 3.0, 3000.0, 5e4])
@pytest.mark.parametrize("zeros", [0.001, 0.4])
def test_crps_of_counts_with_many_zeros(rate, zeros):
    values = {"rate": np.array([rate]), "zeros": np.array([zeros])}
    found = ParametricDistribution(ZeroInflatedPoisson(), values)
    same = CalibratedDistribution(found, np.linspace(0, 1, 4)[None])
    counts = np.arange(stats.poisson(rate).ppf(1 - 1e-12) + 10)
    below = zeros + (1 - zeros) * stats.poisson(rate).cdf(counts)
    for y in (0.0, np.rint(0.9 * rate), counts[-1]):
        expected = ((below - (counts >= y)) ** 2).sum()
        np.testing.assert_allclose(found.crps([y]), expected, rtol=1e-9)
        np.testing.assert_allclose(same.crps([y]), expected, rtol=2e-3)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_outputs_of_any_size_give_numbers(family):
    """Linear models extrapolate outputs to any size on rows that are far away."""
    rng = np.random.default_rng(0)
    sizes = [-1e6, -200.0, -50.0, -10.0, 0.5, 10.0, 25.0, 50.0, 200.0, 1e6]
    found = family.distribution_of(rng.choice(sizes, size=(100, len(family.parameters))))
    y = np.full(100, 0.5 if family.support == "fractions" else 3.0)
    values = [found.mean, found.std, found.quantile([0.001, 0.5, 0.99]), found.sample(2, 0)]
    scores = [one(y) for one in (found.crps, found.log_score, found.interval_score, found.pit)]
    for one in (*values, *scores):
        assert not np.isnan(one).any()


def test_the_standard_deviation_of_student_t_is_infinite_up_to_two_degrees_of_freedom():
    df = np.array([1.0, 1.5, 2.0, 2.5, 30.0, 1e9])
    found = StudentT().std((np.zeros(6), np.full(6, 2.0), df))
    np.testing.assert_array_equal(found[:3], np.inf)
    np.testing.assert_allclose(found[3:], stats.t.std(df[3:], scale=2))
