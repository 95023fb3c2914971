"""Kernel machines on subsets, and the ways to combine them."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.estimators import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
)
from hilboost.estimators.random_subsets import drawn
from hilboost.estimators.subset_ensembles import convex_weights
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
Y = F + 0.1 * RNG.normal(size=400)
LABELS = np.array(["no", "yes"])[(F > 0.8).astype(int)]
THREE = np.digitize(F, [0.3, 1.2])
TRAIN, TEST = slice(0, 300), slice(300, 400)
Z = (X - X[TRAIN].mean(0)) / X[TRAIN].std(0)
PLAIN = {
    "n_estimators": 5,
    "subset_size": 60,
    "kernel": Gaussian(1.0),
    "regularization": 0.05,
    "random_state": 0,
    "n_jobs": 1,
}
# With one member, the first ones are that member; a stacked one is shrunk or stretched.
WITHOUT_SHRINKAGE = [
    AveragedKernelRidge,
    ConvexKernelRidge,
    BayesianCommitteeMachine,
    MixtureOfKernelExperts,
]
REGRESSORS = [*WITHOUT_SHRINKAGE, StackedKernelRidge]


def fitted(cls, y=Y, **parameters):
    return cls(**PLAIN | parameters).fit(X[TRAIN], y[TRAIN])


def process(rows):
    """The Gaussian process on some training rows; mean and standard deviation of the function."""
    mean = Y[TRAIN].mean()
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.05, optimizer=None)
    model.fit(Z[TRAIN][rows], Y[TRAIN][rows] - mean)
    predicted, std = model.predict(Z[TEST], return_std=True)
    return mean + predicted, std


@pytest.mark.parametrize("cls", REGRESSORS)
def test_every_combination_beats_its_members(cls):
    model = fitted(cls)
    single = [np.mean((fitted(AveragedKernelRidge, n_estimators=1, random_state=seed)
                       .predict(X[TEST]) - F[TEST]) ** 2) for seed in range(5)]  # fmt: skip
    assert np.mean((model.predict(X[TEST]) - F[TEST]) ** 2) < np.mean(single)


@pytest.mark.parametrize("cls", WITHOUT_SHRINKAGE)
def test_one_member_on_all_rows_is_a_gaussian_process(cls):
    model = fitted(cls, n_estimators=1, subset_size=1000)
    np.testing.assert_allclose(model.predict(X[TEST]), process(slice(None))[0], atol=1e-8)


def test_average_is_the_mean_of_the_members():
    model = fitted(AveragedKernelRidge, n_estimators=3)
    members = [process(part.model.rows)[0] for part in model.model_.stages[0].terms]
    np.testing.assert_allclose(model.predict(X[TEST]), np.mean(members, axis=0), atol=1e-8)
    np.testing.assert_allclose(model.estimator_weights_, 1 / 3)


def test_committee_weights_by_inverse_variance():
    """Tresp's formula, written out, against scikit-learn's Gaussian processes."""
    model = fitted(BayesianCommitteeMachine, n_estimators=3)
    means, stds = zip(*(process(member.rows) for member in model.members_), strict=True)
    mean, inverse = Y[TRAIN].mean(), 1 / np.square(stds)
    precision = inverse.sum(axis=0) - 2.0
    expected = mean + (inverse * (np.array(means) - mean)).sum(axis=0) / precision
    np.testing.assert_allclose(model.predict(X[TEST]), expected, atol=1e-7)


def test_convex_weights_are_no_worse_than_the_best_member():
    model = fitted(ConvexKernelRidge)
    weights = model.estimator_weights_
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(), 1)
    members = [
        model.model_.initial_raw + part.model.predict_raw(X[TRAIN])
        for part in model.model_.stages[0].terms
    ]
    errors = [np.mean((f[:, 0] - Y[TRAIN]) ** 2) for f in members]
    assert np.mean((model.predict(X[TRAIN]) - Y[TRAIN]) ** 2) <= min(errors)


def test_convex_weights_from_held_out_rows():
    rows = slice(300, 350)
    model = ConvexKernelRidge(**PLAIN).fit(X[TRAIN], Y[TRAIN], X_val=X[rows], y_val=Y[rows])
    assert not np.allclose(model.estimator_weights_, fitted(ConvexKernelRidge).estimator_weights_)
    best = min(
        np.mean((model.model_.initial_raw + part.model.predict_raw(X[rows]) - Y[rows, None]) ** 2)
        for part in model.model_.stages[0].terms
    )
    assert np.mean((model.predict(X[rows]) - Y[rows]) ** 2) <= best


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_convex_weights_are_optimal(scale):
    E = scale * (RNG.normal(size=(50, 4)) + [0.1, 0.2, 0.3, 2.0])
    own = convex_weights(E)
    found = minimize(
        lambda c: np.sum((E @ c / scale) ** 2),
        np.full(4, 0.25),
        method="SLSQP",
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda c: c.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    np.testing.assert_allclose(own, found.x, atol=1e-4)


def test_subsets_are_disjoint_while_rows_last():
    parts = drawn(100, 25, 6, np.random.default_rng(0))
    assert sorted(np.concatenate(parts[:4])) == list(range(100))
    assert [len(part) for part in parts] == [25] * 6
    (whole,) = drawn(3, 3, 1, np.random.default_rng(0))
    assert whole.tolist() == [0, 1, 2]


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_adaboost_beats_a_single_member(y):
    model = fitted(AdaBoostKernelClassifier, y, n_estimators=25, subset_size=15)
    staged = [np.mean(p == y[TEST]) for p in model.staged_predict(X[TEST])]
    assert len(staged) == len(model.members_) == len(model.estimator_weights_)
    assert model.score(X[TEST], y[TEST]) == staged[-1] > staged[0] + 0.05
    proba = model.predict_proba(X[TEST])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X[TEST]))


def test_adaboost_ends_where_nothing_is_wrong():
    y = X[:, 0] > 0
    far = X + 20 * y[:, None]
    model = AdaBoostKernelClassifier(**PLAIN).fit(far, y)
    assert len(model.members_) == 1
    assert model.estimator_errors_ == [0.0]
    assert model.score(far, y) == 1.0


def test_subset_size_is_a_number_or_a_part():
    half = fitted(AveragedKernelRidge, subset_size=0.5)
    assert {len(part.model.rows) for part in half.model_.stages[0].terms} == {150}
    assert fitted(AveragedKernelRidge, subset_size=1000)._size(300) == 300


@pytest.mark.parametrize("cls", REGRESSORS)
def test_weights_are_repetitions_where_members_see_all_rows(cls):
    counts = np.random.default_rng(1).integers(0, 4, 80)
    rows = np.repeat(np.arange(80), counts)
    make = cls(**PLAIN | {"n_estimators": 1, "subset_size": 10_000})
    weighted = make.fit(X[:80], Y[:80], counts).predict(X)
    repeated = make.fit(X[rows], Y[rows]).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_several_targets(cls):
    both = fitted(cls, np.column_stack([Y, 1 - 2 * Y])).predict(X[TEST])
    np.testing.assert_allclose(both[:, 1], 1 - 2 * both[:, 0], atol=1e-8)


@pytest.mark.parametrize("cls", [*REGRESSORS, AdaBoostKernelClassifier])
def test_the_same_on_any_threads_and_from_a_pickle(cls):
    y = LABELS if cls is AdaBoostKernelClassifier else Y
    one, two = fitted(cls, y), fitted(cls, y, n_jobs=2)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


# Refusals


def test_refusals():
    holed, model = X[TRAIN].copy(), AveragedKernelRidge(**PLAIN)
    holed[0, 2] = np.nan
    with pytest.raises(InvalidData, match="NaN in column 2"):
        model.fit(holed, Y[TRAIN])
    with pytest.raises(InvalidData, match="AveragedKernelRidge.fit does not support callbacks"):
        model.fit(X[TRAIN], Y[TRAIN], X_val=X[TEST], y_val=Y[TEST])
    with pytest.raises(InvalidParameter, match="members of 60 rows .* decrease subset_size"):
        fitted(BayesianCommitteeMachine, n_estimators=10**7)
