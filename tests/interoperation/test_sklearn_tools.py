"""scikit-learn's tools around every family of estimators."""

import io
import pickle

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.inspection import (
    PartialDependenceDisplay,
    partial_dependence,
)
from sklearn.model_selection import (
    GridSearchCV,
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


@classifiers
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_probabilities(model, method):
    calibrated = CalibratedClassifierCV(model, method=method, cv=3).fit(X, LABELS)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert calibrated.score(X, LABELS) > 0.7


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


@regressors
def test_several_targets(model):
    both = np.column_stack([Y, -2 * Y])
    assert MultiOutputRegressor(model).fit(X, both).predict(X).shape == both.shape
    assert RegressorChain(model).fit(X, both).score(X, both) > 0.6
    assert clone(model).fit(X, both).predict(X).shape == both.shape


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
