"""scikit-learn's tools around every family of estimators."""

import io
import pickle

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor, StackingClassifier, StackingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.interoperation.families import (
    CLASSIFIERS,
    FAMILIES,
    LABELS,
    REGRESSORS,
    WEIGHT,
    X,
    Y,
    name,
    target,
)

matplotlib.use("agg")
all_families = pytest.mark.parametrize("model", FAMILIES, ids=name)
regressors = pytest.mark.parametrize("model", REGRESSORS, ids=name)
classifiers = pytest.mark.parametrize("model", CLASSIFIERS, ids=name)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@all_families
def test_clones_pickles_and_joblib_files(model, tmp_path):
    fitted = clone(model).fit(X, target(model))
    expected = fitted.predict(X)
    assert repr(clone(fitted)) == repr(model)
    np.testing.assert_array_equal(clone(fitted).fit(X, target(model)).predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), expected)
    joblib.dump(fitted, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(X), expected)
    stream = io.BytesIO()
    joblib.dump(fitted, stream, compress=3)
    stream.seek(0)
    np.testing.assert_array_equal(joblib.load(stream).predict(X), expected)


@all_families
def test_column_transformers_and_pandas_output(model):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(color=np.where(X[:, 0] > 0, "r", "g"))
    with sklearn.config_context(transform_output="pandas"):
        columns = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["color"]), (StandardScaler(), ["a", "b"])
        )
        pipeline = make_pipeline(columns, clone(model)).fit(table, target(model))
        assert list(pipeline[-1].feature_names_in_) == list(pipeline[0].get_feature_names_out())
        shuffled = table[["c", "color", "b", "a"]]
        np.testing.assert_array_equal(pipeline.predict(shuffled), pipeline.predict(table))


@all_families
def test_cross_validation(model):
    scores = cross_val_score(model, X, target(model), cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    out_of_fold = cross_val_predict(model, X, target(model), cv=3)
    assert out_of_fold.shape == (len(X),)
    found = cross_validate(model, X, target(model), cv=2, params={"sample_weight": WEIGHT})
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (REGRESSORS[0], {"max_leaf_nodes": [2, 8], "loss": ["squared_error", "huber"]}),
        (REGRESSORS[1], {"kernel": ["gaussian", "matern32"], "regularization": [0.01, 10.0]}),
        (REGRESSORS[2], {"n_basis": [5, 40]}),
        (REGRESSORS[3], {"learning_rate": [0.01, 0.4]}),
        (CLASSIFIERS[0], {"max_leaf_nodes": [2, 8], "class_weight": [None, "balanced"]}),
        (CLASSIFIERS[2], {"loss": ["log_loss", "squared_hinge"]}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else name(value),
)
def test_grid_search(model, grid):
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, target(model))
    assert set(search.best_params_) == set(grid)
    assert search.score(X, target(model)) > 0.6


@pytest.mark.parametrize(
    ("model", "resource", "settings"),
    [
        (REGRESSORS[0], "n_estimators", {"max_resources": 12, "n_candidates": 4}),
        (CLASSIFIERS[0], "n_samples", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_halving_random_search(model, resource, settings):
    search = HalvingRandomSearchCV(
        model,
        {"max_leaf_nodes": randint(2, 9), "learning_rate": loguniform(0.05, 0.5)},
        resource=resource,
        cv=2,
        random_state=0,
        error_score="raise",
        **settings,
    ).fit(X, target(model))
    assert search.n_iterations_ > 1


@classifiers
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_probabilities(model, method):
    calibrated = CalibratedClassifierCV(model, method=method, cv=3).fit(X, LABELS)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert calibrated.score(X, LABELS) > 0.7


@classifiers
def test_tuned_thresholds(model):
    tuned = TunedThresholdClassifierCV(model, cv=2).fit(X, LABELS == "high")
    assert 0 < tuned.best_threshold_ < 1


@all_families
def test_partial_dependence(model):
    two = LABELS == "high"
    model = clone(model).fit(X, two if model in CLASSIFIERS else Y)
    found = partial_dependence(model, X, [0], grid_resolution=5)
    assert np.all(np.diff(found["average"][0][[0, 2, 4]]) > 0)
    display = PartialDependenceDisplay.from_estimator(
        model, X, [0, (0, 1)], kind="average", grid_resolution=4
    )
    assert len(display.axes_.ravel()) >= 2
    matplotlib.pyplot.close("all")


@all_families
def test_permutation_importance(model):
    fitted = clone(model).fit(X, target(model))
    found = permutation_importance(fitted, X, target(model), n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0
    assert found.importances_mean[2] < 0.2 * found.importances_mean[0]


@classifiers
def test_decision_boundaries(model):
    fitted = clone(model).fit(X[:, :2], LABELS == "high")
    shown = DecisionBoundaryDisplay.from_estimator(fitted, X[:, :2], grid_resolution=5)
    assert np.ptp(shown.response) > 0.5
    matplotlib.pyplot.close("all")


@regressors
def test_several_targets(model):
    both = np.column_stack([Y, -2 * Y])
    assert MultiOutputRegressor(model).fit(X, both).predict(X).shape == both.shape
    assert RegressorChain(model).fit(X, both).score(X, both) > 0.6
    assert clone(model).fit(X, both).predict(X).shape == both.shape


@regressors
def test_stacked_and_bagged_regressors(model):
    stack = StackingRegressor([("line", LinearRegression()), ("own", model)], cv=2)
    assert stack.fit(X, Y).score(X, Y) > 0.6
    last = StackingRegressor([("line", LinearRegression())], final_estimator=model, cv=2)
    assert last.fit(X, Y).predict(X).shape == Y.shape
    bag = BaggingRegressor(model, n_estimators=2, random_state=0).fit(X, Y)
    assert bag.predict(X).shape == Y.shape


@classifiers
def test_stacked_classifiers(model):
    stack = StackingClassifier([("line", LogisticRegression()), ("own", model)], cv=2)
    assert stack.fit(X, LABELS).score(X, LABELS) > 0.6


@regressors
def test_transformed_targets(model):
    positive = np.exp(Y)
    logarithm = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    logarithm.fit(X, positive)
    expected = np.exp(clone(model).fit(X, np.log(positive)).predict(X))
    np.testing.assert_allclose(logarithm.predict(X), expected)


@all_families
@pytest.mark.usefixtures("routing")
def test_sample_weights_are_routed(model):
    asking = clone(model).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler(), asking)
    pipeline[0].set_fit_request(sample_weight=False)
    pipeline.fit(X, target(model), sample_weight=WEIGHT)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(model).fit(scaled, target(model), sample_weight=WEIGHT)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    scoring = asking.set_score_request(sample_weight=True)
    scores = cross_validate(scoring, X, target(model), cv=2, params={"sample_weight": WEIGHT})
    assert np.isfinite(scores["test_score"]).all()
    search = GridSearchCV(scoring, {"random_state": [0]}, cv=2, error_score="raise")
    search.fit(X, target(model), sample_weight=WEIGHT)


@all_families
def test_diagrams_of_notebooks(model):
    assert type(model).__name__ in model._repr_html_()
    assert "ColumnTransformer" in ColumnTransformer([])._repr_html_()
