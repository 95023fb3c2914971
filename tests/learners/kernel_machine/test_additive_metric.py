"""Additive kernels in the learner with a learned metric."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.kernels import Additive
from hilboost.kernels.marginal_likelihood import negative_log_likelihood
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.metric_systems import System
from hilboost.learners.kernel_machine.tuning.metric import learned_metric
from hilboost.learners.kernel_machine.tuning.refined_metrics import additive_metric
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.persistence.fitted import _parts_from_file, _parts_to_file
from hilboost.persistence.require import DAMAGE
from hilboost.persistence.values import former_expansion
from hilboost.training.budget import hasty

RNG = np.random.default_rng(0)
TABLE = RNG.uniform(-2, 2, size=(700, 6))
NOISE = RNG.normal(size=(700, 1)) / 50


def sums(table):
    """Main effects and two interactions, (n, 1)."""
    waves = np.sin(2 * table[:, :5]).sum(axis=1) + np.cos(3 * table[:, 5])
    return (waves + table[:, 0] * table[:, 1] + np.sin(2 * table[:, 2]) * table[:, 3])[:, None]


ADDITIVE = sums(TABLE) + NOISE
JOINT = np.sin(TABLE.sum(axis=1, keepdims=True)) + NOISE


def searched(table, target, weight=None):
    rows = Rows.of(table, target, weight)
    metric = learned_metric(Rows.of(table[:300], target[:300]))
    return additive_metric(rows, metric)


@pytest.fixture(scope="module")
def model():
    """An additive kernel machine beside trees."""
    settings = {"cv_folds": 3, "n_estimators": 100, "random_state": 0}
    return BoostingRegressor(**settings).fit(TABLE, ADDITIVE[:, 0])


@pytest.fixture(scope="module")
def machine(model):
    return model.model_.stages[-1].terms[0].model


def test_an_additive_function_gets_an_additive_kernel():
    found = searched(TABLE, ADDITIVE)
    assert found.axes.shape == (6,)
    assert found.shares.shape == (2,)
    assert (found.shares > 0).all()
    assert searched(TABLE, JOINT) is None
    assert searched(TABLE, RNG.normal(size=(700, 1))) is None
    assert searched(TABLE, np.zeros((700, 1))) is None


def test_few_rows_and_single_features_have_none():
    assert searched(TABLE[:120], ADDITIVE[:120]) is None
    one = Rows.of(TABLE[:, :1], np.sin(TABLE[:, :1]))
    metric = learned_metric(one.first(300))
    assert additive_metric(one, metric) is None


def test_weights_are_noise_variances_divided():
    weight = RNG.integers(1, 4, size=40).astype(float)
    kernel, X, y = Additive([1.0, 2.0], 0.5, 1.5), TABLE[:40, :2], ADDITIVE[:40]
    value, gradient = negative_log_likelihood(kernel, 0.1, X, y, weight)
    C = kernel.block(X, X) + np.diag(0.1 / weight)
    constant = 20 * np.log(2 * np.pi)
    assert value == pytest.approx(-multivariate_normal(cov=C).logpdf(y[:, 0]) - constant)
    up, down = (
        negative_log_likelihood(kernel, 0.1 * np.exp(step), X, y, weight)[0]
        for step in (1e-5, -1e-5)
    )
    assert gradient[-1] == pytest.approx((up - down) / 2e-5, rel=1e-5)


def test_weights_divide_the_ridge_in_the_search():
    noisy = ADDITIVE + RNG.normal(size=(700, 1))
    twice, once = searched(TABLE, noisy, np.full(700, 2.0)), searched(TABLE, noisy)
    assert twice.ridge / 2 == pytest.approx(once.ridge, rel=0.1)
    np.testing.assert_allclose(twice.axes, once.axes, rtol=0.2)


@pytest.mark.slow
def test_the_machine_is_that_of_the_kernel(machine):
    K = machine.kernel.block(machine.inputs(TABLE), machine.basis.astype(np.float64))
    np.testing.assert_allclose(machine.predict_raw(TABLE), K @ machine.weights, atol=1e-10)
    system = System.of(machine.basis, Rows.of(TABLE, ADDITIVE), ThreadTeam(), machine.kernel)
    assert np.diag(system.K) == pytest.approx(machine.kernel.main + machine.kernel.pairs)


@pytest.mark.slow
def test_it_is_better_and_named(model):
    assert model.parts_["kernel"].kernel == "additive"
    assert "kernel (additive)" in model.report(TABLE[:50], ADDITIVE[:50, 0])._repr_html_()
    new = np.random.default_rng(1).uniform(-2, 2, size=(1000, 6))
    expected = sums(new)[:, 0]
    usual = BoostingRegressor(
        learner=MetricKernelLearner(most_additive=0), n_estimators=1, learning_rate=1.0
    ).fit(TABLE, ADDITIVE[:, 0])
    errors = [np.mean((one.predict(new) - expected) ** 2) for one in (model, usual)]
    assert errors[0] < 0.1 * errors[1]


@pytest.mark.slow
def test_importances_are_effects_on_the_function(model):
    rows, others = np.random.default_rng(2).uniform(-2, 2, size=(2, 4000, 6))
    changed = [np.where(np.arange(6) == k, others, rows) for k in range(6)]
    effects = np.array([np.mean((sums(one) - sums(rows)) ** 2) for one in changed])
    np.testing.assert_allclose(model.feature_importances_, effects / effects.sum(), atol=0.05)
    noisy = np.hstack([TABLE, RNG.normal(size=(700, 4))])
    assert copy(model).fit(noisy, ADDITIVE[:, 0]).feature_importances_[6:].max() < 0.02


def test_files_and_onnx(model):
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))
    assert loaded.parts_["kernel"].kernel == "additive"
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: TABLE[:50]})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(TABLE[:50]), atol=1e-9)


def test_records_of_earlier_files_name_no_kernel(model):
    written = _parts_to_file(model.parts_)
    for part in written.values():
        del part["kernel"]
    assert _parts_from_file(written, 1)["kernel"].kernel == ""


@pytest.mark.parametrize("damage", [np.ones(3), np.array([1.0, np.nan]), np.zeros(2), "shares"])
def test_damaged_shares_are_found(machine, damage):
    parts = machine.inputs, machine.basis, machine.weights
    assert former_expansion(*parts, np.ones(2)).has_shape(6, 1)
    with pytest.raises(DAMAGE):
        former_expansion(*parts, damage)


def test_a_machine_of_tenths_of_a_second_is_not_additive():
    assert hasty(MetricKernelLearner()).most_additive == 0
    learner = replace(MetricKernelLearner(), most_additive=5)
    every = np.arange(700, dtype=np.uint32)
    space = learner.space(Rows.of(TABLE, ADDITIVE), every, None, 0, ThreadTeam())
    assert not space.is_additive
