"""Treelite's predictions are those of hilboost, to the last digits."""

import numpy as np
import pandas as pd
import pytest
from tests.cases import PLAIN
from tests.refusals import refused

import hilboost
from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival
from hilboost.core.errors import IncompatibleParts, InvalidType, MissingPackage

treelite = pytest.importorskip("treelite")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
X[RNG.uniform(size=X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) + 0.3 * np.isnan(X[:, 1])
SPECIAL = np.repeat([[np.nan], [np.inf], [-np.inf]], 4, axis=1)
NEW = np.vstack([X, RNG.normal(size=(50, 4)), SPECIAL])
GROUPED = {name: PLAIN[name] for name in PLAIN if name != "multi_output"}


def predicted(model):
    return treelite.gtil.predict(hilboost.to_treelite(model), NEW)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "absolute_error", "quantile"])
def test_regression(loss):
    model = BoostingRegressor(loss, **PLAIN).fit(X, np.exp(Y))
    np.testing.assert_allclose(predicted(model)[:, 0, 0], model.predict(NEW), rtol=1e-12)


@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_several_targets(multi_output):
    y = np.column_stack([Y, Y**2, -Y])
    model = BoostingRegressor(**PLAIN | {"multi_output": multi_output}).fit(X, y)
    np.testing.assert_allclose(predicted(model)[:, :, 0], model.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_two_classes(loss):
    model = BoostingClassifier(loss, **PLAIN).fit(X, Y > 0)
    np.testing.assert_allclose(predicted(model)[:, 0, 0], model.predict_proba(NEW)[:, 1])


@pytest.mark.parametrize("cv_folds", [1, 2])
def test_several_classes_and_ensembles(cv_folds):
    early = {"early_stopping": cv_folds > 1, "cv_folds": cv_folds, "learner": "tree"}
    model = BoostingClassifier(**PLAIN | early).fit(X, np.digitize(Y, [-0.5, 0.5]))
    np.testing.assert_allclose(predicted(model)[:, 0], model.predict_proba(NEW))


def test_rankings_and_risks():
    model = BoostingRanker(**GROUPED).fit(X, Y - Y.min(), groups=np.arange(200) // 10)
    np.testing.assert_allclose(predicted(model)[:, 0, 0], model.predict(NEW), atol=1e-12)
    times = np.column_stack([np.exp(Y)] * 2)
    model = BoostingSurvival("aft", **GROUPED).fit(X, times)
    np.testing.assert_allclose(predicted(model)[:, 0, 0], model.predict_raw(NEW)[:, 0])


def test_a_model_without_trees_and_files(tmp_path):
    model = BoostingRegressor(**PLAIN).fit(X, np.full(200, 3.0))
    np.testing.assert_allclose(predicted(model), 3.0)
    model = BoostingRegressor(**PLAIN).fit(X, Y)
    hilboost.to_treelite(model, tmp_path / "m.treelite")
    read = treelite.Model.deserialize(tmp_path / "m.treelite")
    np.testing.assert_array_equal(treelite.gtil.predict(read, NEW), predicted(model))


def test_refusals(monkeypatch):
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 100)})
    for model, message in (
        (BoostingRegressor(**PLAIN).fit(frame, Y), "supports only numeric columns"),
        (
            BoostingRegressor("quantile", quantile=[0.1, 0.9], **PLAIN).fit(X, Y),
            "2 quantile levels",
        ),
        (BoostingClassifier("hinge", **PLAIN).fit(X, Y > 0), "not support the link of Hinge"),
    ):
        refused(IncompatibleParts, message, hilboost.to_treelite, model)
    refused(InvalidType, "with trees", hilboost.to_treelite, 3)
    monkeypatch.setitem(__import__("sys").modules, "treelite.model_builder", None)
    with pytest.raises(MissingPackage, match=r"hilboost\[treelite\]"):
        hilboost.to_treelite(BoostingRegressor(**PLAIN).fit(X, Y))
