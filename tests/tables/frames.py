"""One table, in the frames of several libraries."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st


@dataclass(frozen=True)
class Kind:
    """A dtype by the names it has in each library, and values of it."""

    values: Any
    pandas: tuple[Any, ...]
    polars: Any
    arrow: Any


LEVELS = ["", "a", "B", "b", "é", "z z", "10", "9", "NaN", "𝛼"]
KINDS = {
    "int64": Kind(
        st.integers(-(2**62), 2**62) | st.integers(-3, 3),
        ("Int64", "int64[pyarrow]", object),
        pl.Int64,
        pa.int64(),
    ),
    "uint8": Kind(st.integers(0, 255), ("UInt8", "uint8[pyarrow]"), pl.UInt8, pa.uint8()),
    "float64": Kind(
        st.floats(allow_infinity=False), ("float64", "Float64"), pl.Float64, pa.float64()
    ),
    "float32": Kind(
        st.floats(allow_infinity=False, width=32), ("float32",), pl.Float32, pa.float32()
    ),
    "bool": Kind(st.booleans(), ("boolean", "bool[pyarrow]", object), pl.Boolean, pa.bool_()),
    "text": Kind(
        st.sampled_from(LEVELS) | st.text(st.characters(codec="utf-8"), max_size=3),
        ("str", "string[python]", "string[pyarrow]", object),
        pl.String,
        pa.string(),
    ),
    "category": Kind(
        st.sampled_from(LEVELS),
        ("category",),
        pl.Categorical,
        pa.dictionary(pa.int8(), pa.string()),
    ),
    "enum": Kind(
        st.sampled_from(LEVELS),
        (pd.CategoricalDtype(LEVELS[::-1], ordered=True),),
        pl.Enum(LEVELS[::-1]),
        pa.dictionary(pa.int32(), pa.large_string()),
    ),
    "decimal": Kind(
        st.decimals(-(10**9), 10**9, places=3).map(lambda x: x + Decimal("0.000")),
        (object, pd.ArrowDtype(pa.decimal128(14, 3))),
        pl.Decimal(14, 3),
        pa.decimal128(14, 3),
    ),
    "nothing": Kind(st.none(), (object,), pl.Null, pa.null()),
}


@st.composite
def tables(draw, n_tables=1):
    """Names, kinds, and the columns of several tables with these; ``None`` is missing."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    names = draw(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
            min_size=len(kinds),
            max_size=len(kinds),
            unique=True,
        )
    )
    found = []
    for _ in range(n_tables):
        n = draw(st.integers(1, 12))
        column = [
            draw(st.lists(st.none() | KINDS[kind].values, min_size=n, max_size=n)) for kind in kinds
        ]
        found.append(column)
    return names, kinds, found


def of_pandas(names, kinds, columns, choice=0):
    series = []
    for kind, values in zip(kinds, columns, strict=True):
        dtypes = KINDS[kind].pandas
        dtype = dtypes[choice % len(dtypes)]
        if dtype in ("float64", "float32"):
            values = [np.nan if v is None else v for v in values]
        series.append(pd.Series(values, dtype=dtype))
    return pd.DataFrame(dict(enumerate(series))).set_axis(pd.Index(names, dtype=object), axis=1)


def of_polars(names, kinds, columns):
    return pl.DataFrame(
        [
            pl.Series(name, values, dtype=KINDS[kind].polars)
            for name, kind, values in zip(names, kinds, columns, strict=True)
        ]
    )


def arrow_array(values, dtype):
    """As `pa.array`, which makes no dictionaries of large strings before pyarrow 25."""
    if not pa.types.is_dictionary(dtype):
        return pa.array(values, dtype)
    encoded = pa.array(values, dtype.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(dtype.index_type), encoded.dictionary
    )


def of_arrow(names, kinds, columns):
    arrays = []
    for kind, values in zip(kinds, columns, strict=True):
        array = arrow_array(values, KINDS[kind].arrow)
        cut = len(values) // 2  # two chunks, of two dictionaries
        halves = [arrow_array(part, KINDS[kind].arrow) for part in (values[:cut], values[cut:])]
        arrays.append(pa.chunked_array(halves if len(array) % 2 else [array]))
    return pa.table(arrays, names=names)


def of_objects(names, kinds, columns):
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for k, values in enumerate(columns):
        table[:, k] = values
    return table


class Stream:
    """A table of a library that nobody knows, which speaks Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)
