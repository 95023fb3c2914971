"""The exported trees say in XGBoost's format what they say here."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tests.cases import LOSSES, ids
from tests.export.xgboost_reader import raw_outputs
from tests.refusals import refused

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor, to_xgboost_json
from hilboost.core.errors import IncompatibleParts, InvalidType
from hilboost.export.xgboost_json import _first_above
from hilboost.learners.tree import TreeLearner
from hilboost.losses import (
    Exponential,
    MultinomialExponential,
    OneHotSquaredError,
    Poisson,
    Quantile,
    Tweedie,
)
from hilboost.model import AdditiveModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
X[RNG.uniform(size=X.shape) < 0.1] = np.nan
NEW = np.vstack(
    [
        X,
        RNG.normal(size=(60, 4)),
        np.full((1, 4), np.nan),
        [[1e38, -1e38, 1e-44, 0.0], [-1e38, 1e38, -1e-44, -0.0]],
    ]
).astype(np.float32)
Y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
SHORT = {"learner": "tree", "n_estimators": 6, "random_state": 0}
SCORED = [case for case in LOSSES if case.name in ("hinge", "squared_hinge")]
EXPORTED = [
    case
    for case in LOSSES
    if not (isinstance(case.make(), Quantile) and len(case.make().levels) > 1)
    and case not in SCORED
]


def fitted(case, **settings):
    y = case.labels(case.draw(np.random.default_rng(1), len(X)))
    return case.build(**SHORT, **settings).fit(X, y)


def logits_of(model, raw):
    """Raw outputs as they are in the exported model."""
    loss = model.loss_
    if isinstance(loss, Exponential):
        return 2 * raw
    if isinstance(loss, MultinomialExponential):
        return raw / (loss.n_classes - 1)
    if isinstance(loss, OneHotSquaredError):
        return loss.sharpness * raw * (2 if loss.n_classes == 2 else 1)
    return raw


def predicted(model, rows):
    if not hasattr(model, "classes_"):
        return model.predict(rows)
    probabilities = model.predict_proba(rows)
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities


def loaded(text):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster()
    booster.load_model(bytearray(text, "utf-8"))
    return booster, xgboost.DMatrix


def assert_near(found, expected):
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("case", EXPORTED, ids=ids(EXPORTED))
@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_every_loss_in_the_file(case, multi_output):
    model = fitted(case, multi_output=multi_output)
    found = raw_outputs(to_xgboost_json(model), NEW)
    assert_near(found, logits_of(model, model.model_.predict_raw(NEW)))


@pytest.mark.parametrize("case", SCORED, ids=ids(SCORED))
def test_scores_without_probabilities_are_refused(case):
    with pytest.raises(IncompatibleParts, match=r"no probabilities.*Use to_onnx, or fit with loss"):
        to_xgboost_json(fitted(case))


@pytest.mark.parametrize("case", EXPORTED, ids=ids(EXPORTED))
@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_every_loss_in_xgboost(case, multi_output):
    model = fitted(case, multi_output=multi_output)
    booster, matrix = loaded(to_xgboost_json(model))
    assert_near(booster.predict(matrix(NEW)), predicted(model, NEW))
    assert booster.num_boosted_rounds() == model.n_estimators_
    first = booster.predict(matrix(NEW), iteration_range=(0, 2), output_margin=True)
    staged = AdditiveModel(model.model_.initial_raw, model.model_.stages[:2]).predict_raw(NEW)
    assert_near(first.reshape(staged.shape), logits_of(model, staged))


def test_training_rows_of_float64_go_through_the_same_leaves():
    rows = np.random.default_rng(3).normal(size=(400, 3))
    y = np.sin(3 * rows[:, 0]) + rows[:, 1]
    model = BoostingRegressor(learner="tree", n_estimators=50, min_samples_leaf=1, random_state=0)
    model.fit(rows, y)
    assert_near(raw_outputs(to_xgboost_json(model), rows[:60])[:, 0], model.predict(rows[:60]))
    booster, matrix = loaded(to_xgboost_json(model))
    assert_near(booster.predict(matrix(rows)), model.predict(rows))


def test_thresholds_of_float64_part_floats_of_32_bits_alike():
    thresholds = np.array(
        [0.0, -0.0, 0.1, -0.1, 1e-320, -1e-320, 1e-45, 1.0, 3.4e38, 1e300, -1e300, np.inf, -np.inf]
    )
    near = np.float32([0.0, 0.1, 1e-45, -1e-45, 1.0, 3.4e38, -3.4e38, -0.1])
    up, down = np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))
    rows = np.concatenate([near, up, down])
    rows = rows[np.isfinite(rows)]
    above = _first_above(thresholds)
    assert (above == above.astype(np.float32)).all()
    for threshold, first in zip(thresholds, above, strict=True):
        np.testing.assert_array_equal(rows < np.float32(first), rows.astype(float) <= threshold)


def test_extreme_thresholds_survive_the_file():
    tiny = np.float32(1e-45)
    columns = [[0.0, tiny], [-tiny, 0.0], [np.nan, 1.0], [-3.4e38, 3.4e38], [1.0, 1.0000001]]
    for low, high in columns:
        rows = np.repeat(np.float32([[low], [high]]), 20, axis=0)
        y = np.repeat([0.0, 1.0], 20)
        settings = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 1}
        model = BoostingRegressor(**settings, l2_regularization=0.0).fit(rows, y)
        np.testing.assert_array_equal(model.predict(rows), y)
        text = to_xgboost_json(model)
        np.testing.assert_array_equal(raw_outputs(text, rows)[:, 0], y)
        booster, matrix = loaded(text)
        np.testing.assert_array_equal(booster.predict(matrix(rows)), y)


def test_committees_and_constants():
    for settings, y in [
        ({"early_stopping": True, "cv_folds": 3}, Y),
        ({}, np.full(len(Y), 7.5)),
        ({}, np.column_stack([Y, np.ones(len(Y))])),
    ]:
        model = BoostingRegressor(**SHORT | settings).fit(X, y)
        text = to_xgboost_json(model)
        assert_near(raw_outputs(text, NEW), model.predict(NEW).reshape(len(NEW), -1))
        booster, matrix = loaded(text)
        assert_near(booster.predict(matrix(NEW)), model.predict(NEW))
        rounds = len(model.model_.stages[0].terms) // len(model.model_.initial_raw)
        assert booster.num_boosted_rounds() == rounds * model.n_estimators_
        first = AdditiveModel(model.model_.initial_raw, model.model_.stages[:2]).predict_raw(NEW)
        found = booster.predict(matrix(NEW), iteration_range=(0, 2 * rounds))
        assert_near(found.reshape(first.shape), first)


def test_the_file_is_the_text(tmp_path):
    model = BoostingRegressor(**SHORT).fit(X, Y)
    text = to_xgboost_json(model, tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == text
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert_near(booster.predict(xgboost.DMatrix(NEW)), model.predict(NEW))


def test_column_names():
    plain = ["age", 'a "b" \\ c', "ü☃", " "]
    table = pd.DataFrame(NEW, columns=plain)
    model = BoostingRegressor(**SHORT).fit(pd.DataFrame(X, columns=plain), Y)
    text = to_xgboost_json(model)
    assert json.loads(text)["learner"]["feature_names"] == plain
    refused = BoostingRegressor(**SHORT).fit(pd.DataFrame(X, columns=["a", "b[0]", "<c", "d\n"]), Y)
    assert json.loads(to_xgboost_json(refused))["learner"]["feature_names"] == []
    booster, matrix = loaded(text)
    assert_near(booster.predict(matrix(table)), model.predict(table))


@pytest.mark.parametrize("case", EXPORTED, ids=ids(EXPORTED))
def test_contributions_sum_to_the_raw_output(case):
    model = fitted(case)
    booster, matrix = loaded(to_xgboost_json(model, background=X))
    raw = booster.predict(matrix(NEW), output_margin=True)
    contributions = booster.predict(matrix(NEW), pred_contribs=True)
    assert_near(contributions.sum(axis=-1).reshape(raw.shape), raw)


def test_contributions_weigh_leaves_by_the_background():
    """One split: the Shapley value is the leaf less the mean over the background."""
    rows = np.repeat(np.float32([[0.0], [1.0]]), [30, 10], axis=0)
    settings = {"n_estimators": 1, "min_samples_leaf": 1, "learning_rate": 0.5}
    model = BoostingRegressor(**settings).fit(rows, rows[:, 0].astype(float))
    booster, matrix = loaded(to_xgboost_json(model, background=rows))
    values = booster.predict(matrix(rows), pred_contribs=True)
    mean = model.predict(rows).mean()
    np.testing.assert_allclose(values[:, 0], model.predict(rows) - mean, atol=1e-6)
    np.testing.assert_allclose(values[:, 1], mean, atol=1e-6)


def test_without_background_there_are_no_counts():
    text = to_xgboost_json(BoostingRegressor(**SHORT).fit(X, Y))
    trees = json.loads(text)["learner"]["gradient_booster"]["model"]["trees"]
    assert all(set(tree["sum_hessian"]) == {0.0} for tree in trees)
    booster, matrix = loaded(text)
    assert np.isnan(booster.predict(matrix(NEW), pred_contribs=True)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("classes", [None, "committee", 2, 3])
def test_shap_explains_the_exported_trees(classes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its plots, while it is imported
        shap = pytest.importorskip("shap")
    if classes is None:
        model = BoostingRegressor(**SHORT).fit(X, Y)
    elif classes == "committee":
        model = BoostingRegressor(**SHORT, early_stopping=True, cv_folds=3).fit(X, Y)
    else:
        model = BoostingClassifier(**SHORT).fit(X, np.digitize(Y, [0.5, 1.0][: classes - 1]))
    booster, _ = loaded(to_xgboost_json(model, background=X))
    explainer = shap.TreeExplainer(booster)
    values = np.asarray(explainer.shap_values(NEW[:40]))
    raw = model.model_.predict_raw(NEW[:40].astype(np.float64))
    total = values.sum(axis=1) + explainer.expected_value
    assert_near(total.reshape(raw.shape), raw)
    if classes != 3:  # rows of its own need no counts
        booster, _ = loaded(to_xgboost_json(model))
        against = shap.TreeExplainer(booster, data=NEW[40:60])
        total = against.shap_values(NEW[:40]).sum(axis=1) + against.expected_value
        assert_near(total, raw[:, 0])


def test_what_cannot_be_exported_is_refused_in_a_sentence():
    with pytest.raises(IncompatibleParts, match="3 quantile levels"):
        to_xgboost_json(BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], **SHORT).fit(X, Y))
    ridge = BoostingRegressor(learner=Ridge(), n_estimators=2).fit(np.nan_to_num(X), Y)
    refused(IncompatibleParts, "this model has another learner: Ridge", to_xgboost_json, ridge)
    codes = np.column_stack([X[:, 0], np.arange(len(X)) % 3])
    ours = BoostingRegressor(**SHORT, categorical_features=[1]).fit(codes, codes[:, 1] == 1)
    refused(IncompatibleParts, "column 1 contains .* or use to_onnx", to_xgboost_json, ours)
    own = TreeLearner(categorical=((1, 3),), min_samples_leaf=2)
    theirs = BoostingRegressor(learner=own, n_estimators=3).fit(codes, codes[:, 1] == 1)
    with pytest.raises(IncompatibleParts, match="trees of this model split on category levels"):
        to_xgboost_json(theirs)
    refused(InvalidType, "got KernelBoostingRegressor", to_xgboost_json, KernelBoostingRegressor())

    class Mine(Poisson):
        """A link of one's own."""

        def inverse_link(self, raw):
            return 2 * super().inverse_link(raw)

    with pytest.raises(IncompatibleParts, match="link of Normal.*use to_onnx, fit with another"):
        to_xgboost_json(BoostingRegressor("normal", **SHORT).fit(X, Y))
    with pytest.raises(IncompatibleParts, match="does not support the link of Mine"):
        to_xgboost_json(BoostingRegressor(Mine(), **SHORT).fit(X, np.abs(Y)))
    refused(ValueError, "not fitted", to_xgboost_json, BoostingRegressor())


class MyTweedie(Tweedie):
    """The link of the base class, with its inverse link."""


def test_a_derived_loss_is_exported_with_its_link():
    model = BoostingRegressor(MyTweedie(1.3), **SHORT).fit(X, np.abs(Y))
    text = to_xgboost_json(model)
    assert_near(raw_outputs(text, NEW), model.model_.predict_raw(NEW))
    booster, matrix = loaded(text)
    assert_near(booster.predict(matrix(NEW)), model.predict(NEW))


def test_large_targets_keep_their_digits():
    model = BoostingRegressor(**SHORT).fit(X, 1e6 + Y)
    found = raw_outputs(to_xgboost_json(model), NEW)[:, 0]
    np.testing.assert_allclose(found, model.predict(NEW), rtol=1e-6)
