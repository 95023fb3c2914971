"""Estimators that predict distributions: their objects, metrics, identities and bad input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from tests.cases import DISTRIBUTIONS, PLAIN, ids

import hilboost
from hilboost import BoostingRegressor
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.distributions import Distribution
from hilboost.losses import Normal
from hilboost.metrics import CRPS, IntervalScore, LogScore

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 3))
Y = np.sin(3 * X[:, 0]) + np.exp(X[:, 1]) * RNG.normal(size=300)
MODEL = BoostingRegressor("normal", **PLAIN).fit(X, Y)

all_losses = pytest.mark.parametrize("case", DISTRIBUTIONS, ids=ids(DISTRIBUTIONS))


def fitted(case, n=120, **parameters):
    y = case.draw(np.random.default_rng(1), n)[:, 0]
    rows = np.column_stack([y + RNG.normal(size=n), RNG.normal(size=n)])
    return BoostingRegressor(case.name, **PLAIN | parameters).fit(rows, y), rows, y


@all_losses
def test_a_distribution_of_each_row(case, tmp_path):
    model, rows, y = fitted(case)
    found = model.predict_distribution(rows)
    assert isinstance(found, Distribution)
    assert len(found) == len(y)
    assert found.quantile(0.5).shape == found.mean.shape == found.std.shape == y.shape
    assert found.quantile([0.1, 0.9]).shape == found.interval(0.9).shape == (len(y), 2)
    assert found.cdf(y).shape == found.pdf(y).shape == found.crps(y).shape == y.shape
    assert found.cdf(1.0).shape == y.shape
    assert found.cdf(np.tile(y[:, None], 3)).shape == (len(y), 3)
    np.testing.assert_array_equal(found.sample(5, 0), found.sample(5, 0))
    np.testing.assert_array_equal(model.predict(rows), found.mean)
    constant = model.first_stages(0).predict_distribution(rows)
    assert found.log_score(y).mean() < constant.log_score(y).mean()
    assert found.crps(y).mean() < constant.crps(y).mean()
    model.save(tmp_path / "model")
    loaded = hilboost.load(tmp_path / "model").predict_distribution(rows)
    np.testing.assert_array_equal(loaded.log_score(y), found.log_score(y))


@all_losses
def test_the_unit_of_the_target_does_not_matter(case):
    model, rows, y = fitted(case)
    if case.name in ("beta", "negative_binomial", "zero_inflated_poisson"):
        return
    for unit in (1e-9, 1e9):
        scaled = clone(model).fit(rows, y * unit).predict_distribution(rows)
        expected = model.predict_distribution(rows).log_score(y) + np.log(unit)
        np.testing.assert_allclose(scaled.log_score(y * unit), expected, rtol=1e-5, atol=1e-5)


def test_a_given_scale_is_squared_error_bit_for_bit():
    early = PLAIN | {"early_stopping": True, "n_estimators": 40, "learner": "tree"}
    expected = BoostingRegressor("squared_error", **early).fit(X, Y)
    for scale in (1.0, 2.0, 0.25):
        model = BoostingRegressor(Normal(scale), **early).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        np.testing.assert_array_equal(model.predict_distribution(X).std, scale)
        residual = (Y - model.predict(X)) / scale
        log_score = 0.5 * residual**2 + np.log(scale * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(model.predict_distribution(X).log_score(Y), log_score)


def test_history_is_the_mean_log_score():
    np.testing.assert_allclose(
        MODEL.history_.train[-1], MODEL.predict_distribution(X).log_score(Y).mean()
    )


def test_metrics_and_scores_of_scikit_learn():
    metrics = ["crps", "log_score", "interval_score"]
    model = BoostingRegressor("normal", **PLAIN | {"eval_metric": metrics})
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    found, last = model.predict_distribution(X[200:]), model.n_estimators_
    for name, scores, scorer in (
        ("crps", found.crps(Y[200:]), CRPS()),
        ("log_score", found.log_score(Y[200:]), LogScore()),
        ("interval_score", found.interval_score(Y[200:]), IntervalScore()),
    ):
        np.testing.assert_allclose(model.history_.metrics[name][last], scores.mean())
        np.testing.assert_allclose(scorer(model, X[200:], Y[200:]), -scores.mean())
    small = BoostingRegressor("normal", **PLAIN)
    assert (cross_val_score(small, X, Y, cv=2, scoring=CRPS()) < 0).all()


@pytest.mark.parametrize(
    ("loss", "y", "said"),
    [
        ("gamma_shape", [1.0, -2.0], "requires positive targets; row 1 has -2"),
        ("negative_binomial", [1.0, -2.0], "requires counts"),
        ("zero_inflated_poisson", [1.0, 0.5], "row 1 has 0.5"),
        ("beta", [0.5, 1.0], "requires targets between 0 and 1; row 1 has 1"),
        ("normal", [[1.0, 2.0], [3.0, 4.0]], "supports one target column; got 2"),
    ],
)
def test_impossible_targets(loss, y, said):
    with pytest.raises(InvalidData, match=said):
        BoostingRegressor(loss).fit(X[:2], y)


def test_bad_arguments():
    found = MODEL.predict_distribution(X)
    with pytest.raises(InvalidParameter, match="q must be a number between 0 and 1"):
        found.quantile(1.5)
    with pytest.raises(InvalidParameter, match="coverage must be a number between 0 and 1"):
        found.interval(1)
    with pytest.raises(InvalidParameter, match="coverage must be a number between 0 and 1"):
        IntervalScore(0)
    with pytest.raises(InvalidData, match="one number for each of the 300 rows"):
        found.crps(Y[:5])
    with pytest.raises(InvalidData, match="one or several for each of the 300 rows"):
        found.cdf(Y[:5])
    with pytest.raises(InvalidParameter, match="scale must be a positive number"):
        Normal(0)
    with pytest.raises(InvalidParameter, match="n_components must be an integer from 2 to 10"):
        hilboost.losses.MixtureOfNormals(1)
    plain = BoostingRegressor(**PLAIN).fit(X, Y)
    with pytest.raises(IncompatibleParts, match="predicts no distributions"):
        plain.predict_distribution(X)
    with pytest.raises(IncompatibleParts, match="predicts no distributions"):
        BoostingRegressor(eval_metric="crps").fit(X, Y)
