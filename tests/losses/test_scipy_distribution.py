"""Distributions of SciPy as losses: the contract, closed forms, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from tests.cases import PLAIN

import hilboost
from hilboost import BoostingRegressor
from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.core.target import Target
from hilboost.losses import Laplace, Normal, StudentT
from hilboost.losses.scipy_distribution import ScipyDistribution
from hilboost.testing import DistributionContract

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 3))
Y = np.sin(3 * X[:, 0]) + np.exp(X[:, 1]) * RNG.gumbel(size=300)

GIVEN = {
    "norm": stats.norm,
    "gumbel_r": stats.gumbel_r,
    "logistic": stats.logistic(),
    "t": stats.t(df=5),
    "skewnorm": stats.skewnorm(2.0),
    "gamma": stats.gamma(2.5),
    "expon": stats.expon,
    "invgauss": stats.invgauss(mu=0.7),
}
each = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


class OfGiven(DistributionContract):
    def __init__(self, given):
        self.given = given

    def make(self):
        return ScipyDistribution.of(self.given)


@pytest.mark.parametrize("name", ["gumbel_r", "t", "gamma", "expon"])  # by support and shapes
@pytest.mark.parametrize("check", DistributionContract.checks())
def test_contract(name, check):
    getattr(OfGiven(GIVEN[name]), check)()


@pytest.mark.parametrize(
    ("given", "own", "more"),
    [(stats.norm, Normal(), ()), (stats.laplace, Laplace(), ()), (stats.t(df=4), StudentT(), (4,))],
    ids=["norm", "laplace", "t"],
)
def test_derivatives_are_those_of_the_built_in_losses(given, own, more):
    loss, p = ScipyDistribution.of(given), (RNG.normal(size=50), RNG.gamma(2, size=50))
    y, q = 3 * RNG.normal(size=50), (*p, *(np.full(50, float(one)) for one in more))
    np.testing.assert_allclose(loss.log_density(y, p), own.log_density(y, q), rtol=1e-9)
    np.testing.assert_allclose(loss.score(y, p), own.score(y, q)[:2], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(loss.information(p), own.information(q)[:2], rtol=1e-3)
    for upper in (True, False):
        found = loss.log_tail(y, p, upper), own.log_tail(y, q, upper)
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "information"),
    [
        (stats.gumbel_r, (1.0, np.pi**2 / 6 + (1 - np.euler_gamma) ** 2)),
        (stats.logistic, (1 / 3, (3 + np.pi**2) / 9)),
        (stats.t(df=4), (5 / 7, 8 / 7)),
        (stats.gamma(2.5), (2.5,)),
        (stats.weibull_min(1.5), (2.25,)),
    ],
)
def test_information_has_its_closed_form(given, information):
    loss = ScipyDistribution.of(given)
    p = (np.zeros(1), np.ones(1))[-len(loss.parameters) :]
    np.testing.assert_allclose(np.ravel(loss.information(p)), information, rtol=1e-6)


def test_densities_far_away_have_finite_scores():
    y = np.array([-1e12, -1e3, 1e3, 1e12])
    for given in (stats.gumbel_r, stats.skewnorm(2.0), stats.norm):
        loss, p = ScipyDistribution.of(given), (np.zeros(4), np.ones(4))
        assert np.isfinite(loss.log_density(y, p)).all()
        location, _ = loss.score(y, p)
        assert (np.isfinite(location) & (np.sign(location) == np.sign(y))).all()


def test_a_fit_is_that_of_the_built_in_loss():
    expected = BoostingRegressor("normal", **PLAIN).fit(X, Y).predict_distribution(X).log_score(Y)
    for given in (stats.norm, stats.norm()):
        found = BoostingRegressor(given, **PLAIN).fit(X, Y).predict_distribution(X).log_score(Y)
        np.testing.assert_allclose(found, expected, atol=0.02)
        np.testing.assert_allclose(found.mean(), expected.mean(), atol=1e-3)


def test_the_right_family_is_better_than_a_wrong_one():
    rng = np.random.default_rng(1)
    new = rng.uniform(-1, 1, size=(2000, 3))
    y = np.sin(3 * new[:, 0]) + np.exp(new[:, 1]) * rng.gumbel(size=2000)
    scores = [
        BoostingRegressor(given, learner="tree", random_state=0, n_jobs=1, learning_rate=0.2)
        .fit(new[:1000], y[:1000])
        .predict_distribution(new[1000:])
        .log_score(y[1000:])
        .mean()
        for given in (stats.gumbel_r, stats.norm, stats.gumbel_l)
    ]
    assert scores[0] < scores[1] < scores[2]


@each
def test_files_and_pickles_keep_the_distribution(given, tmp_path):
    y = np.exp(Y / 2) if ScipyDistribution.of(given).support == "positive" else Y
    model = clone(BoostingRegressor(given, **PLAIN)).fit(X, y)
    expected = model.predict_distribution(X)
    model.save(tmp_path / "model")
    for other in (hilboost.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        found = other.predict_distribution(X)
        np.testing.assert_array_equal(found.log_score(y), expected.log_score(y))
        np.testing.assert_array_equal(found.quantile([0.1, 0.9]), expected.quantile([0.1, 0.9]))
        again = clone(other).fit(X, y)
        np.testing.assert_array_equal(again.predict_raw(X), model.predict_raw(X))
    assert repr(hilboost.load(tmp_path / "model").loss) == repr(ScipyDistribution.of(given))


def test_censored_rows_of_a_distribution_of_scipy():
    y = np.empty(300, dtype=[("lower", float), ("upper", float)])
    y["lower"], y["upper"] = np.minimum(Y, 1), np.where(Y > 1, np.inf, Y)
    found = BoostingRegressor(stats.norm, **PLAIN).fit(X, y).predict_distribution(X)
    expected = BoostingRegressor("normal", **PLAIN).fit(X, y).predict_distribution(X)
    np.testing.assert_allclose(found.log_score(y).mean(), expected.log_score(y).mean(), atol=1e-3)


class Own(stats.rv_continuous):
    """A distribution that SciPy does not have."""


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (stats.poisson(3), InvalidParameter, "discrete"),
        (stats.poisson, InvalidParameter, "discrete"),
        (Own(name="own"), InvalidParameter, "not in scipy.stats"),
        (stats.t, InvalidParameter, r"requires its shapes; pass scipy.stats.t\(df=...\)"),
        (stats.t([3, 4]), InvalidParameter, "arrays"),
        (stats.t(4, loc=1), InvalidParameter, "both are learned"),
        (stats.norm(scale=2), InvalidParameter, "both are learned"),
        (stats.t(-1), InvalidParameter, "not possible"),
        (stats.beta(2, 3), IncompatibleParts, "has targets from 0 to 1"),
        (stats.pareto(2), IncompatibleParts, "has targets from 1 to inf"),
        (stats.cauchy, IncompatibleParts, "no finite mean"),
        (stats.norminvgauss(1.25, 0.5), IncompatibleParts, "no finite information"),
    ],
)
def test_refusals(given, error, message):
    with pytest.raises(error, match=message):
        BoostingRegressor(given, **PLAIN).fit(X, Y)


def test_unknown_names_are_refused():
    with pytest.raises(InvalidParameter, match="no continuous distribution 'nobody'"):
        ScipyDistribution("nobody")
    with pytest.raises(InvalidParameter, match="with 1 shapes"):
        ScipyDistribution("norm", (1.0,))


def test_targets_outside_of_the_support_are_refused():
    with pytest.raises(ValueError, match="loss='scipy.stats.expon' requires positive targets"):
        ScipyDistribution.of(stats.expon).check(Target(np.array([[1.0], [-1.0]])))
