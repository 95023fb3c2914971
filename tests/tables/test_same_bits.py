"""The same table through every library, array or list: the same numbers and levels."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.frames import KINDS, Stream, of_arrow, of_objects, of_pandas, of_polars, tables

from hilboost import BoostingRegressor
from hilboost.tables.schema import category_columns
from hilboost.validation.inputs import Expected, check_inputs

WAYS = {
    **{f"pandas-{choice}": partial(of_pandas, choice=choice) for choice in range(4)},
    "polars": of_polars,
    "lazy": lambda *table: of_polars(*table).lazy(),
    "arrow": of_arrow,
    "batch": lambda *table: of_arrow(*table).combine_chunks().to_batches()[0],
    "stream": lambda *table: Stream(of_polars(*table)),
    "objects": of_objects,
    "lists": lambda *table: of_objects(*table).tolist(),
}


def codes_by_hand(kind, values, levels):
    """The naive way: numbers as floats, levels by their place."""
    if kind in ("text", "category", "enum"):
        return [
            np.nan if v is None else float(levels.index(v)) if v in levels else -1.0 for v in values
        ]
    return [np.nan if v is None else float(v) for v in values]


def read(estimator, X, schema=None):
    matrix, schema = check_inputs(estimator, X, Expected(schema))
    assert matrix.flags.c_contiguous
    return matrix, schema


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:.*text in which all values are numbers")
@settings(max_examples=60)
@given(tables(n_tables=2))
def test_every_library_gives_the_same_matrix(drawn):
    names, kinds, (first, second) = drawn
    by_text = ("text", "category", "enum")
    for kind, values in zip(kinds, first, strict=True):
        if kind in by_text and set(values) == {None}:
            values[0] = "a"  # objects that are all missing have no dtype that tells of text
    levels = [
        sorted({v for v in values if v is not None}) if kind in by_text else None
        for kind, values in zip(kinds, first, strict=True)
    ]
    expected = [
        np.array([codes_by_hand(*column) for column in zip(kinds, table, levels, strict=True)]).T
        for table in (first, second)
    ]
    categories = [(k, tuple(kept)) for k, kept in enumerate(levels) if kept is not None]
    for name, way in WAYS.items():
        estimator, schema = BoostingRegressor(), None
        for table, wanted in zip((first, second), expected, strict=True):
            matrix, schema = read(estimator, way(names, kinds, table), schema)
            np.testing.assert_array_equal(matrix, wanted, err_msg=name)
            signs, known = np.signbit(matrix), ~np.isnan(wanted)  # the sign of NaN is arbitrary
            np.testing.assert_array_equal(signs[known], np.signbit(wanted)[known], err_msg=name)
        assert list(schema.levels) == categories
        assert category_columns(schema) == tuple((k, len(v)) for k, v in categories)


@given(st.lists(st.none() | KINDS["float32"].values, min_size=1, max_size=5))
def test_tables_of_single_precision_stay_so(values):
    for way in (of_pandas, of_polars, of_arrow):
        matrix, _ = read(BoostingRegressor(), way(["a"], ["float32"], [values]))
        assert matrix.dtype == np.float32
        np.testing.assert_array_equal(matrix[:, 0], np.array(values, dtype=np.float32))


@given(st.permutations(range(12)), st.integers(0, 3))
def test_the_order_of_rows_does_not_change_levels(order, choice):
    values = np.array(["b", "a", "c", None, "é", "B", "a", "10", "9", "", None, "z"], dtype=object)
    expected, plain = read(BoostingRegressor(), of_pandas(["x"], ["text"], [values], choice))
    shuffled, permuted = read(
        BoostingRegressor(), of_pandas(["x"], ["text"], [values[order]], choice)
    )
    assert plain == permuted
    np.testing.assert_array_equal(expected[order], shuffled)
