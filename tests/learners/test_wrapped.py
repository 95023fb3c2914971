"""scikit-learn regressors as base learners."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tests.cases import PLAIN

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.wrapped import WrappedLearner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NEGATIVE = RNG.normal(size=(60, 2))
WEIGHT = RNG.uniform(0.5, 2, size=60)


def fit(regressor, sample=None, seed=0):
    learner = WrappedLearner(regressor)
    sample = RowSample(None, None) if sample is None else sample
    data = learner.prepare(X, sample.weight, 0, 1)
    (fitted,) = learner.fit(data, Gradients(NEGATIVE), sample, np.random.default_rng(seed))
    return fitted


def test_every_output_is_fitted_by_a_clone():
    regressor = Ridge()
    fitted = fit(regressor)
    expected = np.column_stack([Ridge().fit(X, g).predict(X) for g in NEGATIVE.T])
    np.testing.assert_allclose(fitted.outputs, expected, rtol=1e-12)
    np.testing.assert_array_equal(fitted.term.model.predict_raw(X), fitted.outputs)
    assert not hasattr(regressor, "coef_")


@pytest.mark.parametrize("make", [Ridge, lambda: make_pipeline(StandardScaler(), Ridge())])
def test_weights_are_handed_on(make):
    fitted = fit(make(), RowSample(None, WEIGHT))
    regressor = make()
    name = "ridge__sample_weight" if hasattr(regressor, "steps") else "sample_weight"
    expected = regressor.fit(X, NEGATIVE[:, 0], **{name: WEIGHT}).predict(X)
    np.testing.assert_allclose(fitted.outputs[:, 0], expected, rtol=1e-12)


def test_only_sampled_rows_are_learned_from():
    rows = np.arange(0, 60, 2, dtype=np.uint32)
    fitted = fit(Ridge(), RowSample(rows, WEIGHT))
    expected = Ridge().fit(X[rows], NEGATIVE[rows, 0], WEIGHT[rows]).predict(X)
    np.testing.assert_allclose(fitted.outputs[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "regressor",
    [KNeighborsRegressor(), make_pipeline(StandardScaler(), KNeighborsRegressor())],
    ids=["alone", "pipeline"],
)
def test_weights_that_cannot_be_handed_on_are_refused(regressor):
    with pytest.raises(InvalidData, match="does not support sample weights"):
        fit(regressor, RowSample(None, WEIGHT))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_bootstrap_works_with_a_learner_without_weights(loss):
    settings = PLAIN | {"bootstrap": True, "learner": KNeighborsRegressor()}
    model = BoostingRegressor(loss, **settings).fit(X, NEGATIVE[:, 0])
    assert model.history_.train[-1] < model.history_.train[0]


def test_a_learner_without_weights_sees_drawn_rows_as_often_as_drawn():
    counts = np.random.default_rng(0).integers(3, size=len(X))
    rows = np.flatnonzero(counts).astype(np.uint32)
    learner = WrappedLearner(KNeighborsRegressor())
    sample = RowSample(rows, counts.astype(float))
    (fitted,) = learner.fit(X, Gradients(NEGATIVE[:, :1]), sample, np.random.default_rng(0))
    repeated = np.repeat(np.arange(len(X)), counts)
    expected = KNeighborsRegressor().fit(X[repeated], NEGATIVE[repeated, 0]).predict(X)
    np.testing.assert_array_equal(fitted.outputs[:, 0], expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomForestRegressor(3),
        lambda: make_pipeline(StandardScaler(), RandomForestRegressor(3)),
        lambda: DecisionTreeRegressor(splitter="random", max_depth=2),
    ],
    ids=["forest", "pipeline", "tree"],
)
def test_randomness_comes_from_the_stage(make):
    one, again, other = (fit(make(), seed=seed).outputs for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_boosted_least_squares_is_least_squares():
    y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=60)
    settings = PLAIN | {"learner": LinearRegression(), "learning_rate": 1.0, "n_estimators": 1}
    model = BoostingRegressor(**settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-8)


def test_boosted_least_squares_is_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    labels = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)
    settings = PLAIN | {"learner": LinearRegression(), "learning_rate": 1.0, "n_estimators": 300}
    model = BoostingClassifier(**settings).fit(X, labels)
    expected = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(X, labels)
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(X), rtol=1e-3, atol=1e-4
    )


def test_a_learner_that_learns_nothing_leaves_the_start():
    y = NEGATIVE[:, 0]
    model = BoostingRegressor(**PLAIN | {"learner": DummyRegressor()}).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-9, atol=1e-12)


def test_missing_inputs_are_the_learners_affair():
    missing = X.copy()
    missing[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        BoostingRegressor(**PLAIN | {"learner": Ridge()}).fit(missing, NEGATIVE[:, 0])
    settings = PLAIN | {"learner": DecisionTreeRegressor(max_depth=2)}
    model = BoostingRegressor(**settings).fit(missing, NEGATIVE[:, 0])
    assert np.isfinite(model.predict(missing)).all()
