"""Recognition of array-likes: frames, masked arrays, dates, and complex numbers."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import PurePath
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidData
from hilboost.core.plain_values import is_array_or_list
from hilboost.tables.columns import are_rounded


def columns_of(table: object) -> Any | None:
    """Return the column names of a data frame, and ``None`` for other objects."""
    return getattr(table, "columns", None)


def without_frame(values: object) -> Any:
    """Convert frames and series to arrays; return other values unchanged."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def frame_columns(values: object) -> list[str] | None:
    """Return the names of the columns of a frame or an Arrow table; ``None`` for other values.

    Columns in which pandas has stored an index are left out, if others remain.
    """
    if not hasattr(values, "shape"):  # lazy frames would be computed
        return None
    names = getattr(values, "column_names", getattr(values, "columns", None))
    if names is None:
        return None
    schema = getattr(values, "schema", None)
    stored, found = index_names(schema), list(map(str, names))
    return [name for name in found if name not in stored] or found


def fields_of(values: object) -> dict[str, Any] | None:
    """Return the fields of a structured array by their names; ``None`` for other values."""
    if not isinstance(values, np.ndarray) or values.dtype.names is None:
        return None
    return {name: values[name] for name in values.dtype.names}


def n_rows(table: object) -> int | None:
    """Return the number of rows of an array, sparse table or list; ``None`` if undefined."""
    shape = getattr(table, "shape", None)  # sparse matrices have a shape and no length
    if shape is None:
        return len(table) if isinstance(table, Sized) else None
    return int(shape[0]) if shape else None


def without_mask(values: object) -> Any:
    """Convert masked arrays, and lists of them, to plain arrays; return other values unchanged.

    Masked numbers become NaN, which converts integers to floats; other masked values, and masked
    integers of arrays with some beyond 2**53, become ``None``.
    """
    if isinstance(values, (list, tuple)) and any(map(np.ma.isMaskedArray, values)):
        rows = [np.ma.asarray(row) for row in values]
        if len({row.shape for row in rows}) == 1:
            values = np.ma.stack(rows)
    if not np.ma.isMaskedArray(values):
        return values
    data, mask = np.asarray(values.data), np.ma.getmaskarray(values)
    if data.dtype.kind in "VmM" or not mask.any():
        return data
    if data.dtype.kind in "fc":
        data = data.copy()
    else:
        is_exact = data.dtype.kind in "biu" and not are_rounded(data)
        data = data.astype(np.float64 if is_exact else object)
    data[mask] = None if data.dtype.kind == "O" else np.nan
    return data


def refuse_dates_and_complex(values: object, what: str) -> None:
    """Reject dates, times, durations, and complex numbers, which NumPy would cast to floats."""
    if is_array_or_list(values):
        try:
            values = np.asarray(values)
        except (TypeError, ValueError):  # rows of different lengths
            return
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "M":
        raise InvalidData(
            f"{what} contains dates or times; convert them to numbers, such as year, month, day of "
            "the week, or the seconds since a fixed date."
        )
    if kind == "m":
        raise InvalidData(
            f"{what} contains durations; convert them to numbers, such as their length in seconds, "
            f"{what} / numpy.timedelta64(1, 's')."
        )
    if kind == "c":
        raise InvalidData(
            f"Complex data not supported: {what} must contain real numbers; pass {what}.real or "
            f"{what}.imag."
        )


def index_names(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema in which pandas has stored the index of a frame."""
    stored = (getattr(schema, "pandas_metadata", None) or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str) and name in schema.names]


_READERS = {
    **dict.fromkeys((".parquet", ".pq"), "pandas.read_parquet"),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "pandas.read_excel"),
    **dict.fromkeys((".json", ".jsonl"), "pandas.read_json"),
    **dict.fromkeys((".feather", ".arrow"), "pandas.read_feather"),
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), "sklearn.datasets.load_svmlight_file"),
    **dict.fromkeys((".pkl", ".pickle"), "pandas.read_pickle"),
    **dict.fromkeys((".h5", ".hdf5"), "pandas.read_hdf"),
    ".orc": "pandas.read_orc",
    ".dta": "pandas.read_stata",
    ".sav": "pandas.read_spss",
    ".sas7bdat": "pandas.read_sas",
    ".npy": "numpy.load",
}


def how_to_read_file(path: str) -> str:
    """Name the function that reads a file with the suffix of this path; CSV if it is unknown."""
    reader = _READERS.get(PurePath(path).suffix.lower(), "pandas.read_csv")
    return f"read the file first, as with {reader}"
