"""Tables that are read in blocks give the same models as matrices of floats."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost import BoostingRegressor
from hilboost.backends.row_hashes import add_hashes
from hilboost.tables.blocks import DenseTable


def draw(seed, n=120, d=11):
    rng = np.random.default_rng(seed)
    return rng.integers(-50, 50, size=(n, d)), rng


def raw(X, floats, y, weight=None, **parameters):
    model = BoostingRegressor(n_estimators=4, max_leaf_nodes=5, random_state=0, **parameters)
    return model.fit(X, y, weight).predict_raw(floats)


FORMS = {
    "integers": lambda whole: whole,
    "bytes": lambda whole: whole.astype(np.int8),
    "Fortran order": lambda whole: np.asfortranarray(whole, dtype=np.float64),
    "every second column": lambda whole: np.repeat(whole.astype(np.float32), 2, axis=1)[:, ::2],
    "pandas": lambda whole: pd.DataFrame(whole, columns=[f"x{k}" for k in range(11)]),
    "polars": lambda whole: pl.DataFrame(
        {
            f"x{k}": column.astype(np.float32 if k % 2 else np.int16)
            for k, column in enumerate(whole.T)
        }
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": False},
        {"early_stopping": True, "cv_folds": 1},
        {"early_stopping": True, "cv_folds": 3},
    ],
    ids=["all rows", "held-out rows", "folds"],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_same_bits(form, parameters, weighted):
    whole, rng = draw(0)
    y = whole[:, 0] + rng.normal(size=len(whole))
    weight = rng.choice([0.0, 0.5, 1.0], size=len(whole)) if weighted else None
    floats = whole.astype(np.float64)
    expected = raw(floats, floats, y, weight, **parameters)
    found = raw(FORMS[form](whole), floats, y, weight, **parameters)
    np.testing.assert_array_equal(found, expected)


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64, np.int16, np.bool_]))
@settings(max_examples=30, deadline=None)
def test_reading(seed, dtype):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 200), rng.integers(1, 12)
    matrix = rng.integers(0, 9, size=(n, d)).astype(dtype)
    expected = matrix.astype(np.float32 if dtype == np.float32 else np.float64)
    rows = rng.integers(n, size=int(rng.integers(1, 50)))
    for table in (DenseTable(matrix), DenseTable(list(matrix.T))):
        parts = [(table, expected), (table[1:150], expected[1:150])]
        for part, wanted in (*parts, (table[rows][:20], expected[rows][:20])):
            assert part.shape == wanted.shape
            assert part.size == wanted.size
            assert part.dtype == wanted.dtype
            np.testing.assert_array_equal(part.array(), wanted)
            np.testing.assert_array_equal(part.column(d - 1), wanted[:, d - 1])
            used = np.flatnonzero(rng.uniform(size=d) < 0.5)
            blocks = [block for _, block in part.row_blocks(used)]
            np.testing.assert_array_equal(np.concatenate(blocks), wanted[:, used])


def test_large_values_whose_sum_overflows_are_finite():
    X = np.asfortranarray(np.full((40, 2), 1e308))
    assert BoostingRegressor(early_stopping=False).fit(X, np.arange(40.0)).n_estimators_ > 0


def test_no_rows():
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 1\)\).*BoostingRegressor"):
        BoostingRegressor().fit(pd.DataFrame({"a": np.empty(0)}), np.empty(0))


@pytest.mark.parametrize("view", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_a_block_of_a_table_in_any_order_copies_no_other_rows(view):
    X = view(np.arange(400_000, dtype=np.float32).reshape(40_000, 10))
    table = DenseTable(X)[np.arange(39_999, 0, -3)]
    tracemalloc.start()
    block = table.block(100, 110)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(block, X[39_699:39_669:-3])
    assert peak < 20_000


@pytest.mark.parametrize("columns", [None, np.array([0, 2])])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_arrays_that_cannot_be_written_to_are_hashed_by_the_same_code(order, columns):
    X = np.round(draw(0)[1].normal(size=(50, 3)), 1).astype(np.float32)
    expected, others = DenseTable(X).row_hashes(columns), len(add_hashes.signatures)
    for dtype in np.float32, np.float64:
        kept = X.astype(dtype, order=order)
        kept.flags.writeable = False
        np.testing.assert_array_equal(DenseTable(kept).row_hashes(columns), expected)
    assert len(add_hashes.signatures) == others
