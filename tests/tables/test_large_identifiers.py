"""Identifiers that float64 would round are levels of their own."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hilboost
from hilboost import BoostingRegressor
from hilboost.tables.arrays import without_mask
from hilboost.tables.encoding import encode, learn
from hilboost.tables.reading import read_table

N = 150


def as_frame(X, dtype):
    return pd.DataFrame(X, columns=["id", "number"]).astype(dtype)


def with_gaps(X):
    """The table of a nullable dtype in which some cells are missing."""
    frame = as_frame(X, "UInt64")
    frame.loc[7, "id"], frame.loc[9, "number"] = pd.NA, pd.NA
    return frame


def with_none(X):
    X = X.astype(object)
    X[7, 0] = None
    return X


FORMS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "list with fractions": lambda X: [[int(a), b + 0.5] for a, b in X],
    "objects": lambda X: X.astype(object),
    "objects with gaps": with_none,
    "masked": lambda X: np.ma.masked_array(X, mask=np.arange(2 * N).reshape(-1, 2) == 14),
    "pandas": lambda X: as_frame(X, np.uint64),
    "pandas nullable": lambda X: as_frame(X, "UInt64"),
    "pandas nullable with gaps": with_gaps,
    "pandas of Arrow": lambda X: as_frame(X, "uint64[pyarrow]"),
    "pandas category": lambda X: as_frame(X, "category").astype({"number": float}),
    "Polars": lambda X: pl.DataFrame(X, schema=["id", "number"]),
    "Polars with gaps": lambda X: pl.from_pandas(with_gaps(X)),
    "Arrow": lambda X: pa.table({"id": X[:, 0], "number": X[:, 1]}),
    "Arrow with gaps": lambda X: pa.Table.from_pandas(with_gaps(X)),
    "decimals": lambda X: pa.table(
        {"id": pa.array(X[:, 0]).cast(pa.decimal128(20, 0)), "number": X[:, 1]}
    ),
}


def drawn(seed, start):
    """A column of six identifiers of neighboring numbers, and their places."""
    rng = np.random.default_rng(seed)
    code = np.append(np.arange(6), rng.integers(6, size=N - 6))
    ids = np.uint64(start) + np.arange(6, dtype=np.uint64)
    return np.column_stack([ids[code], rng.integers(9, size=N).astype(np.uint64)]), code


@given(
    st.sampled_from(sorted(FORMS)),
    st.integers(0, 10**6),
    st.sampled_from([2**53 - 2, 2**60, 2**63 - 3, 2**64 - 9]),
)
def test_each_identifier_is_a_level(form, seed, start):
    X, code = drawn(seed, start)
    table = read_table(without_mask(FORMS[form](X)))
    matrix, schema = learn(table, [0])
    assert schema.levels == ((0, tuple(range(start, start + 6))),)
    has_id = ~np.isnan(matrix[:, 0])
    assert has_id.sum() >= N - 1
    np.testing.assert_array_equal(matrix[has_id, 0], code[has_id])
    np.testing.assert_array_equal(encode(table, schema.columns), matrix)


@pytest.mark.parametrize("form", FORMS)
def test_estimators_take_them_in_any_form(form):
    X, code = drawn(0, 2**63 - 3)
    model = BoostingRegressor(learner="tree", n_estimators=5, categorical_features=[0])
    predicted = model.fit(FORMS[form](X), code % 2).predict(FORMS[form](X))
    is_odd, has_id = code % 2 == 1, np.arange(N) != 7
    assert predicted[is_odd & has_id].min() > predicted[~is_odd & has_id].max() + 0.2


@pytest.mark.parametrize("target_encoding", [True, False])
def test_files_and_predictions_tell_them_apart(target_encoding, tmp_path):
    code = np.arange(400) % 10
    y = code % 2 - 0.5
    X = np.column_stack([2**53 + code, -(2**60) - code, np.arange(400)])
    model = BoostingRegressor(
        categorical_features=[0, 1], target_encoding=target_encoding, learner="tree", random_state=0
    )
    predicted = model.fit(X, y).predict(X)
    assert (predicted[y > 0].min() - predicted[y < 0].max()) > 0.2
    hilboost.save(model, tmp_path / "model")
    loaded = hilboost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    np.testing.assert_array_equal(loaded.predict(pd.DataFrame(X)), predicted)


def test_numbers_are_still_floats():
    X = np.column_stack([2**53 + np.arange(100), np.arange(100)])
    model = BoostingRegressor(n_estimators=3, random_state=0).fit(X, -X[:, 1])
    same = BoostingRegressor(n_estimators=3, random_state=0).fit(X.astype(float), -X[:, 1])
    np.testing.assert_array_equal(model.predict(X), same.predict(X.astype(float)))
