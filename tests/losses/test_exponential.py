"""The exponential loss of several classes is that of SAMME (Zhu et al. 2009)."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from hilboost import BoostingClassifier
from hilboost.core.target import Target
from hilboost.losses import Exponential, MultinomialExponential

RNG = np.random.default_rng(0)


def coded(codes, C):
    """Zhu et al., eq. 1: 1 for the class and -1 / (C - 1) for the others, (n, C)."""
    return np.where(codes[:, None] == np.arange(C), 1.0, -1 / (C - 1))


@pytest.mark.parametrize("C", [3, 5])
def test_the_value_is_that_of_the_coded_labels(C):
    codes, raw = RNG.integers(C, size=30), RNG.normal(size=(30, C))
    raw -= raw.mean(axis=1, keepdims=True)
    loss, target = MultinomialExponential(C), Target(codes[:, None].astype(float))
    expected = np.exp(-(coded(codes, C) * raw).sum(axis=1) / C)
    np.testing.assert_allclose(loss.value(target, raw), expected, rtol=1e-12)
    np.testing.assert_allclose(loss.value(target, raw + 3), expected, rtol=1e-12)


def test_two_classes_agree_with_the_binary_loss():
    y, raw = RNG.integers(2, size=(30, 1)).astype(float), RNG.normal(size=(30, 1))
    pair = np.hstack([-raw, raw])
    target, two, many = Target(y), Exponential(), MultinomialExponential(2)
    np.testing.assert_allclose(two.value(target, raw), many.value(target, pair), rtol=1e-12)
    np.testing.assert_allclose(two.inverse_link(raw), many.inverse_link(pair), rtol=1e-12)
    one, both = two.gradients(target, raw), many.gradients(target, pair)
    steps = both.negative_gradient / both.hessian
    np.testing.assert_allclose(
        steps[:, 1:], one.negative_gradient / one.hessian, rtol=1e-10, atol=1e-12
    )


def test_probabilities_are_those_whose_expected_loss_is_least():
    p = np.array([0.2, 0.5, 0.3])
    loss, target = MultinomialExponential(3), Target(np.arange(3.0)[:, None])
    found = minimize(lambda f: p @ loss.value(target, np.tile(f, (3, 1))), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(loss.inverse_link(found.x[None])[0], p, atol=1e-5)
    np.testing.assert_allclose(
        loss.initial_raw(Target(target.y, p)), 2 * (np.log(p) - np.log(p).mean()), rtol=1e-10
    )


@pytest.mark.parametrize("C", [3, 4])
def test_the_best_length_of_a_classifier_is_the_vote_of_samme(C):
    codes, raw = RNG.integers(C, size=200), 0.3 * RNG.normal(size=(200, C))
    winners = np.where(RNG.uniform(size=200) < 0.6, codes, RNG.integers(C, size=200))
    loss, target = MultinomialExponential(C), Target(codes[:, None].astype(float))
    step = coded(winners, C)
    weight = loss.value(target, raw)
    error = weight[winners != codes].sum() / weight.sum()
    found = minimize_scalar(
        lambda length: loss.value(target, raw + length * step).sum(), options={"xtol": 1e-12}
    )
    vote = np.log((1 - error) / error) + np.log(C - 1)  # Zhu et al., eq. 9
    assert found.x == pytest.approx((C - 1) ** 2 / C * vote, rel=1e-6)


@pytest.mark.parametrize("C", [2, 3])
def test_descent_with_stumps_and_exact_steps_is_scikit_learns_adaboost(C):
    """Functional gradient descent on the loss, with classifiers as base learners."""
    X, y = load_iris(return_X_y=True)
    X, y = (X[50:], y[50:] - 1) if C == 2 else (X, y)
    peer = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=6, random_state=0)
    peer.fit(X, y)
    loss, target = MultinomialExponential(C), Target(y[:, None].astype(float))
    raw, votes = np.zeros((len(X), C)), []
    for stump in peer.estimators_:
        weight = loss.value(target, raw)
        np.testing.assert_array_equal(
            DecisionTreeClassifier(max_depth=1, random_state=stump.random_state)
            .fit(X, y, sample_weight=weight / weight.sum())
            .predict(X),
            stump.predict(X),
        )
        step = coded(stump.predict(X), C)

        def after(length, raw=raw, step=step):
            return loss.value(target, raw + length * step).sum()

        length = minimize_scalar(after, options={"xtol": 1e-12}).x
        votes.append(C / (C - 1) ** 2 * length)
        raw = raw + length * step
    np.testing.assert_allclose(votes, peer.estimator_weights_, rtol=1e-5)
    np.testing.assert_array_equal(raw.argmax(axis=1), peer.predict(X))


class Stump:
    """A classifier fitted to the signs of the gradients, weighted by their sizes."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, **parameters):
        self.random_state = parameters.get("random_state", self.random_state)
        return self

    def fit(self, X, y, sample_weight=None):
        tree = DecisionTreeClassifier(max_depth=1, random_state=0)
        self.tree_ = tree.fit(X, y > 0, sample_weight=np.abs(y) / np.abs(y).sum())
        return self

    def predict(self, X):
        return 2.0 * self.tree_.predict(X) - 1


def test_boosting_with_stumps_at_rate_one_is_scikit_learns_adaboost():
    """Two classes of equal frequency, so that both begin with equal weights."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50:] + 1e-6 * RNG.normal(size=(100, 4)), y[50:]
    model = BoostingClassifier(
        "exponential",
        learner=Stump(),
        n_estimators=8,
        learning_rate=1.0,
        line_search=True,
        early_stopping=False,
        subsample=1.0,
    ).fit(X, y)
    peer = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1, random_state=0), n_estimators=8, random_state=0
    ).fit(X, y)
    lengths = [float(stage.terms[0].coefficient[0]) for stage in model.model_.stages]
    np.testing.assert_allclose(2 * np.array(lengths), peer.estimator_weights_, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_three_classes_by_name():
    X, y = load_iris(return_X_y=True)
    model = BoostingClassifier("exponential", min_samples_leaf=5, early_stopping=False).fit(X, y)
    assert type(model.loss_) is MultinomialExponential
    assert model.score(X, y) > 0.97
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
