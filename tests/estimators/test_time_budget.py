"""``time_budget`` of the estimators for tables."""

import time

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival
from hilboost.training import watch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 8))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + RNG.normal(size=3000) / 5
ONE = {"n_jobs": 1, "random_state": 0}


def seconds(function):
    """Of the processor: others may use it, too."""
    began = time.process_time()
    function()
    return time.process_time() - began


def test_a_short_fit_takes_larger_steps_and_no_trials():
    BoostingRegressor(**ONE, learner="tree").fit(X, Y)  # compiled now
    model = BoostingRegressor(**ONE, learner="tree", time_budget=0.6)
    assert seconds(lambda: model.fit(X, Y)) < 1.2 * 0.6
    resolved = model.fitted_.resolved
    assert 0.08 < resolved.learning_rate <= 0.3
    assert resolved.max_features == 1.0
    assert model.score(X, Y) > 0.7


def test_what_is_given_is_kept():
    model = BoostingRegressor(**ONE, learner="tree", learning_rate=0.05, time_budget=0.3)
    assert model.fit(X, Y).fitted_.resolved.learning_rate == 0.05
    model = BoostingRegressor(**ONE, n_estimators=10**6, early_stopping=False, time_budget=0.3)
    assert model.fit(X, Y).n_estimators_ < 10**6


def test_fewer_members_are_fitted_in_less_time():
    folds = [
        BoostingRegressor(**ONE, learner="tree", n_estimators=2, early_stopping=True)
        .set_params(time_budget=budget)
        .fit(X, Y)
        .fitted_.resolved.cv_folds
        for budget in (0.01, 100.0)
    ]
    assert folds == [1, 4]


def test_a_kernel_machine_needs_time():
    table, target = X[:600], Y[:600]
    one = ONE | {"cv_folds": 1}
    BoostingRegressor(**one).fit(table, target)  # compiled now
    short = BoostingRegressor(**one, time_budget=0.3).fit(table, target)
    assert short.fitted_.parts is None
    enough = BoostingRegressor(**one, time_budget=3.0)
    assert seconds(lambda: enough.fit(table, target)) < 1.2 * 3.0
    assert enough.parts_["kernel"].weight > 0
    assert enough.score(X[600:], Y[600:]) > short.score(X[600:], Y[600:])


def test_a_better_kernel_machine_is_found_early_and_steps_keep_their_trees():
    steps = np.floor(2 * X[:, 0]) + 3 * np.floor(2 * X[:, 1])
    smooth, stepwise = (
        BoostingRegressor(**ONE, cv_folds=1, time_budget=1.0).fit(X, target)
        for target in (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], steps)
    )
    assert smooth.parts_["kernel"].n_centers >= 500
    assert smooth.parts_["kernel"].gain > 0.5
    rate = stepwise.fitted_.resolved.learning_rate
    assert stepwise.n_estimators_ * rate > watch._PROGRESS
    assert stepwise.score(X, steps) > 0.99


def test_a_callback_still_ends_the_fit():
    model = BoostingRegressor(**ONE, time_budget=60.0)
    model.fit(X, Y, callbacks=[lambda event: event.stage == 5])
    assert model.n_estimators_ == 5
    assert model.fitted_.parts is None


@pytest.mark.parametrize(
    "estimator", [BoostingRegressor, BoostingClassifier, BoostingRanker, BoostingSurvival]
)
def test_it_must_be_positive(estimator):
    groups = {"groups": np.zeros(20)} if estimator is BoostingRanker else {}
    with pytest.raises(ValueError, match="time_budget"):
        estimator(time_budget=0).fit(X[:20], np.arange(20) % 2, **groups)
