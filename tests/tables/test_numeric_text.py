"""Columns of numbers that a few words have turned into text."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import PLAIN

import hilboost.stream
from hilboost import BoostingRegressor
from hilboost.core.errors import DataWarning

MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 2, "learner": "tree"})
N = 400


def column(words, n=N, seed=0):
    texts = [f"{value:.1f}" for value in np.random.default_rng(seed).normal(size=n)]
    texts[7 : 7 + len(words)] = words
    return texts


def object_array(values):
    return np.array(values, dtype=object)[:, None]


TABLES = {
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "objects": lambda values: pd.DataFrame({"a": values}, dtype=object),
    "polars": lambda values: pl.DataFrame({"a": values}),
    "arrow": lambda values: pa.table({"a": pa.chunked_array([values[:9], values[9:]])}),
    "array": object_array,
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_few_words_are_told(kind):
    table = TABLES[kind](column(["oops", "n/a", "oops"]))
    told = r"column .* is numeric except for 3 of its 400 values \('oops' in row 7\), so that"
    with pytest.warns(DataWarning, match=told):
        MODEL.fit(table, np.arange(N))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BoostingRegressor(**MODEL.get_params() | {"categorical_features": [0]}).fit(
            table, np.arange(N)
        )


@given(
    st.lists(st.sampled_from(["oops", "n/a", "?", "-", "1,5"]), max_size=6),
    st.integers(0, 4),
    st.integers(100, 700),
)
def test_less_than_one_percent_is_told(words, n_missing, n):
    values = column(words, n)
    values[50 : 50 + n_missing] = [None] * n_missing
    table = pa.table({"a": values, "y": np.arange(n, dtype=float)})
    wanted = 0 < len(words) < 0.01 * (n - n_missing)
    for fit in (
        lambda: MODEL.fit(table.select(["a"]), np.arange(n)),
        lambda: hilboost.stream.fit(MODEL, iter(table.to_batches(30)), target="y"),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", DataWarning)
            fit()
        told = [str(one.message) for one in found if "is numeric except" in str(one.message)]
        assert len(told) == wanted
        if wanted:
            assert f"{len(words)} of its {n - n_missing} values ('{words[0]}' in row 7)" in told[0]
