"""A row of a model of trees has the same prediction, in all bits, alone as among others."""

import numpy as np
import pytest

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    BoostingSurvival,
    OutputKernelForestRegressor,
)
from hilboost.outputs import Compositions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 4))
X[::7, 1] = np.nan
TREES = {"learner": "tree", "n_estimators": 5, "random_state": 0}


def same_alone(predict, rows):
    whole = np.asarray(predict(rows))
    alone = np.concatenate([predict(rows[i : i + 1]) for i in range(len(rows))])
    np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_probabilities_of_many_classes(loss):
    model = BoostingClassifier(loss, **TREES).fit(X, np.arange(96) % 12)
    same_alone(model.predict_proba, X)
    same_alone(model.predict_raw, np.asfortranarray(X))


def test_quantiles_shared_trees_and_survival_functions():
    levels = list(np.linspace(0.05, 0.95, 9))
    model = BoostingRegressor("quantile", quantile=levels, **TREES).fit(X, RNG.normal(size=96))
    same_alone(model.predict, X)
    y = RNG.normal(size=(96, 9))
    same_alone(BoostingRegressor(multi_output="shared", **TREES).fit(X, y).predict, X)
    same_alone(BoostingRegressor("huber", **TREES).fit(X, y).predict, X)
    y = np.empty(96, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = RNG.random(96) < 0.6, RNG.integers(1, 20, 96)
    model = BoostingSurvival("discrete_hazard", **TREES).fit(X, y)
    same_alone(lambda rows: model.predict_survival_function(rows, np.arange(1.0, 19.0)), X)


def test_compositions():
    shares = RNG.dirichlet(np.ones(9), 96)
    model = OutputKernelForestRegressor(Compositions("aitchison"), n_estimators=5, random_state=0)
    model.fit(np.nan_to_num(X), shares)
    same_alone(model.predict, np.nan_to_num(X))
