"""Shapley values of predictions: they add up, and belong to the right columns."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsRegressor
from tests.cases import PLAIN
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.core.errors import DataWarning, IncompatibleParts, InvalidData, InvalidParameter
from hilboost.kernels import Gaussian

SHORT = {"n_estimators": 10, "early_stopping": False, "random_state": 0}
DEEP = SHORT | {"learner": "tree", "learning_rate": 0.3, "min_samples_leaf": 5}
METHODS = ("interventional", "path_dependent")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
X[RNG.uniform(size=X.shape) < 0.1] = np.nan
FULL = np.nan_to_num(X)
Y = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + 2 * np.nan_to_num(X[:, 2])


def table(n=150):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "town": rng.choice([f"t{i}" for i in range(40)], size=n),
            "street": rng.choice([f"s{i}" for i in range(50)], size=n),
            "color": rng.choice(["red", "green", "blue"], size=n),
            "size": rng.normal(size=n),
        }
    )
    return frame, frame["size"] + (frame["color"] == "red") + frame["town"].str.len()


def assert_adds_up(model, rows, background=None):
    for method in METHODS:
        found = model.shap_values(rows, background, method=method)
        total = found.values.sum(axis=1) + found.base_values
        raw = model.predict_raw(rows)
        np.testing.assert_allclose(total, raw if raw.shape[1] > 1 else raw[:, 0], atol=1e-9)
    return found


@pytest.mark.parametrize("learner", ["linear", ["tree", "linear", "kernel"]])
def test_values_add_up(learner):
    model = BoostingRegressor(**SHORT, learner=learner).fit(FULL, Y)
    found = assert_adds_up(model, FULL[:30], FULL[30:80])
    assert found.values.shape == (30, 4)
    assert found.feature_names == ["0", "1", "2", "3"]


def shapley_by_subsets(predict, rows, background):
    """Interventional Shapley values (n, d) by their definition."""
    n, d = rows.shape
    worth = {}
    for size in range(d + 1):
        for known in combinations(range(d), size):
            mixed = np.repeat(background[None], n, axis=0)
            mixed[:, :, known] = rows[:, None, known]
            outputs = predict(mixed.reshape(-1, d))
            worth[frozenset(known)] = outputs.reshape(n, -1).mean(axis=1)
    found = np.zeros((n, d))
    for known, value in worth.items():
        for j in set(range(d)) - known:
            share = factorial(len(known)) * factorial(d - len(known) - 1) / factorial(d)
            found[:, j] += share * (worth[known | {j}] - value)
    return found


@pytest.mark.parametrize(
    "model",
    [
        KernelBoostingRegressor(kernel=Gaussian(1.5), regularization=0.1),
        SparseKernelRidge(kernel=Gaussian(1.5), regularization=0.1, n_basis=40),
        BoostingRegressor(**SHORT, learner=KNeighborsRegressor()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_of_other_stages_lie_within_their_standard_errors(model):
    model.fit(FULL, Y)
    rows, background = FULL[:20], FULL[40:72]
    exact = shapley_by_subsets(model.predict, rows, background)
    found = model.shap_values(rows, background, n_orders=32)
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict(rows), atol=1e-9)
    off = (found.values - exact) / found.standard_errors
    assert np.sqrt((off**2).mean()) < 1.5
    assert found.standard_errors.max() < 0.3 * np.abs(exact).max()
    few = model.shap_values(rows[3:5], background, n_orders=32)
    np.testing.assert_allclose(few.values, found.values[3:5], atol=1e-9)


@pytest.mark.slow
def test_orders_are_doubled_until_values_are_accurate():
    model = KernelBoostingRegressor(kernel=Gaussian(0.7), regularization=0.01).fit(FULL, Y)
    rows, background = FULL[:5], FULL[40:]
    fixed, chosen = (
        model.shap_values(rows, background, n_orders=32),
        model.shap_values(rows, background),
    )
    limit = 0.05 * model.predict(background).std()
    assert chosen.standard_errors.max() < limit < fixed.standard_errors.max()
    exact = shapley_by_subsets(model.predict, rows, background)
    assert np.abs(chosen.values - exact).max() < 3 * limit
    many = np.tile(FULL, (56, 1))
    with pytest.warns(DataWarning, match="the largest standard error .* set n_orders"):
        model.shap_values(many, background)


@pytest.mark.slow
def test_trees_beside_a_kernel_machine():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(220, 3)), columns=list("abc"))
    frame["kind"] = rng.choice(["x", "y", "z"], size=220)
    y = np.sin(2 * frame["a"]) * frame["b"] + (frame["kind"] == "x")
    model = BoostingRegressor(n_estimators=20, random_state=0, n_jobs=1)
    model.fit(frame, y)
    assert model.parts_["kernel"].weight > 0
    found = assert_adds_up(model, frame[:20], frame[50:90])
    assert found.values.shape == found.standard_errors.shape == (20, 4)
    assert MODEL.shap_values(X[:20], X[20:50]).standard_errors is None


@pytest.mark.parametrize("parameters", [{}, {"multi_output": "shared"}, {"cv_folds": 3}])
def test_several_classes(parameters):
    labels = np.digitize(Y, [-1, 1])
    settings = PLAIN | ({"early_stopping": True} if "cv_folds" in parameters else {})
    model = BoostingClassifier(**settings | parameters).fit(X, labels)
    assert assert_adds_up(model, X[:25]).values.shape == (25, 4, 3)


FOLDS = {"learner": "tree", "early_stopping": True, "cv_folds": 2}


@pytest.mark.parametrize("parameters", [{}, {"target_encoding": True}, FOLDS])
def test_categories_belong_to_their_own_columns_and_interact(parameters):
    frame, y = table()
    model = BoostingRegressor(**PLAIN | parameters).fit(frame, y)
    rows, background = frame[:30], frame[40:100]
    found = assert_adds_up(model, rows, background)
    assert found.data[0].tolist() == frame.iloc[0].tolist()
    for method in METHODS:
        found = model.shap_values(rows, background, method=method)
        pairs = model.shap_interaction_values(rows, background, method=method)
        assert pairs.values.shape == (30, 4, 4)
        np.testing.assert_allclose(pairs.values.sum(axis=2), found.values, atol=1e-9)
        np.testing.assert_allclose(pairs.values, pairs.values.transpose(0, 2, 1), atol=1e-12)
        assert np.abs(pairs.values[:, ~np.eye(4, dtype=bool)]).max() > 0
        assert pairs.feature_names == found.feature_names == list(frame.columns)


def test_only_columns_of_a_tree_together_interact():
    settings = DEEP | {"interaction_cst": [[0, 1], [2], [3]]}
    values = BoostingRegressor(**settings).fit(FULL, Y).shap_interaction_values(FULL[:20]).values
    assert np.abs(values[:, 0, 1]).max() > 0
    assert not values[:, [0, 0, 1, 1, 2], [2, 3, 2, 3, 3]].any()
    sums = BoostingRegressor(**SHORT, learner="linear").fit(FULL, Y)
    values = sums.shap_interaction_values(FULL[:20]).values
    assert not values[:, ~np.eye(4, dtype=bool)].any()
    labels = np.digitize(Y, [-1, 1])
    classes = BoostingClassifier(**PLAIN).fit(FULL, labels).shap_interaction_values(FULL[:20])
    assert classes.values.shape == (20, 4, 4, 3)


def test_the_package_shap_agrees_with_interactions():
    shap = pytest.importorskip("shap")
    model = BoostingRegressor(**DEEP).fit(FULL, Y)
    background = FULL  # shap requires a row in every leaf
    trees = []
    for _, tree in hilboost.tree_table(model, background).groupby(["stage", "tree"]):
        numbers = {
            "children_left": tree["left"].fillna(-1),
            "children_right": tree["right"].fillna(-1),
            "children_default": tree["left"].fillna(-1),
            "features": tree["column"].fillna(-2),
            "thresholds": tree["threshold"].fillna(-2.0),
            "values": tree["value"].fillna(0.0),
            "node_sample_weight": tree["rows"],
        }
        arrays = {name: series.to_numpy(dtype=float) for name, series in numbers.items()}
        indices = ("children_left", "children_right", "children_default", "features")
        arrays |= {name: arrays[name].astype(np.int64) for name in indices}
        trees.append(arrays | {"values": arrays["values"][:, None]})
    explainer = shap.TreeExplainer({"trees": trees}, feature_perturbation="tree_path_dependent")
    found = model.shap_interaction_values(FULL[:10], background, method="path_dependent")
    expected = explainer.shap_interaction_values(FULL[:10])
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert np.abs(expected[:, 0, 1]).max() > 0.01


def test_interventional_values_of_a_sum_are_differences_of_its_parts():
    model = BoostingRegressor(**PLAIN, interaction_cst="no_interactions").fit(X, Y)
    found = model.shap_values(X[:5], X[5:50])
    for k in range(4):
        changed = X[5:50][None].repeat(5, axis=0)
        changed[:, :, k] = X[:5, None, k]
        expected = model.predict(changed.reshape(-1, 4)).reshape(5, -1).mean(axis=1)
        np.testing.assert_allclose(found.values[:, k], expected - found.base_values, atol=1e-10)
    other = model.shap_values(X[:5], X[5:50], method="path_dependent")
    np.testing.assert_allclose(other.values, found.values, atol=1e-10)


@given(seed=st.integers(0, 10**6))
def test_threads_and_order_of_the_background_change_nothing(seed):
    rng = np.random.default_rng(seed)
    model = MODEL.set_params(n_jobs=1)
    order = rng.permutation(40)
    for method in METHODS:
        found = model.shap_values(X[:20], X[40:80], method=method).values
        again = MODEL.set_params(n_jobs=2).shap_values(X[:20], X[40:80], method=method).values
        np.testing.assert_array_equal(again, found)
        permuted = model.shap_values(X[:20], X[40:80][order], method=method).values
        np.testing.assert_allclose(permuted, found, atol=1e-12)


MODEL = BoostingRegressor(**PLAIN).fit(X, Y)


def test_sparse_rows_and_float32_and_files():
    dense = np.where(np.abs(X) > 1, 0, np.nan_to_num(X)).astype(np.float32)
    model = BoostingRegressor(**PLAIN).fit(scipy.sparse.csr_array(dense), Y)
    found = model.shap_values(scipy.sparse.csr_array(dense)).values
    np.testing.assert_array_equal(model.shap_values(dense).values, found)
    np.testing.assert_array_equal(reloaded(model).shap_values(dense).values, found)


def test_the_package_shap_agrees_and_plots():
    shap = pytest.importorskip("shap")
    found = MODEL.shap_values(X[:20], X[40:60])
    explanation = found.explanation()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.values.shape == explanation.data.shape == (20, 4)

    def predict(rows):
        return MODEL.predict(rows)

    exact = shap.explainers.Exact(predict, shap.maskers.Independent(X[40:60]))(X[:20])
    np.testing.assert_allclose(found.values, exact.values, atol=1e-9)


def test_refusals():
    machine, series = SparseKernelRidge(n_basis=9).fit(FULL, Y), pd.Series([1.0, 2.0, 3.0])
    for call, error, message in (
        (lambda: MODEL.shap_values(X[:3]), InvalidData, "3 rows, too few.*pass background="),
        (lambda: MODEL.shap_values(X, method="tree"), InvalidParameter, "method='tree' is not"),
        (lambda: MODEL.shap_interaction_values(X[:3]), InvalidData, "3 rows, too few"),
        (
            lambda: machine.shap_interaction_values(FULL),
            IncompatibleParts,
            "supports trees and lin",
        ),
        (lambda: MODEL.shap_values(X, n_orders=1), InvalidParameter, "at least 2; got 1"),
        (lambda: MODEL.shap_values(X, X[:, :2]), InvalidData, "^background: X has 2 features, but"),
        (
            lambda: MODEL.shap_values(X, series),
            InvalidData,
            "^background must be a table of rows, s",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_paths_that_are_too_long():
    one_row_a_split = {"min_samples_leaf": 1, "max_leaf_nodes": 80, "l2_regularization": 0.0}
    model = BoostingRegressor(**DEEP | one_row_a_split).fit(np.eye(80), np.arange(80.0))
    with pytest.raises(IncompatibleParts, match="up to 62 different columns.*limit max_depth"):
        model.shap_values(np.eye(80))
