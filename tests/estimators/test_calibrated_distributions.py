"""Distributions of quantiles, kernel machines and survival models, and their calibration."""

import numpy as np
import pytest
from scipy import stats
from tests.cases import PLAIN
from tests.reloaded import reloaded

from hilboost import BoostingRegressor, BoostingSurvival, KernelBoostingRegressor
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.distributions import CalibratedDistribution
from hilboost.distributions.interpolated import knots_of
from hilboost.losses import Normal

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(900, 3))
Y = np.sin(3 * X[:, 0]) + np.exp(X[:, 1]) * RNG.normal(size=900)
FIT, HELD_OUT, NEW = slice(0, 300), slice(300, 600), slice(600, 900)

MODELS = {
    "normal": BoostingRegressor("normal", **PLAIN),
    "quantiles": BoostingRegressor("quantile", quantile=(0.9, 0.1, 0.5), **PLAIN),
    "kernel machine": KernelBoostingRegressor(random_state=0),
}


def distance_from_uniform(levels):
    """In units of the 95 % bound for as many calibration rows as new ones."""
    return stats.kstest(levels, "uniform").statistic / (1.358 * np.sqrt(2 / len(levels)))


@pytest.mark.parametrize("name", MODELS)
def test_calibrated_levels_are_uniform(name):
    model = MODELS[name].fit(X[FIT], Y[FIT] * 1e6)
    plain = model.predict_distribution(X[NEW])
    np.testing.assert_allclose(plain.crps(Y[NEW] * 1e6).mean() / 1e6, 0.75, atol=0.15)
    model.calibrate(X[HELD_OUT], Y[HELD_OUT] * 1e6)
    found = model.predict_distribution(X[NEW])
    assert distance_from_uniform(found.pit(Y[NEW] * 1e6)) < 1
    low, high = model.predict_interval(X[NEW], 0.8).T
    assert 0.75 < ((low <= Y[NEW] * 1e6) & (Y[NEW] * 1e6 <= high)).mean() < 0.87
    loaded = reloaded(model).predict_distribution(X[NEW])
    np.testing.assert_array_equal(loaded.quantile(0.3), found.quantile(0.3))


def test_folds_of_a_fit_calibrate_levels():
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, size=(1500, 3))
    y = np.sin(3 * rows[:, 0]) + rng.laplace(size=1500)
    model = BoostingRegressor("normal", learner="tree", random_state=0).fit(rows[:900], y[:900])
    found = model.predict_distribution(rows[900:])
    assert distance_from_uniform(found.base.pit(y[900:])) > distance_from_uniform(
        found.pit(y[900:])
    )
    assert found.log_score(y[900:]).mean() < found.base.log_score(y[900:]).mean()
    np.testing.assert_array_equal(found.base.mean, model.predict(rows[900:]))
    assert found.parameters is found.base.parameters
    loaded = reloaded(model).predict_distribution(rows[900:])
    np.testing.assert_array_equal(loaded.quantile(0.3), found.quantile(0.3))
    fixed = BoostingRegressor(Normal(1.0), learner="tree", random_state=0).fit(rows[:900], y[:900])
    np.testing.assert_array_equal(fixed.predict_distribution(rows).std, 1.0)


def test_levels_of_members_become_those_of_their_mean():
    """A mean of trees is more exact than one of them: the levels are as wide as those of new rows.

    The factor of their normal scores is written down again, from members taken apart.
    """
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, size=(2400, 4))
    y = np.sin(6 * rows[:, 0]) * rows[:, 1] + 0.02 * rng.normal(size=2400)
    weight = rng.integers(1, 3, size=400).astype(float)
    model = BoostingRegressor("normal", **PLAIN | {"learner": "tree", "cv_folds": 4})
    model.set_params(early_stopping=True, n_estimators=30, learning_rate=0.2)
    model.fit(rows[:400], y[:400], weight)
    calibration = model.fitted_.calibration
    raws = np.array(model.fitted_.raw_of_members(rows[:400]))
    learned = np.arange(4)[:, None] != calibration.folds

    def scores(raw, y):
        return (y - raw[..., 0]) / np.exp(raw[..., 1])

    mean_of_others = np.einsum("mnr,mn->nr", raws, learned) / 3
    each = (scores(raws, y[:400]) ** 2 * learned).sum(axis=0) / 3
    factor = weight @ scores(mean_of_others, y[:400]) ** 2 / (weight @ each)
    out_of_fold = scores(raws[calibration.folds, np.arange(400)], y[:400])
    np.testing.assert_allclose(
        stats.norm.ppf(calibration.levels), np.sqrt(factor) * out_of_fold, atol=1e-6
    )
    new = scores(model.predict_raw(rows[400:]), y[400:])
    assert np.mean(out_of_fold**2) > 1.2 * np.mean(new**2)
    np.testing.assert_allclose(factor * np.mean(out_of_fold**2), np.mean(new**2), rtol=0.2)


def test_levels_that_chance_explains_stay():
    even = (np.arange(100) + 0.5) / 100
    np.testing.assert_allclose(knots_of(even, None), np.linspace(0, 1, 11))
    bent = knots_of(even**2, None)
    assert np.abs(bent - np.linspace(0, 1, 11) ** 2).max() < 0.02
    np.testing.assert_array_equal(knots_of(np.full(100, 0.632), None), np.linspace(0, 1, 11))


def test_peaks_are_no_jumps():
    narrow = Normal().distribution_of(np.column_stack([np.full(9, 4.5), np.full(9, -14.0)]))
    found = CalibratedDistribution.of(narrow, [np.linspace(0, 1, 5)], np.empty(0, dtype=np.int64))
    np.testing.assert_allclose(found.pdf(4.5), narrow.pdf(4.5))


def test_groups_are_calibrated_separately():
    model = BoostingRegressor("normal", **PLAIN).fit(X[FIT], Y[FIT])
    group = np.where(X[:, 2] > 0, "a", "b")
    shifted = Y + 5 * (group == "a")
    weight = np.where(np.arange(900) % 7, 1.0, 0.0)
    model.calibrate(X[HELD_OUT], shifted[HELD_OUT], weight[HELD_OUT], groups=group[HELD_OUT])
    found = model.predict_distribution(X[NEW], groups=group[NEW])
    for name in ("a", "b"):
        here = group[NEW] == name
        assert distance_from_uniform(found.pit(shifted[NEW])[here]) < 1
    low, high = model.predict_interval(X[NEW], 0.8, groups=group[NEW]).T
    assert ((low <= shifted[NEW]) & (shifted[NEW] <= high)).mean() > 0.75
    with pytest.raises(InvalidData, match="calibrated by group"):
        model.predict_distribution(X[NEW])


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_times_of_events(loss):
    time, end = RNG.exponential(np.exp(X[:, 0])), RNG.exponential(4.0, size=900)
    y = np.array(list(zip(time <= end, np.minimum(time, end), strict=True)), dtype="?,f8")
    model = BoostingSurvival(loss, **PLAIN | {"n_estimators": 30}).fit(X[FIT], y[FIT])
    found = model.predict_distribution(X[NEW])
    some = model.event_times_[[5, 50, 100]]
    expected = 1 - model.predict_survival_function(X[NEW], some)
    at = found.cdf(np.tile(some, (300, 1)))
    np.testing.assert_allclose(at, expected, atol=2e-3)
    assert stats.kstest(found.pit(time[NEW]), "uniform").statistic < 0.15
    assert np.isfinite(found.crps(time[NEW])).all()
    assert np.isfinite(found.log_score(time[NEW])).all()
    assert (found.quantile([0.0, 0.01]) >= 0).all()


def test_models_without_distributions():
    with pytest.raises(IncompatibleParts, match="predicts no distributions"):
        BoostingRegressor("quantile", **PLAIN).fit(X, Y).predict_distribution(X)
    two = KernelBoostingRegressor(random_state=0).fit(X[:50], np.column_stack([Y, -Y])[:50])
    with pytest.raises(IncompatibleParts, match="predicts no distributions"):
        two.predict_distribution(X)
