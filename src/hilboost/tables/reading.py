"""Read tables of any data frame library without converting between libraries.

Narwhals identifies the frame and its dtypes.  Values are read as NumPy arrays; levels and codes
come from each library's own dictionary encoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass, replace
from functools import singledispatch
from io import IOBase
from os import PathLike, fsdecode
from typing import Any

import numpy as np

from hilboost.core.errors import (
    InvalidData,
    InvalidType,
    MissingPackage,
    first_few,
    shown,
    with_article,
)
from hilboost.core.labels import is_pandas
from hilboost.core.plain_values import is_array_or_list, is_boolean, is_number
from hilboost.tables.arrays import (
    fields_of,
    how_to_read_file,
    index_names,
    refuse_dates_and_complex,
    without_mask,
)
from hilboost.tables.columns import (
    Labels,
    Numbers,
    ReadColumn,
    are_rounded,
    coded,
    read_objects,
    refuse_dates,
    refuse_nested,
    without_missing,
)
from hilboost.tables.schema import place
from hilboost.tables.sparse import is_sparse


@dataclass(frozen=True)
class Table:
    """Columns as they were read."""

    names: list[str] | None  # ``None`` if the columns have no names, or no string names
    columns: list[ReadColumn]
    n_rows: int

    def name(self, k: int) -> str | int:
        """Return the name of column ``k``, or its index if there are no names."""
        return k if self.names is None else self.names[k]


def read_table(X: object) -> Table | None:
    """Read the columns of a frame that narwhals supports, or of arrays with text or other objects.

    Returns ``None`` for numeric arrays, and for anything that is not a table.
    """
    if isinstance(X, (list, tuple)):
        return _of_list(X)
    remedy = _remedy(X)
    if remedy:
        raise InvalidType(f"X is {with_article(type(X).__name__)}; {remedy}.")
    if fields_of(X) is not None:
        raise InvalidType(f"X is a structured array; {_AS_FRAME}.")
    refuse_dates_and_complex(X, "X")
    frame = None if isinstance(X, np.ndarray) else _frame(X)
    if frame is None:
        return _of_array(np.asarray(X) if hasattr(X, "__array__") else np.empty(0))
    names = list(frame.columns)
    columns = list(map(_read, frame.iter_columns(), names))
    return Table(text_names(names), columns, len(frame))


_AS_FRAME = "pass a data frame, for instance pandas.DataFrame(X), or rows of strings and numbers"


@singledispatch
def _remedy(X: object) -> str:
    """Return how to get a table from an object of another kind; empty if it may be a table."""
    return ""


@_remedy.register
def _(X: Mapping) -> str:
    return _AS_FRAME


@_remedy.register
def _(X: PathLike) -> str:
    return how_to_read_file(fsdecode(X))


@_remedy.register(IOBase)
@_remedy.register(bytes)
def _(X: object) -> str:
    return how_to_read_file("")


@_remedy.register(Iterator)
@_remedy.register(ValuesView)
def _(X: object) -> str:
    package = type(X).__module__.partition(".")[0]
    if package in ("csv", "_csv"):
        return how_to_read_file("")
    if package == "pandas":
        return "pass pandas.concat(X), or write it as Parquet for hilboost.stream.fit"
    return "pass X.read_all()" if package == "pyarrow" else "pass its rows, list(X)"


def text_names(names: list[Any]) -> list[str] | None:
    """Return the names if all are strings, and ``None`` if none is."""
    is_text = [isinstance(name, str) for name in names]
    if not any(is_text):
        return None
    if not all(is_text):
        types = sorted({type(name).__qualname__ for name in names})
        raise InvalidType(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {types} as column name types. Convert them all to strings, for instance "
            "with X.columns = X.columns.astype(str)."
        )
    return [str(name) for name in names]


def _of_array(X: np.ndarray) -> Table | None:
    """Read text, objects, and integers that float64 rounds."""
    if X.ndim == 2 and X.dtype.kind in "OU":
        return _of_objects(X)
    if X.ndim == 2 and X.dtype.kind in "iu" and X.dtype.itemsize == 8 and are_rounded(X):
        return Table(None, [Numbers(column, "i") for column in X.T], len(X))
    return None


def _of_objects(X: np.ndarray) -> Table:
    columns = [read_objects(X[:, k].tolist(), k) for k in range(X.shape[1])]
    return Table(None, columns, len(X))


def _of_list(X: Sequence[Any]) -> Table | None:
    if len(X) and isinstance(X[0], Mapping):
        raise InvalidType(f"X is a {type(X).__name__} of dicts; {_AS_FRAME}.")
    try:
        array = np.asarray(X)
    except (ValueError, TypeError):  # rows of different lengths
        return None
    refuse_dates_and_complex(array, "X")
    if array.ndim != 2 or array.dtype.kind not in "OUf":
        return _of_array(array)
    if array.dtype.kind == "f" and not are_rounded(array):
        return None
    return _of_objects(np.array(X, dtype=object))


def named_columns(y: object) -> dict[str, Any] | None:
    """Return the columns of a data frame of targets by name, or ``None`` for other objects."""
    if is_array_or_list(y) or len(getattr(y, "shape", ())) == 1:
        return None
    frame = _frame(y, "y")
    if frame is None:
        return None
    columns = ((column.name, column.to_native()) for column in frame.iter_columns())
    return {str(name): as_array(values, f"y[{name!r}]") for name, values in columns}


def _frame(X: object, what: str = "X") -> Any:
    """Return a narwhals frame with its values in memory, or ``None``."""
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = _native(X, what)
        # The stream of an array, such as that of xarray, has a row for each entry.
        if frame is X and hasattr(X, "__arrow_c_stream__") and not hasattr(X, "dtype"):
            frame = _from_stream(X, what)
    except DuplicateError as error:
        raise repeated_name(X, what) from error
    if not isinstance(frame, nw.DataFrame):
        return None
    if len(set(frame.columns)) < len(frame.columns):
        raise repeated_name(X, what)
    return _without_index(frame)


def _without_index(frame: Any) -> Any:
    """Leave out columns of an Arrow table in which pandas has stored an index, if others remain."""
    is_arrow = frame.implementation.is_pyarrow()
    stored = index_names(frame.to_native().schema) if is_arrow else ()
    return frame.drop(stored) if len(stored) < len(frame.columns) else frame


def _native(values: object, what: str, **options: bool) -> Any:
    """Return an object of narwhals with its values in memory; other objects are unchanged."""
    import narwhals.stable.v2 as nw

    found: Any = nw.from_native(values, pass_through=True, **options)
    if not isinstance(found, nw.LazyFrame):
        return found
    if found.implementation.is_polars():
        return found.collect()
    raise InvalidType(
        f"{what} is a lazy {found.implementation.name} table; compute it first, for instance with "
        ".collect() or .compute()."
    )


def _from_stream(X: object, what: str) -> Any:
    import narwhals.stable.v2 as nw

    for backend in ("pyarrow", "polars"):
        try:
            return nw.DataFrame.from_arrow(X, backend=backend)
        except ModuleNotFoundError:
            continue
        except (TypeError, ValueError):  # a stream of single values
            return None
    raise MissingPackage(
        f"{what} ({type(X).__name__}) is an Arrow stream, which requires pyarrow or polars; "
        "install one, for instance with `python -m pip install pyarrow`."
    )


def repeated_name(X: object, what: str) -> InvalidData:
    """Create the error for a table with columns of one name."""
    names = getattr(X, "column_names", None) or list(getattr(X, "columns", ()))
    twice = [name for name, count in Counter(names).items() if count > 1]
    return InvalidData(
        f"{what} has more than one column named {first_few(twice)}; rename all but one."
    )


def _read(series: object, name: object) -> ReadColumn:
    """Read one column, whose text may be damaged in Arrow tables."""
    try:
        return _read_by_dtype(series, name)
    except UnicodeDecodeError as error:
        raise InvalidData(
            f"{place(name)} contains text that is not UTF-8 ({shown(error.object)}); write it "
            "again as UTF-8."
        ) from error


def _read_by_dtype(series: Any, name: object) -> ReadColumn:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype.is_float():
        return Numbers(_floats(series.to_numpy(), str(dtype) in ("Float32", "Float16")))
    if dtype.is_integer():
        if dtype in (nw.Int128, nw.UInt128):
            return read_objects(series.to_list(), name)
        values = series.to_numpy()
        if values.dtype.kind in "iu":
            return Numbers(values, "i")
        values = _floats(values)
        return Numbers(values, "i", series.fill_null(0).to_numpy() if are_rounded(values) else None)
    if dtype == nw.Boolean:
        known = series if series.null_count() == 0 else series.cast(nw.Float64)
        values = known.to_numpy()
        return Numbers(values if values.dtype == np.bool_ else _floats(values), "b")
    if dtype.is_temporal():
        refuse_dates(name, str(dtype))
    if dtype.is_nested():
        refuse_nested(name, str(dtype))
    if dtype == nw.Binary:
        refuse_nested(name, "bytes")
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        native = series.to_native()
        if series.implementation.is_pandas_like() and native.dtype == object:
            return read_objects(native.tolist(), name)
        return replace(without_missing(_factorized(series)), declared=dtype != nw.String)
    return _of_unknown(series, name)


def _floats(values: np.ndarray, single: bool = False) -> np.ndarray:
    return values.astype(np.float32 if single else np.float64, copy=False)


def _of_unknown(series: Any, name: object) -> ReadColumn:
    """Read objects, decimals, all-null columns, and dtypes specific to one library."""
    import narwhals.stable.v2 as nw

    if series.dtype in (nw.Object, nw.Decimal):
        return read_objects(series.to_list(), name)
    values = series.to_numpy()
    if values.dtype.kind in "biuf":
        return Numbers(_floats(values), "f" if values.dtype.kind == "f" else "i")
    if values.dtype.kind in "mM":
        refuse_dates(name, str(values.dtype))
    if values.dtype.kind == "c":
        raise InvalidData(
            f"Complex data not supported: column {name!r} contains complex numbers; replace it by "
            "its real and imaginary parts."
        )
    return read_objects(values.tolist(), name)


def _factorized(series: Any) -> Labels:
    """Return codes and distinct values, using the library of the column."""
    native, library = series.to_native(), series.implementation
    if library.is_pandas_like():
        codes, distinct = native.factorize()
        return Labels(np.asarray(codes, dtype=np.int64), distinct.tolist())
    if library.is_polars():
        levels = native.drop_nulls().unique()
        dtype = library.to_native_namespace().Int64
        numbers = np.arange(len(levels))
        codes = native.replace_strict(levels, numbers, default=-1, return_dtype=dtype)
        return Labels(codes.to_numpy(), levels.to_list())
    if library.is_pyarrow():
        return _factorized_arrow(native)
    return coded(series.to_list())


def _factorized_arrow(column: Any) -> Labels:
    """Join the chunks of an Arrow column, each with its own dictionary."""
    codes, distinct = [np.empty(0, dtype=np.int64)], list[Any]()
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        # Unsigned indices cannot hold -1, and a level itself may be null.
        numbers = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(np.where(numbers < 0, -1, numbers + len(distinct)))
        distinct += encoded.dictionary.to_pylist()
    return Labels(np.concatenate(codes), distinct)


def as_array(values: object, what: str = "y") -> Any:
    """Convert series and frames of targets or weights to an array; return others unchanged.

    A missing value is NaN among numbers, and ``None`` among text and categories.  Numeric
    categories without missing values get a numeric dtype.
    """
    refuse_no_array(values, what)
    found = _unframed(without_mask(values), what)
    refuse_dates_and_complex(found, what)
    return found


def refuse_no_array(values: object, what: str) -> None:
    """Reject objects that are not one value for each row in a known order."""
    if values is None:
        raise InvalidData(f"{what} is None; pass the values of the rows.")
    if isinstance(values, str):
        raise InvalidData(
            f"{what} is the text {shown(values)}; pass the values of the rows, such as a column of "
            "a data frame."
        )
    if is_sparse(values):
        raise InvalidType(
            f"{what} is a sparse matrix, but must be dense; pass {what}.toarray().ravel() for one "
            f"column, or {what}.toarray()."
        )
    if isinstance(values, (Mapping, Set, Iterator)):
        raise _no_values(values, what)


def _no_values(values: object, what: str) -> InvalidData:
    """Return the error for an object without an order of its values."""
    return InvalidData(
        f"{what} is {with_article(type(values).__name__)}; pass the values of the rows as a list "
        "or an array."
    )


def _unframed(values: object, what: str) -> Any:
    if is_array_or_list(values):
        return values
    if is_pandas(values) and isinstance(getattr(values, "dtype", np.dtype(float)), np.dtype):
        return values  # pandas frames, and series with NumPy dtypes
    import narwhals.stable.v2 as nw

    found = _native(values, what, allow_series=True)
    if isinstance(found, nw.Series):
        return _array_of(found, what)
    if isinstance(found, nw.DataFrame):
        columns = _without_index(found).iter_columns()
        return np.column_stack([_array_of(series, what) for series in columns])
    if hasattr(values, "__arrow_c_array__") and hasattr(values, "to_numpy"):
        return values.to_numpy(zero_copy_only=False)
    if values is not None and np.asarray(values).ndim == 0:
        raise _no_values(values, what)
    return values


def _array_of(series: Any, what: str) -> Any:
    dtype = series.dtype
    if (dtype.is_numeric() and not dtype.is_decimal()) and series.null_count() == 0:
        return series.to_numpy()
    read = _read(series, series.name or what)
    numbers = read.as_numbers()
    if numbers is not None:
        exact = numbers.kind == "b" and not np.isnan(numbers.values).any()
        return numbers.values.astype(bool) if exact else numbers.values
    labels = read.as_labels()
    all_numbers = all(is_number(level) or is_boolean(level) for level in labels.distinct)
    if all_numbers and (labels.codes >= 0).all():
        return np.array(labels.distinct)[labels.codes]
    return np.array([*labels.distinct, None], dtype=object)[labels.codes]
