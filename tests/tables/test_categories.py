"""Columns of categories: which they are, their levels, and what later tables may hold."""

import enum
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

from hilboost import BoostingRegressor
from hilboost.core.errors import InvalidData
from hilboost.tables.schema import Column, Schema, category_columns
from hilboost.validation.inputs import Expected, check_inputs

FRAME = pd.DataFrame(
    {
        "x": [0.5, np.nan, 2.5, 0.5],
        "k": [7, 3, 7, 10],
        "t": ["b", None, "é", "a"],
        "c": pd.Categorical([3, 20, None, 3], categories=[100, 20, 3]),
        "b": [True, False, False, True],
    }
)


def read(X, given="from_dtype"):
    estimator = BoostingRegressor(categorical_features=given)
    matrix, schema = check_inputs(estimator, X, Expected(None, given))
    return matrix, Reader(estimator, schema)


@dataclass
class Reader:
    """An estimator that has read a table."""

    estimator: BoostingRegressor
    schema: Schema


def later(reader, X):
    return check_inputs(reader.estimator, X, Expected(reader.schema))[0]


@pytest.mark.parametrize("given", [["k"], [1], [False, True, False, False, False], []])
def test_text_is_categorical_beside_a_list(given):
    frame = FRAME.assign(c=pd.Categorical(["u", "v", None, "u"]))
    matrix, estimator = read(frame, given)
    listed = ("k",) if given else ()
    kinds = {column.name: column.kind for column in estimator.schema.columns}
    assert [name for name, kind in kinds.items() if kind == "category"] == [*listed, "t", "c"]
    np.testing.assert_array_equal(later(estimator, frame), matrix)
    assert Column("c") == read(FRAME, given)[1].schema.columns[3]  # numbers, unless listed
    refused(InvalidData, "'t' contains text .* but categorical_features=None", read, frame, None)


def test_from_dtype():
    matrix, estimator = read(FRAME)
    expected = [
        [0.5, 7, 1, 0, 1],
        [np.nan, 3, np.nan, 1, 0],
        [2.5, 7, 2, np.nan, 0],
        [0.5, 10, 0, 0, 1],
    ]
    np.testing.assert_array_equal(matrix, expected)
    assert estimator.schema.columns == (
        Column("x"),
        Column("k"),
        Column("t", "category", ("a", "b", "é")),
        Column("c", "category", (3, 20)),
        Column("b"),
    )
    assert category_columns(estimator.schema) == ((2, 3), (3, 2))
    assert estimator.estimator.feature_names_in_.tolist() == list(FRAME.columns)


@pytest.mark.parametrize(
    "given",
    [
        ["t", "k", "b", "x"],
        ("x", "k", "t", "b"),
        [0, 1, 2, 4],
        np.array([4, 2, 1, 0]),
        [True, True, True, False, True],
        np.array([True, True, True, False, True]),
        pd.Series(["x", "k", "t", "b"]),
    ],
    ids=str,
)
def test_columns_that_are_named(given):
    matrix, estimator = read(FRAME, given)
    expected = [[0, 1, 1, 3, 1], [np.nan, 0, np.nan, 20, 0], [1, 1, 2, np.nan, 0], [0, 2, 0, 3, 1]]
    np.testing.assert_array_equal(matrix, expected)
    columns = estimator.schema.columns
    assert [column.levels for column in columns] == [
        (0.5, 2.5),
        (3, 7, 10),
        ("a", "b", "é"),
        (),
        (False, True),
    ]
    types = [type(column.levels[0]) for column in columns if column.levels]
    assert types == [float, int, str, bool]


def test_none_are_categories():
    numbers = FRAME.drop(columns="t")
    matrix, estimator = read(numbers, None)
    np.testing.assert_array_equal(matrix, numbers.astype(float))
    assert category_columns(estimator.schema) == ()


def test_levels_of_an_array():
    X = np.array([[1.0, 5.0], [np.nan, 5.0], [0.0, 6.5]])
    before = X.copy()
    matrix, estimator = read(X, [0])
    np.testing.assert_array_equal(matrix, [[1, 5], [np.nan, 5], [0, 6.5]])
    np.testing.assert_array_equal(later(estimator, X + 1), [[-1, 6], [np.nan, 6], [1, 7.5]])
    np.testing.assert_array_equal(X, before)
    assert estimator.schema == Schema(2, None, ((0, (0, 1)),))
    assert read(X, [1])[1].schema.levels == ((1, (5.0, 6.5)),)


def test_later_levels():
    _, estimator = read(FRAME)
    other = pd.DataFrame(
        {
            "x": [1, 2, 3],
            "k": [0.5, 0.5, None],
            "t": pd.Categorical(["a", "new", None]),
            "c": [3.0, 4.0, np.nan],
            "b": [0, 1, 2],
        }
    )
    expected = [[1, 0.5, 0, 0, 0], [2, 0.5, -1, -1, 1], [3, np.nan, np.nan, np.nan, 2]]
    for X in (other, pl.from_pandas(other), pa.Table.from_pandas(other)):
        np.testing.assert_array_equal(later(estimator, X), expected)


def test_levels_that_are_declared_but_do_not_occur():
    declared = [pd.Categorical(["c", "a"], ["z", "c", "b", "a"]), ["c", "a"]]
    for values in declared:
        matrix, estimator = read(pd.DataFrame({"t": values}))
        assert estimator.schema.levels == ((0, ("a", "c")),)
        np.testing.assert_array_equal(matrix, [[1], [0]])
        np.testing.assert_array_equal(later(estimator, pl.DataFrame({"t": ["b"]})), [[-1]])


def test_codes_count_by_value_and_code_point():
    numbers = pd.DataFrame({"c": pd.Categorical([10, 9, 100, 9])})
    np.testing.assert_array_equal(read(numbers)[0][:, 0], [1, 0, 2, 0])
    text = numbers.astype(str)
    np.testing.assert_array_equal(read(text, ["c"])[0][:, 0], [0, 2, 1, 2])


class Town(str, enum.Enum):  # noqa: UP042 - str() of it is not its value
    GHENT = "ghent"
    MONS = "mons"


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([Decimal("2.3"), Decimal("1.1"), None, Decimal("2.3")], (1.1, 2.3)),
        ([Town.MONS, Town.GHENT, None, "mons"], ("ghent", "mons")),
        ([np.str_("b"), np.str_("a"), None, "b"], ("a", "b")),
        ([np.float32(2.5), np.float32(0.5), None, 2.5], (0.5, 2.5)),
    ],
    ids=["decimals", "text enum", "NumPy text", "NumPy numbers"],
)
def test_levels_are_python_s_own_types(values, levels):
    as_category = pd.Series(values, dtype=object).astype("category")
    for column in (as_category, pd.Series(values, dtype=object)):
        matrix, estimator = read(pd.DataFrame({"x": column}), [0])
        np.testing.assert_array_equal(matrix[:, 0], [1, 0, np.nan, 1])
        found = estimator.schema.columns[0].levels
        assert found == levels
        assert [type(level) for level in found] == [type(level) for level in levels]
        for other in (list(levels), as_category.cat.categories):
            same = later(estimator, pd.DataFrame({"x": pd.Categorical(other)}))
            np.testing.assert_array_equal(np.sort(same[:, 0]), [0, 1])


def test_text_that_is_missing_throughout():
    for X in (pl.DataFrame({"t": pl.Series([None, None], dtype=pl.String)}),):
        matrix, estimator = read(X)
        assert np.isnan(matrix).all()
        assert category_columns(estimator.schema) == ((0, 0),)
        np.testing.assert_array_equal(later(estimator, pl.DataFrame({"t": ["a"]})), [[-1]])


def test_lists_and_arrays_of_text():
    rows = [["a", 1], ["b", None], [None, 3]]
    expected = [[0, 1], [1, np.nan], [np.nan, 3]]
    for X in (rows, np.array(rows, dtype=object), tuple(map(tuple, rows))):
        np.testing.assert_array_equal(read(X)[0], expected)
    np.testing.assert_array_equal(read(np.array([["b"], ["a"]]))[0], [[1], [0]])


def test_unusual_names():
    names = ["", " ", "a\nb", "{}", "%s", "é", "x" * 300]
    X = pl.DataFrame({name: ["u", "v"] for name in names})
    matrix, estimator = read(X)
    assert [column.name for column in estimator.schema.columns] == names
    np.testing.assert_array_equal(later(estimator, X), matrix)


def test_many_levels_in_many_chunks():
    values = np.random.default_rng(0).integers(0, 3000, 10_000).astype(str)
    expected = np.unique(values, return_inverse=True)[1].astype(float)
    chunks = pa.chunked_array([part.tolist() for part in np.array_split(values, 7)])
    for column in (values, values.astype(object), chunks, chunks.dictionary_encode()):
        table = pa.table({"t": column}) if isinstance(column, pa.ChunkedArray) else None
        X = column[:, None] if table is None else table
        np.testing.assert_array_equal(read(X, [0])[0][:, 0], expected)
