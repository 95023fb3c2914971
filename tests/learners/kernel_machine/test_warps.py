"""Warps of features by the splits of boosted trees."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from hilboost import BoostingRegressor, KernelBoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.callbacks import Checkpoint
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.inputs import learned_warps, warped
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.tuning.choose import with_warps
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.learners.kernel_machine.tuning.search import Clock, Search
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns


def drawn(seed, n=300, d=3):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d - 1)), rng.integers(0, 4, n)])
    return X, rng.integers(1, 4, n).astype(float), rng


def steps(X):
    return (X[:, :1] > 0.4) * 2.0 - (X[:, 1:2] > -0.3) * (X[:, 2:] > 1)


def nested_steps():
    X, _, _ = drawn(2, 2400, 6)
    above = X > [0.4, -0.3, 0.8, 0.2, -0.5, 1]
    left, right = above[:, 1] * (2.0 - above[:, 2] * above[:, 5]), above[:, 3] * above[:, 4]
    y = np.where(above[:, 0], left, right)
    return X, y


def mapped(points):
    plain = FeatureMap.unscaled(3)
    return replace(plain, scale=np.array([2.0, 0.5, 1]), warps=((0, points), (2, 2 * points)))


def searched(rows, categorical=()):
    columns = Columns.of(rows.X.shape[1], categorical)
    return Search(columns, rows, len(rows), 1e-7, ThreadTeam(), Clock(None))


@given(st.integers(0, 10**6))
def test_warps_increase_and_standardize(seed):
    X, weight, rng = drawn(seed)
    Y = rng.normal(size=(len(X), int(rng.integers(1, 3))))
    rows = Rows(X, Y, weight, np.arange(len(X)))
    found = learned_warps(rows, [0, 2])
    assert {k for k, _ in found} <= {0, 2}
    Z = warped(rows, found).X
    np.testing.assert_array_equal(Z[:, 1], X[:, 1])
    for k, points in found:
        assert (np.diff(points, axis=0) > 0).all()
        order = np.argsort(X[:, k], kind="stable")
        assert (np.diff(Z[order, k])[np.diff(X[order, k]) > 0] > 0).all()
        assert np.average(Z[:, k], weights=weight) == pytest.approx(0, abs=1e-9)
        assert np.average(Z[:, k] ** 2, weights=weight) == pytest.approx(1)


@given(st.integers(0, 10**6))
def test_weights_are_repetitions(seed):
    X, weight, _ = drawn(seed)
    times = weight.astype(int)
    one = learned_warps(Rows.of(X, steps(X), weight), [0, 1, 2])
    other = learned_warps(
        Rows.of(np.repeat(X, times, axis=0), np.repeat(steps(X), times, axis=0)), [0, 1, 2]
    )
    assert [k for k, _ in one] == [k for k, _ in other]
    for (_, before), (_, after) in zip(one, other, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-6)


def test_a_warp_rises_where_the_function_does():
    X, _, _ = drawn(0, 200)
    (k, points), *_ = learned_warps(Rows.of(X, (X[:, :1] > 0.4) * 1.0), [0, 1, 2])
    x, y = points.T
    place = int(np.argmax(np.diff(y)))
    assert k == 0
    assert x[place] <= 0.4 < x[place + 1]
    assert np.diff(y)[place] > 0.6 * np.ptp(y)


def test_constant_targets_and_features_and_few_heavy_rows_have_no_warp():
    X, _, _ = drawn(0)
    assert learned_warps(Rows.of(X, np.ones((len(X), 1))), [0, 1, 2]) == ()
    few = np.where(np.arange(len(X)) < 6, 1e3, 1.0)  # rows that weigh more than all others
    assert learned_warps(Rows.of(X, steps(X), few), [0, 1, 2]) == ()
    search = searched(Rows.of(0 * X, steps(X)))
    assert with_warps(search) == (search, ())


def test_warps_are_kept_for_steps_and_not_for_smooth_functions():
    X, _, rng = drawn(1, 1200)
    for target, is_kept in ((steps(X), True), (np.sin(X @ np.ones((3, 1))), False)):
        rows = Rows.of(X, (target - target.mean()) / target.std())
        search, found = with_warps(searched(rows))
        assert bool(found) == is_kept
        np.testing.assert_array_equal(search.sampled.X, warped(rows, found).X)


def test_codes_of_categories_are_not_warped():
    X, _, _ = drawn(1, 1200)
    _, found = with_warps(searched(Rows.of(X, steps(X)), (2,)))
    assert {k for k, _ in found} == {0, 1}


@given(st.integers(0, 10**6))
def test_factors_multiply_warped_features(seed):
    rng = np.random.default_rng(seed)
    features = mapped(np.sort(rng.normal(size=(5, 2)), axis=0))
    X, factors = rng.normal(size=(20, 3)), rng.choice([0.0, 0.5, 2.0, -1.0], 3)
    kept = np.flatnonzero(factors)
    np.testing.assert_allclose(features.scaled(factors)(X), (features(X) * factors)[:, kept])
    assert features.scaled(np.abs(factors)).is_valid(3)


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((2, 2)),
        np.array([[1.0, 0.0], [0.0, 1.0]]),
        np.array([[0.0, np.nan]]),
        np.zeros((3, 3)),
        np.empty((0, 2)),
    ],
)
def test_points_that_are_no_function_are_not_valid(points):
    assert mapped(np.array([[0.0, 1.0], [1.0, 3.0]])).is_valid(3)
    assert not mapped(points).is_valid(3)


def test_an_estimator_finds_steps():
    X, y = nested_steps()
    model = KernelBoostingRegressor(random_state=0).fit(X[:1600], y[:1600])
    assert model.fitted_.model.stages[0].terms[0].model.inputs.warps
    trees = BoostingRegressor(learner="tree", random_state=0).fit(X[:1600], y[:1600])
    assert model.score(X[1600:], y[1600:]) > trees.score(X[1600:], y[1600:])


def test_resumed_fits_and_files_have_warps(tmp_path):
    X, y = nested_steps()
    model = KernelBoostingRegressor(
        stages="sparse", n_basis=100, n_estimators=3, early_stopping=False, random_state=0
    )
    whole = clone(model).fit(X, y)
    assert whole.fitted_.model.stages[0].terms[0].model.inputs.warps
    path = tmp_path / "fit.checkpoint"
    clone(model).fit(X, y, callbacks=[Checkpoint(path), lambda event: event.stage == 1])
    resumed = clone(model).fit(X, y, callbacks=[Checkpoint(path)])
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    resumed.save(tmp_path / "model", training_data=True)
    loaded = KernelBoostingRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))


def test_lambda_of_other_losses_is_chosen_on_warped_features():
    X, y = nested_steps()
    model = KernelBoostingRegressor(loss="absolute_error", random_state=0).fit(X, y)
    assert model.fitted_.model.stages[0].terms[0].model.inputs.warps
    assert np.abs(model.predict(X) - y).mean() < 0.05


def test_a_metric_learner_finds_steps():
    X, _, rng = drawn(2, 2500)
    rows = Rows.of(X, steps(X))
    learner, every = MetricKernelLearner(n_searched=300), np.arange(2500, dtype=np.uint32)
    space = learner.space(rows, every, None, 0, ThreadTeam())
    assert space.features.warps
    like = learner.space(rows, every[:2000], None, 1, ThreadTeam(), space)
    assert like.features.warps
    smooth = replace(rows, Y=np.sin(X @ np.ones((3, 1))))
    assert not learner.space(smooth, every, None, 0, ThreadTeam()).features.warps
