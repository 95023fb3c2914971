"""What is no table of numbers and categories is refused, with column, row and a way out."""

import datetime
from decimal import Decimal
from fractions import Fraction

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

from hilboost import BoostingRegressor
from hilboost.core.errors import (
    DataWarning,
    InvalidData,
    InvalidParameter,
    InvalidType,
    MissingPackage,
)
from hilboost.tables.columns import read_objects
from hilboost.tables.reading import as_array
from hilboost.validation.inputs import Expected, check_inputs

N = 4
DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12)
HOUR = datetime.timedelta(hours=1)


def read(X, *, estimator=None, schema=None, **parameters):
    estimator = estimator or BoostingRegressor(**parameters)
    return check_inputs(estimator, X, Expected(schema, estimator.categorical_features))[0]


def schema_of(X, estimator):
    """What a fit to ``X`` would remember of its columns."""
    return check_inputs(estimator, X, Expected(None, estimator.categorical_features))[1]


def frames(values, **arrow):
    """The same column in every library that takes it."""
    yield pd.DataFrame({"n": range(N), "when": pd.Series(values)})
    yield pd.DataFrame({"n": range(N), "when": pd.Series(values, dtype=object)})
    yield pl.DataFrame({"n": range(N), "when": values})
    yield pa.table({"n": range(N), "when": pa.array(values, **arrow)})


@pytest.mark.parametrize("value", [DAY, NOON, datetime.time(12), HOUR])
def test_dates_times_and_durations(value):
    kind, advice = "dates or times", "day of the week"
    if isinstance(value, datetime.timedelta):
        kind, advice = "durations", "total_seconds"
    for X in frames([value] * N):
        refused(InvalidData, f"column 'when' contains {kind}; .*{advice}", read, X)


def test_other_dates():
    periods = pd.period_range("2020", periods=N, freq="D")
    stamps = pd.date_range("2020", periods=N, tz="Europe/Paris")
    for values in (periods, stamps, pd.Series(stamps).astype("category"), stamps.astype(object)):
        refused(InvalidData, "column 'when' contains dates", read, pd.DataFrame({"when": values}))
    refused(InvalidData, "column 0 contains dates", read, np.array([[NOON]] * N, dtype=object))


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, b"x"], ids=["list", "struct", "bytes"])
def test_nested_values(value):
    for X in frames([value] * N):
        with pytest.raises(
            InvalidType,
            match=r"column 'when' contains .*must be a string or a number; split it into several "
            r"columns, decode it if it contains bytes, or drop it\.$",
        ):
            read(X)


def test_objects_name_the_row():
    values = [1.0, None, {"a": 1}, 2.0]
    with pytest.raises(InvalidType, match=r"column 'x' contains \{'a': 1\} \(dict\) in row 2"):
        read(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    with pytest.raises(InvalidType, match=r"column 0 contains .* \(dict\) in row 2"):
        read(np.array(values, dtype=object)[:, None])
    refused(InvalidType, r"\.\.\. \(tuple\) in row 0", read_objects, [tuple(range(99))], "x")
    with pytest.raises(
        InvalidType, match=r"\(Interval\) .*; convert it, .*\.astype\(str\), or drop"
    ):
        read(pd.DataFrame({"x": pd.cut(np.arange(4.0), 2)}))


def test_text_amid_numbers():
    values = [None, 1, 2.5, "n/a"]
    said = r"contains text \('n/a' in row 3\) and numbers \(1.* in row 1\); convert it to text"
    for X in (
        pd.DataFrame({"x": pd.Series(values, dtype=object)}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)}),
        np.array(values, dtype=object)[:, None],
        [[value] for value in values],
        pd.DataFrame({"x": pd.Series(values, dtype="category")}),
    ):
        refused(InvalidData, said, read, X)


def test_complex_numbers():
    with pytest.raises(InvalidData, match="Complex data not supported: column 'x'"):
        read(pd.DataFrame({"x": [1j, 2j]}))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_names_the_column(value):
    for X in frames([0.0, 1.0, value, np.nan]):
        with pytest.raises(InvalidData, match=r"infinity .* in column 'when'\. Replace it"):
            read(X, learner="linear")
        with pytest.raises(InvalidData, match=r"infinity .* in column 'when'\. Replace it"):
            read(X, categorical_features=["when"])
    with pytest.raises(InvalidData, match="infinity .* in column 0"):
        read([[10**400], ["a"]][:1] * 2 + [[None]], learner="linear")


def test_repeated_names():
    twice = pd.DataFrame(np.zeros((N, 3)), columns=["a", "b", "a"])
    for X in (twice, pa.Table.from_arrays([pa.array([1.0])] * 3, ["a", "b", "a"])):
        refused(InvalidData, "more than one column named 'a'; rename", read, X)


def test_names_of_several_types():
    with pytest.raises(InvalidType, match="string names, but your input has .'int', 'str'."):
        read(pd.DataFrame(np.zeros((N, 2)), columns=["a", 1]))


@pytest.mark.parametrize("names", [[0, 1], [3.5, 4.5], pd.MultiIndex.from_tuples([(0, 1), (0, 2)])])
def test_names_that_are_no_text_do_not_count(names):
    estimator = BoostingRegressor()
    X = pd.DataFrame([[1.0, "a"], [2.0, "b"]], columns=names)
    expected = [[1.0, 0.0], [2.0, 1.0]]
    np.testing.assert_array_equal(read(X, estimator=estimator), expected)
    assert not hasattr(estimator, "feature_names_in_")
    schema = schema_of(X, estimator)
    np.testing.assert_array_equal(read(X, estimator=estimator, schema=schema), expected)


def test_columns_that_lack_or_are_new():
    estimator = BoostingRegressor()
    X = pl.DataFrame({name: [1.0, 2.0] for name in "abc"})
    schema = schema_of(X, estimator)
    for wrong, said in [
        (X.select("b", "a", "c"), r"same order as they were in fit.\nUse X\[list"),
        (X.select("a", "b"), "yet now missing:\n- c\n"),
        (X.with_columns(z=1.0), "unseen at fit time:\n- z\n"),
        (X.rename({"a": "z"}), "unseen at fit time:\n- z\n.*yet now missing:\n- a\n"),
    ]:
        with pytest.raises(InvalidData, match=f"(?s)should match those.*{said}"):
            read(wrong, estimator=estimator, schema=schema)
    for wrong, said in [
        (
            X.select("c"),
            r"^X lacks columns 'a', 'b' of the fit; pass the columns in model\.feature",
        ),
        (X.with_columns(z=1.0), r"^X has column 'z', which the fit did not have; pass X\[list\("),
        (X.rename({"a": "z"}), "^X lacks column 'a' of the fit and has column 'z', which the fit"),
    ]:
        refused(InvalidData, said, read, wrong, estimator=estimator, schema=schema)
    wide = pl.DataFrame({f"column {k:02}": [1.0] for k in range(30)})
    refused(InvalidData, r"- column 19\n- \.\.\.\n", read, wide, estimator=estimator, schema=schema)


def test_tables_without_the_names_of_the_fit():
    estimator = BoostingRegressor()
    schema = schema_of(pl.DataFrame({"a": ["x", "y"]}), estimator)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Boost"):
        X = read([["y"], ["x"]], estimator=estimator, schema=schema)
    np.testing.assert_array_equal(X, [[1.0], [0.0]])
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(InvalidData, match="X has 2 features, but BoostingRegressor is expecting 1"),
    ):
        read([["y", "x"]], estimator=estimator, schema=schema)
    schema = schema_of([["y"], ["x"]], estimator)
    with pytest.warns(UserWarning, match="X has feature names, but BoostingRegressor was fitted"):
        read(pa.table({"a": ["x"]}), estimator=estimator, schema=schema)


def test_tables_without_rows_or_columns():
    for X in (pl.DataFrame({"a": []}), pa.table({"a": pa.array([], pa.string())})):
        refused(ValueError, r"0 sample\(s\)", read, X)
    refused(ValueError, r"0 feature\(s\)", read, pd.DataFrame(index=range(3)))


def test_series_and_rows_of_different_lengths():
    for X in (pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0]), pa.chunked_array([[1.0]])):
        refused(ValueError, r"Expected (a )?2(D|-dimensional)", read, X)
    refused(ValueError, "inhomogeneous", read, [[1.0], [1.0, 2.0]])


def test_text_in_other_forms():
    refused(InvalidData, "Expected 2D array, got 1D array instead", read, ["a", "b"])
    with pytest.raises(InvalidData, match="X contains text in column 0 in an unsupported form"):
        read(np.array([[b"a"]]))


def test_streams_without_a_library_that_reads_them(monkeypatch):
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError

    def nobody(*_, **__):
        raise ModuleNotFoundError

    monkeypatch.setattr(nw.DataFrame, "from_arrow", nobody)
    refused(MissingPackage, "python -m pip install pyarrow", read, Stream())


def test_tables_that_are_still_to_be_computed():
    class Lazy(nw.LazyFrame):
        """Stands for the tables of Dask, DuckDB and others, which are not here."""

        implementation = type(nw.from_native(pl.DataFrame({"a": [1.0]})).implementation).DUCKDB

        def __init__(self):
            pass

    refused(InvalidType, "X is a lazy DUCKDB table; compute it first", read, Lazy())
    refused(InvalidType, "y is a lazy DUCKDB table; compute it first", as_array, Lazy())


def test_kinds_that_change_after_the_fit():
    estimator = BoostingRegressor(categorical_features=["t", "k"])
    fitted = pd.DataFrame({"t": ["1", "2"], "k": [1, 2], "x": [0.5, 1.5]})
    schema = schema_of(fitted, estimator)
    for changed, said in [
        (
            {"t": [1, 2]},
            r"column 't' contained text in fit but contains numbers now \(1 in row 0\)",
        ),
        (
            {"k": ["1", "2"]},
            r"column 'k' contained numbers in fit but contains text now \('1' in row 0\)",
        ),
        (
            {"x": ["1", "2"]},
            r"column 'x' contained numbers .or no values. in fit but contains text now",
        ),
    ]:
        with pytest.raises(InvalidData, match=said):
            read(fitted.assign(**changed), estimator=estimator, schema=schema)
    nothing = pd.DataFrame({"t": [None], "k": [None], "x": [None]})
    assert np.isnan(read(nothing, estimator=estimator, schema=schema)).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x", r"pass a list, such as \['x'\]"),
        (["z", "q"], "columns that X does not have: 'z', 'q'"),
        ([0, 3], "does not have: 3; use indices from 0 to 1"),
        ([-1], "does not have: -1"),
        ([True], "a mask of 1 column; X has 2"),
        ([0.5], "must be 'from_dtype', column names"),
        ([0, "x"], "must be 'from_dtype', column names"),
        ([[0]], "must be 'from_dtype', column names"),
        (np.array(1), "The 'categorical_features' parameter|must be 'from_dtype'"),
    ],
)
def test_wrong_categorical_features(given, said):
    X = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    refused(InvalidParameter, said, read, X, categorical_features=given)
    if isinstance(given, list) and isinstance(given[0], str):
        with pytest.raises(InvalidParameter, match="X has no column names; pass X as a data frame"):
            read(X.to_numpy(), categorical_features=given)


def test_a_text_of_its_own_in_every_row_warns():
    names = [f"customer {k}" for k in range(50)]
    with pytest.warns(
        DataWarning, match="column 'id' is text with a different value in each of 50"
    ):
        read(pl.DataFrame({"id": names}))
    with pytest.warns(DataWarning, match=r"all values are numbers.*pandas\.to_numeric"):
        read(pl.DataFrame({"price": [str(k / 3) for k in range(50)]}))
    many = {f"x{k}": [str(k + i / 3) for i in range(50)] for k in range(12)}
    with pytest.warns(DataWarning) as told:  # one warning for all columns of a kind
        read(pl.DataFrame({**many, "id": names}))
    first, second = sorted(str(warning.message) for warning in told)
    assert first.startswith("column 'id' is text with a different value in each of 50 rows.")
    assert second.startswith(
        "columns 'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9' and 2 more are text in "
        "which all values are numbers, so that they are categorical; convert them"
    )
    read(pl.DataFrame({"id": names[:49]}))
    read(pl.DataFrame({"id": [*names, names[0]]}))
    with pytest.warns(DataWarning, match="is text with 901 different values in 1000 rows"):
        read(pl.DataFrame({"id": [f"T{max(k, 99)}" for k in range(1000)]}))
    read(pl.DataFrame({"id": [f"T{max(k, 100)}" for k in range(1000)]}))


def test_numbers_of_any_type_among_objects():
    values = [True, np.int8(2), 2**70, Decimal("1.5"), Fraction(1, 4), np.float32(0.5), np.nan]
    values += [None, pd.NA, pd.NaT, np.bool_(False), Decimal("NaN")]
    expected = [1.0, 2.0, 2.0**70, 1.5, 0.25, 0.5, *[np.nan] * 4, 0.0, np.nan]
    np.testing.assert_array_equal(read_objects(values, "x").values, expected)


RECORDS = {
    "a dict": lambda frame: frame.to_dict("list"),
    "a list of dicts": lambda frame: frame.to_dict("records"),
    "a structured array": lambda frame: frame.to_records(index=False),
}


@pytest.mark.parametrize("what", RECORDS)
def test_records_are_no_table(what):
    frame = pd.DataFrame({"town": ["a", "b"] * 30, "km": np.arange(60.0)})
    with pytest.raises(InvalidType, match=f"X is {what}; pass a data frame"):
        BoostingRegressor().fit(RECORDS[what](frame), frame["km"])


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_one_row_is_no_table():
    frame = pd.DataFrame({"town": ["a", "b"] * 30, "km": np.arange(60.0)})
    model = BoostingRegressor(n_estimators=2).fit(frame.to_numpy(), frame["km"])
    refused(InvalidData, r"got 1D array.*X\.iloc\[\[0\]\]", model.predict, frame.iloc[0])
