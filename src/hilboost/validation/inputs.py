"""Validation of inputs: names of columns, and conversion of arrays, frames and sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.errors import (
    InvalidData,
    InvalidParameter,
    InvalidType,
    first_few,
    shown,
    warn_caller,
    with_article,
)
from hilboost.core.plain_values import as_floats
from hilboost.tables.arrays import how_to_read_file, refuse_dates_and_complex, without_mask
from hilboost.tables.blocks import DenseTable, as_table
from hilboost.tables.encoding import encode, encode_array, learn, learn_array
from hilboost.tables.files import FileTable
from hilboost.tables.reading import Table, read_table
from hilboost.tables.schema import Schema, category_choice, place
from hilboost.tables.sparse import SparseTable, check_sparse, is_sparse
from hilboost.tables.text_columns import TextColumn, warn_of_texts

_NAMES_SHOWN = 20


def check_columns(estimator: Any, names: Sequence[str] | None, d: int, *, reset: bool) -> None:
    """Store the names and number of columns in a fit, and compare them in later calls."""
    if reset:
        estimator.n_features_in_ = d
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        else:
            vars(estimator).pop("feature_names_in_", None)
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    name = type(estimator).__name__
    if fitted is not None and names is not None:
        _compare_names(fitted.tolist(), list(names))
    elif names is not None:
        told = f"X has feature names, but {name} was fitted without feature names"
        warn_caller(told, UserWarning)
    elif fitted is not None:
        told = f"X does not have valid feature names, but {name} was fitted with feature names"
        warn_caller(told, UserWarning)
    if d != estimator.n_features_in_:
        raise InvalidData(
            f"X has {d} features, but {name} is expecting {estimator.n_features_in_} features as "
            "input."
        )


def _compare_names(fitted: list[str], names: list[str]) -> None:
    if fitted == names:
        return
    unseen, missing = set(names) - set(fitted), set(fitted) - set(names)
    parts = [f"lacks {_columns(missing)} of the fit"] if missing else []
    parts += [f"has {_columns(unseen)}, which the fit did not have"] if unseen else []
    advice = "pass the columns in model.feature_names_in_"
    if not missing:
        advice = "pass X[list(model.feature_names_in_)]"
    message = f"X {' and '.join(parts)}; {advice}.\n" if parts else ""
    # The tests of scikit-learn expect these lines.
    message += "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
    if not unseen and not missing:
        message += (
            "Feature names must be in the same order as they were in fit.\n"
            "Use X[list(model.feature_names_in_)].\n"
        )
    raise InvalidData(message)


def _columns(names: Iterable[str]) -> str:
    listed = sorted(names)
    return f"column{'s' if len(listed) > 1 else ''} {first_few(listed)}"


def _listed(names: Iterable[str]) -> str:
    lines = [f"- {name}\n" for name in sorted(names)]
    more = ["- ...\n"] if len(lines) > _NAMES_SHOWN else []
    return "".join(lines[:_NAMES_SHOWN] + more)


_DTYPES = [np.float64, np.float32]


@dataclass(frozen=True)
class Expected:
    """Properties that inputs must have."""

    schema: Schema | None  # columns of the fit; ``None`` in a new fit
    categorical: Any = "from_dtype"  # category columns, as specified by the user
    sparse: bool = False  # whether sparse matrices are accepted
    # whether a table that is not a matrix of floats may remain as it is, to be read in blocks; its
    # values are not checked
    blocks: bool = False
    infinite: bool = False  # whether infinite values are accepted
    refuses_nan: str = ""  # why NaN is rejected, and what to do; empty if it is accepted
    note_texts: Callable[[Mapping[object, TextColumn]], None] = warn_of_texts

    @property
    def finite(self) -> bool | str:
        """The parameter ``ensure_all_finite`` of scikit-learn's checks."""
        return False if self.infinite else "allow-nan"


def check_inputs(estimator: object, X: object, expected: Expected) -> tuple[Floats, Schema]:
    """Convert inputs to a matrix (n, d) with NaN for missing values, and their schema.

    Fit sets ``n_features_in_`` and ``feature_names_in_`` of the estimator; predictions compare
    them.
    """
    if isinstance(X, FileTable):
        return _check_files(estimator, X, expected)
    if is_sparse(X):
        X, schema = _check_sparse(estimator, X, expected)
    elif (table := read_table(X := without_mask(X))) is None:
        X, schema = _check_array(estimator, X, expected)
    else:
        X, schema = _check_table(estimator, table, expected)
    check_number_of_rows(len(X))
    if expected.refuses_nan:
        _refuse_nan(X, schema, expected.refuses_nan)
    return X, schema


def _refuse_nan(X: Floats | SparseTable, schema: Schema, why: str) -> None:
    """Reject missing values, with the row and the column of the first one."""
    table = as_table(X)
    if table.is_sparse:
        values, columns, starts = table.arrays
        missing = np.flatnonzero(np.isnan(values))[:1]
        cells = np.column_stack([np.searchsorted(starts, missing, "right") - 1, columns[missing]])
    else:
        cells = np.argwhere(np.isnan(np.asarray(X)))
    if len(cells):
        row, column = cells[0].tolist()
        raise InvalidData(
            f"X contains NaN in row {row} of {place(schema.columns[column].name)}, {why}"
        )


def check_number_of_rows(n: int) -> None:
    """Check that the numbers of all rows of a table are known."""
    if n > dtypes.MAX_ROWS:
        raise InvalidData(f"X has {n} rows; at most {dtypes.MAX_ROWS} are supported.")


def is_plain(estimator: Any, X: Any, schema: Schema) -> bool:
    """Whether an array can be used for prediction without further checks."""
    if not (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "df"
        and X.dtype.isnative
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and "feature_names_in_" not in vars(estimator)
        and not schema.categories
    ):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return isfinite(X.sum(dtype=np.float64))


def _check_files(estimator: object, X: FileTable, expected: Expected) -> tuple[Floats, Schema]:
    """Check a table on disk, whose values are checked when they are read."""
    if not expected.blocks or expected.schema is not None:
        raise InvalidType(
            "tables on disk are only supported in new fits of trees; set learner='tree' and "
            "warm_start=False."
        )
    check_columns(estimator, X.schema.names, X.shape[1], reset=True)
    table: Any = X
    return table, X.schema


def _check_table(estimator: object, table: Table, expected: Expected) -> tuple[Floats, Schema]:
    """Check a table whose columns have individual dtypes."""
    d, schema = len(table.columns), expected.schema
    check_columns(estimator, table.names, d, reset=schema is None)
    X: Any
    if schema is None:
        chosen = category_choice(expected.categorical, d, table.names)
        text = expected.categorical is not None
        X, schema = learn(table, chosen, expected.blocks, text, expected.note_texts)
    else:
        X = encode(table, schema.columns)
    if isinstance(X, DenseTable):
        # Check the number of rows and columns as scikit-learn checks a matrix.
        check_array(np.broadcast_to(0.0, X.shape), ensure_all_finite=False, estimator=estimator)
        in_blocks: Any = X
        return in_blocks, schema
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            X = check_array(
                X, dtype=_DTYPES, order="C", ensure_all_finite=expected.finite, estimator=estimator
            )
    except ValueError as error:
        raise _explained(X, error, table.names) from error
    return X, schema


def _check_array(estimator: Any, X: Any, expected: Expected) -> tuple[Floats, Schema]:
    """Check an array of numbers; scikit-learn raises errors for other objects."""
    in_place = expected.schema is None and expected.blocks and _would_be_copied(X)
    try:
        # scikit-learn sums all values; the sum may overflow float64.
        with np.errstate(over="ignore", invalid="ignore"):
            X = _validated(
                estimator,
                X,
                reset=expected.schema is None,
                dtype=None if in_place else _DTYPES,
                order=None if in_place else "C",
                ensure_all_finite=expected.finite,
            )
    except TypeError as error:
        if np.ndim(X):
            raise
        raise InvalidType(
            f"X is {with_article(type(X).__name__)}; pass a table: a data frame, an array, or a "
            "list of rows."
        ) from error
    except ValueError as error:
        raise _explained(X, error) from error
    if expected.schema is None:
        chosen = category_choice(expected.categorical, X.shape[1], None)
        if in_place and not chosen:
            table: Any = DenseTable(X)
            return table, Schema(X.shape[1])
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in _DTYPES else np.float64)
        return learn_array(X, chosen or ())
    return encode_array(X, expected.schema), expected.schema


def _validated(estimator: object, X: object, reset: bool, **options: Any) -> Any:
    """Validate like scikit-learn, whose warning about names of columns points to its own lines."""
    if reset:
        return validate_data(estimator, X, reset=True, **options)
    found = check_array(X, estimator=estimator, input_name="X", **options)
    check_columns(estimator, None, found.shape[1], reset=False)
    return found


def _would_be_copied(X: object) -> bool:
    """Whether an array of numbers is not a C-ordered array of floats."""
    if type(X) is not np.ndarray or X.ndim != 2:
        return False
    return X.dtype.kind in "biu" or (X.dtype in _DTYPES and not X.flags.c_contiguous)


def _check_sparse(estimator: Any, X: Any, expected: Expected) -> tuple[Floats, Schema]:
    """Check a sparse matrix, for learners that accept it; its static type is that of an array."""
    if not expected.sparse:
        trees = ", or learner='tree', which supports sparse data" if estimator.is_tabular else ""
        raise InvalidType(
            f"Sparse data was passed for X, but {type(estimator).__name__} with these parameters "
            f"requires dense data. Use '.toarray()' to convert it{trees}."
        )
    check_sparse(X)
    refuse_dates_and_complex(X, "X")
    try:
        X = _validated(
            estimator,
            X,
            reset=expected.schema is None,
            dtype=_DTYPES,
            accept_sparse=["csr", "csc"],
            ensure_all_finite=expected.finite,
        )
    except ValueError as error:
        raise _explained(X, error) from error
    schema = expected.schema
    if schema is None:
        if category_choice(expected.categorical, X.shape[1], None):
            raise InvalidParameter(
                "categorical_features is not supported for sparse matrices; set "
                "categorical_features=None, or pass X as an array or a data frame."
            )
        schema = Schema(X.shape[1])
    elif schema.categories:
        raise InvalidType(
            "the model was fitted with categorical columns, which sparse matrices do not support; "
            "pass X as an array or a data frame."
        )
    table: Any = SparseTable(X)
    return table, schema


def _explained(X: Any, error: ValueError, names: Sequence[str] | None = None) -> ValueError:
    """Name the column in the error if the cause is text or an infinite value."""
    message = str(error)
    if "could not convert" in message and np.ndim(X) == 1:
        return InvalidData(
            "Expected 2D array, got 1D array instead: X is a single row or column. Pass a table, "
            "for instance X.iloc[[0]] for the first row of a data frame, or X[['age']] for a "
            "column."
        )
    if X is None:
        return InvalidData("X is None; pass a table with rows and columns.")
    if isinstance(X, str):
        return InvalidData(f"X is the text {shown(X)}; {how_to_read_file(X)}.")
    if message.startswith("Found array with dim"):
        return InvalidData(
            f"X has {np.ndim(X)} dimensions, but must have rows and columns; pass a table, such as "
            "X.reshape(len(X), -1)."
        )
    if message.startswith("Expected 2D array"):
        return InvalidData(
            f"{message.partition(':')[0]}: X must have rows and columns. Reshape your data: "
            "X.reshape(1, -1) is one row, and X.reshape(-1, 1) one column."
        )
    if "could not convert" in message:
        return InvalidData(
            f"X contains text{_first_column(X, _holds_text)} in an unsupported form. Pass a data "
            "frame, or an array or list of rows of strings and numbers."
        )
    if "infinity" in message:
        return InvalidData(
            "Input X contains infinity or a value too large"
            f"{_first_column(X, _holds_infinity, names)}. "
            "Replace it by a finite number, or by NaN if the value is missing."
        )
    return InvalidData(message)


def _holds_text(column: object) -> bool:
    return as_floats(column) is None


def _holds_infinity(column: object) -> bool:
    return bool(np.isinf(np.asarray(column, dtype=np.float64)).any())


def _first_column(X: Any, is_bad: Any, names: Sequence[str] | None = None) -> str:
    if is_sparse(X):
        table = X.tocsc()
        columns: Iterable[Any] = (table[:, [k]].data for k in range(table.shape[1]))
    else:
        columns = np.asarray(X).T if np.ndim(X) == 2 else ()
    for k, column in enumerate(columns):
        if is_bad(column):
            return f" in column {k}" if names is None else f" in column {names[k]!r}"
    return ""
