"""``learner="auto"``: stages that are not fitted twice, and length scales that suit the loss."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hilboost import BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.inputs import encoded_features
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.losses import SquaredError
from hilboost.training import race, train
from hilboost.training.blending import Blend, HeldOutOutputs
from hilboost.training.kernel_candidates import Members, OwnCenters, SharedCenters

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(300, 4))
STEPS = 0.3 * (X[:, 3] > 0.5)
BOTH = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + STEPS
LINEAR = Rows.of(X, X @ [[1.0], [2.0], [0.0], [1.0]])


@pytest.mark.parametrize("losses", [[3, 2, 1], [3, 2, 1.999], [3, 3], None])
@pytest.mark.parametrize("kind", ["own", "shared"])
def test_a_loss_other_than_squares_may_have_a_longer_length_scale(kind, losses):
    learner, left = MetricKernelLearner(), iter(losses or [])

    def loss_of(rows, outputs):
        target = LINEAR.Y[rows]
        assert len(rows) == 30  # a fifth of half of the rows
        assert np.abs(outputs - target).mean() < 0.3 * np.abs(target).mean()
        return next(left)

    def machines(loss_of):
        folds, team = np.arange(300) % 2, ThreadTeam()
        learned = tuple(np.flatnonzero(folds != k).astype(np.uint32) for k in range(2))
        members = Members((X,) * 2, folds, learned, (np.ones(4),) * 2, 0, team, None, loss_of)
        if kind == "shared":
            return SharedCenters(learner, LINEAR, members)
        return OwnCenters(learner, [LINEAR, LINEAR], members)

    usual, other = machines(None), machines(losses and loss_of)
    steps = {None: 0, 1: 2, 1.999: 1, 3: 0}[losses and losses[-1]]
    for member in range(2):
        short, long = (one.model(member).inputs(X) for one in (usual, other))
        np.testing.assert_allclose(long * 1.3**steps, short)
    assert next(left, None) is None


def test_all_features_are_divided():
    features = encoded_features(np.where(X > 1.8, np.nan, X), LINEAR.Y, None)
    rotated = replace(features, rotation=RNG.normal(size=(features.width, 2)))
    for one in (features, rotated):
        np.testing.assert_allclose(one.scaled(np.full(one.width, 1 / 1.3))(X) * 1.3, one(X))


def test_what_another_weight_of_the_trees_gains_is_no_merit_of_the_kernel_machine():
    rng = np.random.default_rng(0)
    y, noise, other = rng.normal(size=(3, 600, 1))

    def blend(trees, kernel):
        return HeldOutOutputs(SquaredError(), np.zeros(1), Target(y), trees, kernel).blend

    trees = 0.8 * y + noise / 50
    found = blend(trees, other)
    assert found.gain == pytest.approx(found.gains_of_weight[0], abs=0.02)
    assert found.gain > 0.9
    assert not found.material.any()
    assert not blend(trees, noise).is_promising  # a weight of zero is the best
    found = blend(noise / 50 + 0.5 * y + other, y - other)
    assert found.gains_of_weight[0] < 0.5 < found.gain
    assert found.material.all()


@pytest.mark.parametrize(
    ("gain", "error", "promising"),
    [
        (0.02, 0.01, True),
        (0.004, 0.001, False),
        (0.01, 0.025, False),
        (-0.01, 0.04, True),
        (-0.02, 0.04, False),
    ],
)
def test_an_uncertain_gain_of_the_first_member_does_not_end_the_attempt(gain, error, promising):
    of_one = np.array([gain]), np.array([error]), np.ones(1)
    assert Blend(np.ones((2, 1)), *of_one).is_promising is promising
    assert not Blend(np.array([[1.0], [0.0]]), *of_one).is_promising


def _stages_begun(monkeypatch):
    """Note the number of stages with which each run of the loop begins."""
    begun, boost = [], race.boost

    def noted(config, target, state, *rest):
        begun.append(len(state.members[0].stages))
        boost(config, target, state, *rest)

    for module in (race, train):
        monkeypatch.setattr(module, "boost", noted)
    return begun


def _same_fit(model, usual, inputs):
    np.testing.assert_array_equal(model.predict(inputs), usual.predict(inputs))
    for name in ("train", "validation"):
        np.testing.assert_array_equal(
            getattr(model.history_, name), getattr(usual.history_, name), err_msg=name
        )
    assert model.history_.metrics.keys() == usual.history_.metrics.keys()
    for name, values in model.history_.metrics.items():
        np.testing.assert_array_equal(values, usual.history_.metrics[name])
    assert len(model.history_.seconds) == len(usual.history_.seconds)


@pytest.mark.slow
@pytest.mark.parametrize("callbacks", [[], [lambda event: None]])
def test_the_stages_of_a_settled_choice_are_those_of_the_fit(callbacks, monkeypatch):
    begun = _stages_begun(monkeypatch)
    monkeypatch.setattr(race, "_LONG_RACE", 0.0)
    settings = {"cv_folds": 1, "n_estimators": 150, "random_state": 0}
    model = BoostingRegressor(**settings).fit(X, BOTH, callbacks=callbacks)
    assert begun == [0, 0 if callbacks else 50]  # callbacks see every stage
    settings["max_features"] = model.resolved_.max_features
    usual = BoostingRegressor(**settings, max_leaf_nodes=31).fit(X, BOTH)
    _same_fit(model, usual, X)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "n", "n_kept", "callbacks"),
    [
        *product(["auto", "tree"], [2500], [20], [[], [lambda event: None]]),
        ("tree", 230_000, 80, []),  # so many in turn
    ],
)
def test_the_stages_of_the_best_trial_run_are_those_of_the_fit(
    learner, n, n_kept, callbacks, monkeypatch
):
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, size=(n, 4))
    y = np.sin(4 * inputs[:, 0]) * np.sin(4 * inputs[:, 1]) + rng.normal(size=n) / 5
    begun = _stages_begun(monkeypatch)
    settings = {"cv_folds": 1, "n_estimators": 80, "random_state": 0, "learner": learner}
    settings |= {"eval_metric": "mae"} if learner == "tree" else {}
    model = BoostingRegressor(**settings).fit(inputs, y, callbacks=callbacks)
    assert begun[-1] == (0 if callbacks else n_kept)
    chosen = model.fitted_.resolved
    usual = BoostingRegressor(**settings, max_features=chosen.max_features).fit(inputs, y)
    _same_fit(model, usual, inputs)


def test_trial_runs_with_another_learning_rate_are_not_the_start(monkeypatch):
    begun = _stages_begun(monkeypatch)
    settings = {"cv_folds": 1, "n_estimators": 60, "learner": "tree", "random_state": 0}
    model = BoostingRegressor(**settings, learning_rate=0.2).fit(X, BOTH)
    assert len(begun) > 1
    assert begun[-1] == 0
    assert model.fitted_.resolved.learning_rate == 0.2


def test_a_trial_run_that_stopped_at_its_last_stage_is_not_the_start(monkeypatch):
    begun = _stages_begun(monkeypatch)
    noise = np.random.default_rng(1).normal(size=len(X))
    settings = {"cv_folds": 1, "n_estimators": 300, "learner": "tree", "random_state": 0}
    long = BoostingRegressor(**settings, n_iter_no_change=30).fit(X, noise)
    settings["n_iter_no_change"] = 200 - int(np.argmin(long.history_.validation))
    begun.clear()
    model = BoostingRegressor(**settings).fit(X, noise)
    assert (max(begun), begun[-1]) == (50, 0)
    watched = BoostingRegressor(**settings).fit(X, noise, callbacks=[lambda _: None])
    assert len(model.history_.train) == 201
    _same_fit(model, watched, X)


def test_the_run_beside_a_kernel_machine_goes_on_as_long_as_the_others(runs, monkeypatch):
    monkeypatch.setattr(race, "_LONG_RACE", 0.0)
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, size=(1200, 4))
    y = np.sign(inputs[:, 0] * inputs[:, 1]) + np.floor(8 * inputs[:, 2]) % 2 + inputs[:, 3]
    BoostingRegressor(random_state=0).fit(inputs, y, callbacks=[lambda _: True])
    first, asked, _, reached = runs[0]  # beside a small kernel machine
    assert (asked, reached) == (50, 50)
    last = {settings: reached for settings, asked, _, reached in runs if asked == 200}
    assert last[first] == 200
    assert len(last) == 2
