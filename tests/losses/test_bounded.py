"""Likelihoods of censored and truncated targets: derivatives, closed forms, far tails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_ndtr
from tests.cases import DISTRIBUTIONS, ids

from hilboost.core.errors import InvalidData
from hilboost.core.target import Target
from hilboost.losses import DistributionLoss, NegativeBinomial, Normal, Weibull
from hilboost.losses._maximum_likelihood import unbounded
from hilboost.losses.bounded import BoundedLoss
from hilboost.tables.bounds import stand_ins

CONTINUOUS = [case for case in DISTRIBUTIONS if case.make().support != "counts"]
each = pytest.mark.parametrize("case", CONTINUOUS, ids=ids(CONTINUOUS))


def bounds_around(loss, raw, y, rng):
    """Exact, right- and left-censored rows and intervals, a third of them truncated."""
    n, p, kind = len(y), loss.values_of(raw), rng.integers(4, size=len(y))
    level = loss.cdf(y, p)
    outer_low, low, up, outer_up = (
        loss.quantile(one, p) for one in (0.2 * level, 0.7 * level, 0.8 + 0.2 * level, 0.999)
    )
    low, up = np.minimum(low, y), np.maximum(up, y)
    lower = np.select([kind == 0, kind == 1, kind == 3], [y, y, low], -np.inf)
    upper = np.select([kind == 0, kind == 2, kind == 3], [y, y, up], np.inf)
    truncated = rng.uniform(size=n) < 1 / 3
    entry = np.where(truncated & np.isfinite(lower), outer_low, -np.inf)
    limit = np.where(truncated & np.isfinite(upper) & (upper < outer_up), outer_up, np.inf)
    return np.column_stack([lower, upper, entry, limit])


def drawn(case, n=60, seed=0):
    rng = np.random.default_rng(seed)
    loss, y = case.make(), case.draw(rng, n)
    start = loss.best_constant(Target(y))
    raw = start + 0.2 * rng.normal(size=(n, len(start)))
    return BoundedLoss(loss), Target(bounds_around(loss, raw, y[:, 0], rng)), raw


@each
def test_values_are_logarithms_of_probabilities(case):
    loss, target, raw = drawn(case)
    found, p = -loss.value(target, raw), loss.loss.values_of(raw)
    lower, upper, entry, limit = target.y.T

    def below(y):
        known = np.where(np.isfinite(y), y, 0.5)
        return np.where(np.isfinite(y), loss.loss.cdf(known, p), (y > 0).astype(float))

    exact = lower == upper
    density = loss.loss.log_density(np.where(exact, lower, 0.5), p)
    with np.errstate(divide="ignore"):
        expected = np.where(exact, density, np.log(below(upper) - below(lower)))
    np.testing.assert_allclose(found, expected - np.log(below(limit) - below(entry)), rtol=1e-6)


@each
def test_gradients_are_derivatives_and_hessians_positive(case):
    loss, target, raw = drawn(case)
    found = loss.gradients(target, raw)
    for k in range(raw.shape[1]):
        step = np.zeros_like(raw)
        step[:, k] = 1e-5 * np.maximum(1, np.abs(raw[:, k]))
        rise = loss.value(target, raw + step) - loss.value(target, raw - step)
        slope = -rise / (2 * step[:, k])
        np.testing.assert_allclose(found.negative_gradient[:, k], slope, rtol=1e-4, atol=1e-5)
    assert (found.hessian > 0).all()


@each
def test_exact_rows_have_the_gradients_of_the_loss(case):
    loss, _, raw = drawn(case)
    y = case.draw(np.random.default_rng(0), 60)
    ends = np.full_like(y, np.inf)
    found = loss.gradients(Target(np.column_stack([y, y, -ends, ends])), raw)
    expected = loss.loss.gradients(Target(y), raw)
    np.testing.assert_allclose(found.negative_gradient, expected.negative_gradient, rtol=1e-12)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-12)


@pytest.mark.slow
@each
@given(n=st.integers(15, 100), seed=st.integers(0, 2**31))
def test_the_best_constant_of_a_fit_has_no_slope_inside_of_its_bounds(case, n, seed):
    """The Laplace distribution has a kink at each target, from where the loss rises.

    Without a maximum, locations are 0.3 spreads from the targets.
    """
    loss, target, _ = drawn(case, n, seed)
    units = loss.units(target)
    loss, target = units.loss, target.with_y(target.y / units.size)
    start, (low, high) = loss.initial_raw(target), loss.loss.bounds
    slope, information = slope_of(loss, target, start)
    if case.name == "laplace":
        sides = (slope_of(loss, target, start + step)[0][0] for step in ([-1e-3, 0], [1e-3, 0]))
        assert next(sides) >= 0 >= next(sides)
        slope[0] = 0
    numbers = stand_ins(target.y)
    near = np.isclose(start, numbers.min() - 0.3) | np.isclose(start, numbers.max() + 0.3)
    outside = near | ((start <= low) & (slope < 0)) | ((start >= high) & (slope > 0))
    tolerance = 1e-3 if case.name == "laplace" else 1e-4
    assert np.all((np.abs(slope) < tolerance * np.sqrt(information)) | outside)


def slope_of(loss, target, start):
    """Means of negative gradients and hessians, as if there were no bounds."""
    loss = BoundedLoss(unbounded(loss.loss), loss.logarithm)
    found = loss.gradients(target, target.starting_raw(np.asarray(start)))
    return found.negative_gradient.mean(axis=0), found.hessian.mean(axis=0)


def test_far_tails_keep_their_slopes():
    """A censored row pulls the location also from hundreds of scales away."""
    ends = np.array([[30.0, np.inf], [-np.inf, -300.0], [500.0, 500.001], [-40.0, -39.0]])
    y, raw = np.column_stack([ends, -np.full((4, 1), np.inf), np.full((4, 1), np.inf)]), 0.0
    loss, raw = BoundedLoss(Normal()), np.zeros((4, 2))
    found = loss.gradients(Target(y), raw)
    values = [-log_ndtr(-30.0), -log_ndtr(-300.0), None, None]
    np.testing.assert_allclose(loss.value(Target(y), raw)[:2], values[:2])
    expected = [30.03326, -300.00333, 500.0005, -39.0256]
    np.testing.assert_allclose(found.negative_gradient[:, 0], expected, rtol=1e-4)
    assert np.isfinite(found.hessian).all()


def test_a_start_without_a_maximum_is_near_the_targets():
    """The likelihood of a truncated normal rises toward an exponential distribution."""
    y, ends = np.random.default_rng(0).exponential(size=500) ** 1.2, np.full(500, np.inf)
    target = Target(np.column_stack([y, y, np.zeros(500), ends]))
    for sign, order in ((1, [0, 1, 2, 3]), (-1, [1, 0, 3, 2])):
        units = BoundedLoss(Normal()).units(target.with_y(sign * target.y[:, order]))
        loss, scaled = units.loss, target.with_y(sign * target.y[:, order] / units.size)
        start = loss.initial_raw(scaled)
        assert -0.31 < sign * start[0] < 0
        slope = loss.gradients(scaled, scaled.starting_raw(start)).negative_gradient.mean(axis=0)
        assert sign * slope[0] < -0.01
        np.testing.assert_allclose(slope[1], 0, atol=1e-6)
    censored = target.with_y(np.column_stack([y, np.where(y > 1, np.inf, y), -ends, ends]))
    assert np.isinf(BoundedLoss(Normal()).units(censored).loss.loss.bounds[0][0])


def test_narrow_intervals_are_exact_up_to_their_width():
    y, p = np.linspace(-3, 3, 50), (np.zeros(50), np.zeros(50))
    raw, ends = np.column_stack(p), np.full(50, np.inf)
    for width in (1e-3, 1e-6, 1e-12):
        target = Target(np.column_stack([y, y + width, -ends, ends]))
        found = BoundedLoss(Normal()).value(target, raw)
        expected = -stats.norm.logpdf(y + width / 2) - np.log((y + width) - y)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


class Formulas(DistributionLoss):
    """A distribution of one's own without one of SciPy: tails follow from ``cdf``."""

    parameters = {"location": "location", "scale": "scale"}

    def log_density(self, y, p):
        return stats.logistic.logpdf(y, *p)

    def cdf(self, y, p):
        return stats.logistic.cdf(y, *p)

    def quantile(self, levels, p):
        return stats.logistic.ppf(levels, *p)


def test_tails_of_an_own_distribution_follow_from_its_distribution_function():
    y, p = np.linspace(-5, 5, 40), (np.zeros(40), np.ones(40))
    found = Formulas().log_tail(y, p, True), Formulas().log_tail(y, p, False)
    expected = stats.logistic.logsf(y), stats.logistic.logcdf(y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "rows", "message"),
    [
        (NegativeBinomial(), [[1, 2]], "requires exact counts as y; bounds require a continuous"),
        (Normal(), [[1, np.inf], [2, np.inf]], "all rows of y are right-censored"),
        (Normal(), [[-np.inf, 2], [-np.inf, 3]], "all rows of y are left-censored"),
        (Weibull(), [[0, 2], [0, 3]], "all rows of y are left-censored"),
        (Weibull(), [[1, 2], [0, np.inf]], "row 1 of y has no bound inside of the range"),
        (Weibull(), [[1, 2], [-1, -1]], "requires positive targets; row 1 has -1"),
    ],
)
def test_bounds_without_a_likelihood_are_refused(loss, rows, message):
    ends = np.tile([-np.inf, np.inf], (len(rows), 1))
    with pytest.raises(InvalidData, match=message):
        BoundedLoss(loss).check(Target(np.column_stack([np.array(rows, dtype=float), ends])))
