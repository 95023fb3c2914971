"""Classifiers with the losses of support vector machines, and the preset of Sun & Yao."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import LinearSVC
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, KernelBoostingClassifier
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Gaussian, Linear
from hilboost.report import facts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SIGNAL = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * RNG.normal(size=120)
TWO = (np.median(SIGNAL) < SIGNAL).astype(int)
THREE = np.digitize(SIGNAL, np.quantile(SIGNAL, [0.3, 0.7]))
NAMES = np.array(["high", "low", "mid"])[THREE]
NEW = RNG.normal(size=(40, 3))
SVM = ["hinge", "squared_hinge"]
svm = pytest.mark.parametrize("loss", SVM)
ESTIMATORS = [
    lambda loss: BoostingClassifier(
        loss, n_estimators=12, learning_rate=0.3, early_stopping=False, random_state=0
    ),
    lambda loss: KernelBoostingClassifier(
        loss, kernel=Gaussian(1.0), regularization=0.1, random_state=0
    ),
]
both = pytest.mark.parametrize("build", ESTIMATORS, ids=["trees", "kernel"])


def machine(loss, lam, **parameters):
    settings = {"kernel": Gaussian(1.0), "stages": "full", "standardize": False}
    return KernelBoostingClassifier(loss, regularization=lam, **settings | parameters)


@svm
@pytest.mark.parametrize("lam", [0.1, 3.0])
def test_a_linear_machine_is_scikit_learns(loss, lam):
    """Without an intercept: the start value of two classes of equal frequency is 0."""
    C = 1 / lam if loss == "hinge" else 1 / (2 * lam)
    peer = LinearSVC(C=C, loss=loss, fit_intercept=False, tol=1e-9, max_iter=1_000_000).fit(X, TWO)
    model = machine(loss, lam, kernel=Linear()).fit(X, TWO)
    if loss == "squared_hinge":
        expected = peer.decision_function(NEW)
        np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-5)
    found, least = (
        np.maximum(1 - (2 * TWO - 1) * (X @ w), 0).sum() + lam / 2 * w @ w
        for w in (np.linalg.lstsq(X, model.decision_function(X))[0], peer.coef_[0])
    )
    if loss == "hinge":
        assert found == pytest.approx(least, rel=2e-4)


@svm
def test_every_class_of_a_machine_is_one_against_the_rest(loss):
    three = machine(loss, 0.5).fit(X, THREE).decision_function(NEW)
    for k in range(3):
        one = machine(loss, 0.5).fit(X, k == THREE).decision_function(NEW)
        np.testing.assert_allclose(three[:, k], one, atol=2e-2 if loss == "hinge" else 1e-4)


@svm
def test_every_class_of_trees_is_one_against_the_rest(loss):
    plain = {
        "learning_rate": 0.2,
        "n_estimators": 8,
        "max_leaf_nodes": 6,
        "min_samples_leaf": 3,
        "l2_regularization": 1.0,
        "max_features": 1.0,
        "subsample": 1.0,
        "early_stopping": False,
    }
    three = BoostingClassifier(loss, **plain).fit(X, THREE).decision_function(NEW)
    for k in range(3):
        one = BoostingClassifier(loss, **plain).fit(X, k == THREE).decision_function(NEW)
        np.testing.assert_allclose(three[:, k], one, rtol=1e-12, atol=1e-12)


@svm
@both
def test_labels_scores_files_and_facts(loss, build):
    model = build(loss).fit(X, NAMES)
    assert model.score(X, NAMES) > 0.8
    scores = model.decision_function(NEW)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(NEW))
    np.testing.assert_array_equal(
        reloaded(model).decision_function(NEW), model.decision_function(NEW)
    )
    found = facts(model, X, NAMES)
    keys = [score["key"] for score in found["scores"]]
    assert keys == ["accuracy", "balanced_accuracy"]
    assert found["classes"]["calibration"] is None
    assert "confidence" not in found["classes"]["worst"]


@svm
def test_the_report_of_two_classes_has_the_curves_of_the_scores(loss):
    found = facts(ESTIMATORS[0](loss).fit(X, TWO), X, TWO)
    keys = [score["key"] for score in found["scores"]]
    assert keys == ["accuracy", "balanced_accuracy", "roc_auc", "average_precision"]
    assert found["classes"]["curves"] is not None


@both
def test_probabilities_come_from_scikit_learns_calibration(build):
    model = CalibratedClassifierCV(build("hinge"), cv=3).fit(X, TWO)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((p[:, 1] > 0.5) == TWO).mean() > 0.8


@svm
def test_lambda_is_chosen_by_the_loss(loss):
    model = KernelBoostingClassifier(loss, kernel=Gaussian(1.0), random_state=0).fit(X, THREE)
    assert model.regularization_ > 0
    assert model.score(X, THREE) > 0.8


@pytest.mark.parametrize(
    ("loss", "y"),
    [("log_loss", NAMES), ("exponential", TWO), ("hinge", NAMES), ("squared_error", TWO)],
    ids=["log_loss", "exponential", "hinge", "squared_error"],
)
def test_the_settings_of_sun_and_yao(loss, y):
    model = KernelBoostingClassifier.sun_yao_2006(
        loss=loss, n_estimators=4, n_basis=15, subset_size=60, random_state=0
    )
    assert model.get_params()["solver"] == "conjugate_gradient"
    model.fit(X, y)
    train = model.history_.train
    assert train[-1] < train[0]
    assert model.score(X, y) > 0.75
    assert max(len(stage.terms[0].model.basis) for stage in model.model_.stages) <= 15


def test_the_defaults_of_sun_and_yao():
    model = KernelBoostingClassifier.sun_yao_2006()
    regressor = hilboost.KernelBoostingRegressor.sun_yao_2006().get_params()
    others = {k: v for k, v in model.get_params().items() if k in regressor}
    differing = {k for k, v in others.items() if v != regressor[k]}
    assert differing == {"loss", "reweight"}
    assert model.loss == "log_loss"
    assert model.n_estimators == 150


def test_the_update_of_all_weights_is_for_squared_error():
    model = KernelBoostingClassifier.sun_yao_2006(reweight=True, n_estimators=2, n_basis=10)
    with pytest.raises(InvalidParameter, match="reweight=True requires loss='squared_error'"):
        model.fit(X, TWO)
