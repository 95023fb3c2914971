"""Models of the first stages of a fitted model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cases import PLAIN, assert_same_model
from tests.refusals import refused
from tests.reloaded import reloaded

from hilboost import (
    BayesianCommitteeMachine,
    BoostingClassifier,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
)
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.kernels import Gaussian
from hilboost.report.about import history_facts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=300)
LABELS = np.digitize(Y, [-0.5, 0.5])


@pytest.mark.parametrize(
    ("model", "y", "tolerance"),
    [
        (BoostingRegressor(**PLAIN), Y, 1e-12),
        (BoostingRegressor(n_estimators=30, random_state=0), Y, 1e-12),  # a mixture, by folds
        (BoostingClassifier(**PLAIN), LABELS, 1e-12),
        # Sums of kernel values times large coefficients, whose rounding errors are about 1e-12.
        (KernelBoostingRegressor(stages="sparse", n_estimators=5, random_state=0), Y, 1e-11),
    ],
)
def test_predictions_are_those_after_a_stage(model, y, tolerance):
    staged = list(model.fit(X, y).staged_predict(X))
    for n in {1, min(3, len(staged)), len(staged)}:
        part = model.first_stages(n)
        assert part.n_estimators_ == n
        found, expected = part.predict(X), staged[n - 1]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        assert len(part.history_.train) == n + 1
    part = model.first_stages(1)
    np.testing.assert_array_equal(reloaded(part).predict(X), part.predict(X))
    assert model.n_estimators_ == len(staged)


def test_no_stage_at_all_and_stages_without_the_calibration():
    model = BoostingRegressor(**PLAIN).fit(X, Y).calibrate(X + 1e-9, Y)
    np.testing.assert_allclose(model.first_stages(0).predict(X), Y.mean())
    refused(ValueError, "calibrate", model.first_stages(2).predict_interval, X)
    remark = history_facts(model.first_stages(3).first_stages(2).fitted_)["remark"]
    assert remark.startswith("The model has 2 stages, the first ones of a")
    n = model.n_estimators_
    for wrong in (-1, n + 1):
        refused(InvalidParameter, f"between 0 and {n}, .* got {wrong}", model.first_stages, wrong)
    refused(InvalidType, "must be an integer; got 2.5", model.first_stages, 2.5)


def test_models_without_such_stages():
    survival = BoostingSurvival(n_estimators=3, early_stopping=False)
    times = np.array([(True, t) for t in np.exp(Y)], dtype=[("event", bool), ("time", float)])
    refused(InvalidParameter, "fit it with n_estimators=2", survival.fit(X, times).first_stages, 2)
    assert not hasattr(BayesianCommitteeMachine(), "first_stages")


@pytest.mark.parametrize(
    "more", [{}, {"early_stopping": True, "cv_folds": 3}, {"early_stopping": True, "cv_folds": 1}]
)
def test_first_stages_are_continued_like_a_shorter_fit(more):
    settings = {**PLAIN, "learner": "tree", "learning_rate": 0.2, "max_leaf_nodes": 7, **more}
    settings |= {"warm_start": True, "max_features": 1.0}
    short = BoostingRegressor(**settings | {"n_estimators": 4}).fit(X, Y)
    assert short.n_estimators_ == 4
    cut = BoostingRegressor(**settings | {"n_estimators": 8}).fit(X, Y).first_stages(4)
    np.testing.assert_array_equal(cut.predict(X), short.predict(X))
    for model in (short, cut):
        model.set_params(n_estimators=9).fit(X, Y)
    assert_same_model(short, cut)
    assert cut.n_estimators_ > 4
    assert cut.fitted_.cut_from is None


def test_first_stages_of_kernel_machines_are_not_continued():
    settings = {"n_estimators": 4, "early_stopping": False, "warm_start": True}
    model = BoostingRegressor(learner=["tree", KernelBoostingRegressor(n_basis=9)], **settings)
    part = model.fit(X, Y).first_stages(2)
    refused(InvalidData, "state belongs to all 4 stages; fit it with n_est.*=2", part.fit, X, Y)


def test_a_mixture_without_its_kernel_machine():
    model = BoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    assert model.parts_["kernel"].weight > 0
    part = model.first_stages(0 if model.parts_["tree"].weight == 0 else 1)
    assert part.fitted_.parts is None
    assert part.fitted_.learner.name == "tree"
    np.testing.assert_array_equal(reloaded(part).predict(X), part.predict(X))
    with pytest.raises(InvalidData, match="first stages of a model with a kernel machine"):
        part.set_params(warm_start=True).fit(X, Y)


def test_standard_deviations_of_no_stage():
    model = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1).fit(X[:50], Y[:50])
    with pytest.raises(InvalidData, match=r"first_stages\(0\) is a constant"):
        model.first_stages(0).predict(X, return_std=True)


def test_resolved_parameters_of_files_without_them():
    model = BoostingRegressor(**PLAIN).fit(X, Y)
    assert model.resolved_.n_estimators == model.n_estimators_
    model.fitted_ = replace(model.fitted_, resolved=None)
    with pytest.raises(AttributeError, match="resolved_ is not known"):
        _ = model.resolved_
