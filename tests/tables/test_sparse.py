"""Sparse tables: the same model as from the dense array, in little memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.reloaded import reloaded

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.learners.tree import TreeLearner
from hilboost.tables.sparse import SparseTable

FORMATS = (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix)


def draw(n=400, d=19, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1) * (rng.random((n, d)) < density)
    X[rng.random((n, d)) < 0.02] = np.nan
    X[0, :3] = -0.0
    return X, np.nan_to_num(X[:, :4]).sum(axis=1) + 0.1 * rng.normal(size=n)


X, Y = draw()


def same(model, sparse, dense, y, **given):
    left, right = (type(model)(**model.get_params()).fit(Z, y, **given) for Z in (sparse, dense))
    expected = right.predict(dense)
    for Z in (sparse, dense):
        np.testing.assert_array_equal(left.predict(Z), expected)
        np.testing.assert_array_equal(left.apply(Z), right.apply(dense))
    for a, b in zip(left.staged_predict(sparse), right.staged_predict(dense), strict=True):
        np.testing.assert_array_equal(a, b)
    return left


@pytest.mark.parametrize("make", FORMATS, ids=lambda make: make.__name__)
def test_every_format_gives_the_dense_model(make):
    same(BoostingRegressor(learner="tree", n_estimators=5, random_state=0), make(X), X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": True, "cv_folds": 1},
        {"early_stopping": True, "cv_folds": 3},
        {"early_stopping": False, "subsample": 0.5, "max_bins": 7},
        {"early_stopping": False, "max_leaf_nodes": None, "min_samples_leaf": 1},
        {"early_stopping": False, "learner": TreeLearner(max_leaf_nodes=4)},
        {"loss": "absolute_error", "max_features": 0.3},
    ],
    ids=str,
)
def test_every_kind_of_fit_gives_the_dense_model(parameters):
    weight = np.arange(len(Y)) % 3
    model = BoostingRegressor(
        **{"learner": "tree", "n_estimators": 8, "random_state": 0, **parameters}
    )
    same(model, sp.csr_array(X), X, Y, sample_weight=weight)


def test_classes_and_given_validation_rows():
    labels = np.digitize(Y, [-0.5, 0.5])
    rest = {"y_val": labels[300:]}
    left, right = (
        BoostingClassifier(
            learner="tree", n_estimators=6, random_state=0, multi_output="shared"
        ).fit(Z[:300], labels[:300], X_val=Z[300:], **rest)
        for Z in (sp.csr_array(X), X)
    )
    expected = right.predict_proba(X)
    np.testing.assert_array_equal(left.predict_proba(sp.csc_array(X)), expected)
    assert left.history_.validation.tolist() == right.history_.validation.tolist()


def test_warm_start_and_checkpoint(tmp_path):
    S = sp.csr_array(X)
    model = BoostingRegressor(n_estimators=4, warm_start=True, random_state=0, early_stopping=False)
    model.fit(S, Y).set_params(n_estimators=9).fit(S, Y)
    plain = BoostingRegressor(n_estimators=9, random_state=0, early_stopping=False).fit(X, Y)
    np.testing.assert_array_equal(model.predict(S), plain.predict(X))
    path = tmp_path / "fit"
    for n_estimators in (4, 9):
        model = BoostingRegressor(n_estimators=9, random_state=0, early_stopping=False)
        stop = [lambda event, last=n_estimators: event.stage == last]
        model.fit(S, Y, callbacks=[Checkpoint(path), *stop])
    np.testing.assert_array_equal(model.predict(S), plain.predict(X))
    refused(InvalidData, r"different data \(X", model.fit, 2 * S, Y, callbacks=[Checkpoint(path)])
    np.testing.assert_array_equal(reloaded(model).predict(S), plain.predict(X))


def test_entries_that_are_given_twice():
    rows, columns, values = [0, 0, 1, 2, 2], [1, 1, 0, 1, 0], [1.0, 2.0, 5.0, -1.0, 0.0]
    twice = sp.csr_array((values, columns, [0, 2, 3, 5]), shape=(3, 2))
    before = twice.data.copy()
    table = SparseTable(twice)
    np.testing.assert_array_equal(table.columns(0, 2, 0, 3), [[0, 3], [5, 0], [0, -1]])
    np.testing.assert_array_equal(twice.data, before)
    model = BoostingRegressor(n_estimators=3, min_samples_leaf=1)
    same(model, sp.coo_array((values, (rows, columns)), shape=(3, 2)), twice.toarray(), [1, 2, 3])


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(1, 20), st.data())
def test_blocks_are_those_of_the_dense_array(n, d, data):
    dense = draw(n, d, 0.3, seed=n * d)[0]
    table = SparseTable(sp.csr_array(dense))
    assert (table.shape, table.size, len(table)) == ((n, d), n * d, n)
    first, begin = data.draw(st.integers(0, d - 1)), data.draw(st.integers(0, n - 1))
    last, end = data.draw(st.integers(first, d)), data.draw(st.integers(begin, n))
    block = table.columns(first, last, begin, end)
    np.testing.assert_array_equal(block, dense[begin:end, first:last])
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1)))
    np.testing.assert_array_equal(table[rows].column(d - 1), dense[rows, d - 1])
    columns = np.array(data.draw(st.lists(st.integers(0, d - 1), unique=True)), dtype=np.int64)
    blocks = list(table.row_blocks(columns))
    np.testing.assert_array_equal(np.concatenate([b for _, b in blocks]), dense[:, columns])


@pytest.mark.parametrize(("n", "d"), [(70_000, 40), (201_000, 2)])
def test_many_blocks_of_rows_and_columns_and_bins_from_a_sample_of_rows(n, d):
    S = sp.random_array((n, d), density=0.05, rng=0, format="csr")
    dense = S.toarray()
    y = dense[:, 0] - dense[:, 1] + np.random.default_rng(0).normal(size=n)
    model = BoostingRegressor(
        learner="tree", n_estimators=2, early_stopping=False, random_state=0, n_jobs=2
    )
    same(model, S, dense, y)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_memory_follows_what_is_filled():
    n, d = 20_000, 300
    places = np.random.default_rng(0).integers([[n], [d]], size=(2, n * d // 100))
    S = sp.csr_array(sp.coo_array((np.ones(places.shape[1]), tuple(places)), shape=(n, d)))
    y = S[:, [0]].toarray()[:, 0]
    model = BoostingRegressor(n_estimators=2, max_leaf_nodes=4, early_stopping=False, n_jobs=1)
    model.fit(S, y).predict(S)
    tracemalloc.start()
    model.fit(S, y).predict(S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * n * d * 8  # less than the dense table alone; bins take an eighth of it


@pytest.mark.parametrize(
    "model", [KernelBoostingRegressor(), OutputKernelTreeRegressor()], ids=lambda m: str(m)
)
def test_learners_that_do_not_take_it(model):
    said = rf"Sparse data was passed for X, but {type(model).__name__} .*toarray"
    with pytest.raises(InvalidType, match=said) as told:
        model.fit(sp.csr_array(np.nan_to_num(X)), Y)
    assert "learner" not in str(told.value)
    model.fit(np.nan_to_num(X[:50]), Y[:50])
    refused(InvalidType, said, model.predict, sp.csr_array(X))


def test_refusals():
    S = sp.csr_array(X)
    model = BoostingRegressor(n_estimators=3)
    infinite = S.copy()
    infinite.data[infinite.indices == 7] = np.inf
    assert model.fit(infinite, Y).n_estimators_ == 3
    with pytest.raises(InvalidParameter, match="is not supported for sparse matrices; set"):
        BoostingRegressor(categorical_features=[1]).fit(S, Y)
    model.fit(S, Y)
    with pytest.raises(ValueError, match="X has 18 features, but BoostingRegressor is expecting"):
        model.predict(S[:, :18])
    refused(ValueError, r"0 sample\(s\)", model.predict, S[:0])
    model.fit(pd.DataFrame({"t": ["a", "b"] * 20}), Y[:40])
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(InvalidType, match="categorical columns, which sparse matrices do not"),
    ):
        model.predict(sp.csr_array(np.zeros((3, 1))))
