"""Validation of targets."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from hilboost.core.dtypes import NO_NUMBER, Floats
from hilboost.core.errors import (
    DataWarning,
    InvalidData,
    InvalidType,
    first_few,
    shown,
    warn_caller,
)
from hilboost.core.plain_values import as_floats, is_boolean, is_integer, is_number
from hilboost.reductions.rows import distinct
from hilboost.tables.arrays import (
    frame_columns,
    refuse_dates_and_complex,
    without_frame,
    without_mask,
)
from hilboost.tables.columns import is_missing_value
from hilboost.tables.number_text import written_as
from hilboost.tables.reading import as_array, repeated_name

_NO_COMMAS = "remove thousands separators, and write decimal points"
_REMOVE = "remove rows without a target, also where their weight is 0."


def check_regression_target(
    y: Any, n: int, allow_missing: bool = False, advice: str = ""
) -> tuple[Floats, bool]:
    """Return the target (n, c) float64, and whether it was one-dimensional.

    With ``allow_missing``, some of several targets may be missing (NaN) in a row.  ``advice`` ends
    the message about text.
    """
    names = frame_columns(y)
    if names is not None and len(set(names)) < len(names):
        raise repeated_name(y, "y")
    y = _of_equal_rows(without_frame(as_array(y)))
    _refuse_fields(y, "number")
    if y.dtype.kind in "OUS":
        given = y
        try:
            y = _without_na(y).astype(np.float64)
        except NO_NUMBER:
            text, with_commas = _first_text(y, names)
            advice = _NO_COMMAS if with_commas else advice
            raise InvalidData(
                f"y contains text or other objects ({text}), but must "
                f"contain numbers{advice and '; '}{advice}."
            ) from None
        warn_of_number_texts(given, "y")
    refuse_dates_and_complex(y, "y")
    if y.ndim > 2:
        raise InvalidData(
            f"y has {y.ndim} dimensions; it must have shape (n_samples,) or (n_samples, n_targets)."
        )
    flat = y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1)
    _warn_of_column(y)
    _require_known_targets(y, allow_missing, names)
    _refuse_infinity(y, names)
    finite: Any = "allow-nan" if allow_missing else True
    with np.errstate(over="ignore", invalid="ignore"):
        y = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_all_finite=finite
        )
    check_length(y, n)
    return np.ascontiguousarray(y.reshape(n, -1)), flat


def warn_of_number_texts(values: np.ndarray, what: str) -> None:
    """Warn that text was converted to numbers; ``what`` names the argument."""
    texts = (value for value in values.ravel().tolist() if isinstance(value, str | bytes))
    first = next(texts, None)
    if first is not None:
        warn_caller(
            f"{what} contains text, such as {shown(first)}, which is converted to numbers; pass "
            f"numbers, such as np.asarray({what}, dtype=float).",
            DataWarning,
        )


def _warn_of_column(y: np.ndarray) -> None:
    """Warn that the only column of an array is used as a target of one dimension."""
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_caller(
            "A column-vector y was passed when a 1d array was expected; y.ravel() is used.",
            DataConversionWarning,
        )


def _of_equal_rows(y: object) -> np.ndarray:
    """Convert targets to an array."""
    try:
        return np.asarray(y)
    except ValueError as error:
        raise InvalidData(
            "y has rows of different lengths; pass one target, or equally many, for each row. For "
            "sets of labels, use OutputKernelBoostingRegressor('label_set')."
        ) from error


def _refuse_fields(y: np.ndarray, what: str) -> None:
    """Reject a structured array, whose fields are bounds of numbers, or events and times."""
    if y.dtype.names is not None:
        raise InvalidData(
            f"y is a structured array with the fields {first_few(list(y.dtype.names))}, but must "
            f"contain one {what} for each row; pass a single field, such as "
            f"y[{y.dtype.names[0]!r}]."
        )


def _first_text(y: np.ndarray, names: list[str] | None) -> tuple[str, bool]:
    """Describe the first value that is not a number; say whether it is a number with commas."""
    for index in np.ndindex(y.shape[:2]):
        if as_floats(y[index]) is None:
            where = f"row {index[0]}{_of_target(index, y, names)}"
            with_commas = written_as(y[index]) == "numbers with separators"
            return f"{shown(y[index])} in {where}", with_commas
    return f"dtype {y.dtype}", False


def _of_target(index: Sequence[int], y: np.ndarray, names: list[str] | None) -> str:
    """Name the target of a cell of y, if there are several."""
    if y.ndim == 1 or y.shape[1] == 1:
        return ""
    return f" of target {index[1]}" if names is None else f" of target {names[index[1]]!r}"


def _without_na(y: np.ndarray) -> np.ndarray:
    """Replace pandas' NA by NaN, which NumPy can treat as a number."""
    if y.dtype.kind != "O":
        return y
    return np.where(np.frompyfunc(is_missing_value, 1, 1)(y).astype(bool), np.nan, y)


def _require_known_targets(y: np.ndarray, allow_missing: bool, names: list[str] | None) -> None:
    """Reject rows without a target, and single missing targets unless they are allowed."""
    if y.dtype.kind != "f" or y.ndim not in (1, 2) or not np.isnan(y).any():
        return
    missing = np.isnan(y.reshape(len(y), -1))
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        where = "in" if missing.shape[1] == 1 else "in all targets of"
        raise InvalidData(f"Input y contains NaN {where} row {empty[0]}; {_REMOVE}")
    if not allow_missing:
        cell = np.argwhere(missing)[0].tolist()
        raise InvalidData(
            f"Input y contains NaN in row {cell[0]}{_of_target(cell, y, names)}. Missing targets "
            "are supported by BoostingRegressor with trees (learner='tree') and squared error, "
            "Poisson, gamma or Tweedie loss; otherwise, fit one model per target, on the rows in "
            "which it is known."
        )


def _refuse_infinity(y: np.ndarray, names: list[str] | None) -> None:
    if y.dtype.kind != "f" or y.ndim not in (1, 2):
        return
    infinite = np.isinf(y.reshape(len(y), -1))
    if infinite.any():
        cell = np.argwhere(infinite)[0].tolist()
        remedy = "remove such rows, or limit the target"
        if infinite.shape[1] == 2:
            remedy += ", or name the columns 'lower' and 'upper' if they are bounds"
        raise InvalidData(
            f"Input y contains infinity or a value too large in row {cell[0]}"
            f"{_of_target(cell, y, names)}; {remedy}."
        )


def _are_one_hot(rows: NDArray[Any]) -> bool:
    """Whether each row has a one among zeros."""
    numbers = as_floats(rows)
    if numbers is None:
        return False
    return bool(np.isin(numbers, (0, 1)).all() and (numbers.sum(axis=1) == 1).all())


def check_classes(y: Any, n: int) -> NDArray[Any]:
    """Return the class of each row, (n,)."""
    y = as_array(y)
    if isinstance(y, list | tuple):
        _refuse_mixed(y)
    found = _of_equal_rows(y)
    _refuse_fields(found, "class")
    shape = found.shape
    if len(shape) == 2 and shape[1] > 1:
        advice = (
            "The columns are one-hot classes; pass np.argmax(y, axis=1)."
            if _are_one_hot(found)
            else "For several labels per row, use OutputKernelBoostingRegressor('label_set'), or "
            "scikit-learn's MultiOutputClassifier."
        )
        raise InvalidData(
            f"y should be a 1d array, got an array of shape {shape} instead. {advice}"
        )
    _warn_of_column(found)
    y = column_or_1d(y)
    _require_labels(y)
    _refuse_objects(y)
    try:
        # Integers, booleans or text, most of which occur again, are classes.
        if y.dtype.kind not in "biuU" or len(distinct(y)) > len(y) // 2:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                check_classification_targets(y)
            for one in told:  # of many classes
                warn_caller(str(one.message), one.category)
    except ValueError as error:
        kind, odd = str(error).partition(".")[0], _no_label(y)
        if isinstance(odd, Collection):
            raise InvalidData(
                f"y contains {shown(odd)}, but must contain one class per row. For several labels "
                "per row, use OutputKernelBoostingRegressor('label_set')."
            ) from error
        raise InvalidData(
            f"{kind}; y contains {shown(odd)}, but must contain classes. Use a regressor, such as "
            "BoostingRegressor, for numbers."
        ) from error
    check_length(y, n)
    return y


def _refuse_mixed(y: Sequence[Any]) -> None:
    """Reject text among other labels, which NumPy would convert to text, as ``1`` to ``"1"``."""
    is_text = [isinstance(label, str) for label in y]
    if not any(is_text) or all(is_text):
        return
    row = is_text.index(False)
    if is_missing_value(y[row]):
        raise _without_label(row)
    if not isinstance(y[row], Collection):
        raise InvalidData(
            f"y contains text ({shown(y[is_text.index(True)])} in row {is_text.index(True)}) and "
            f"other labels ({shown(y[row])} in row {row}), but classes must be of one type; pass "
            "text, such as list(map(str, y))."
        )


def _without_label(row: int) -> InvalidData:
    return InvalidData(f"Input y contains NaN: row {row} has no label; {_REMOVE}")


def _no_label(y: NDArray[Any]) -> Any:
    """The first value that cannot be a class, such as a fraction."""
    fractions = y[y != np.round(y)] if y.dtype.kind == "f" else y
    return fractions[0] if len(fractions) else y[0]


def _require_labels(y: np.ndarray) -> None:
    """Check that every row has a class."""
    missing = np.zeros(len(y), dtype=bool)
    if y.dtype.kind == "f":
        missing = np.isnan(y)
    elif y.dtype.kind == "O":
        missing = np.array([is_missing_value(label) for label in y], dtype=bool)
    if missing.any():
        raise _without_label(int(missing.argmax()))


def _refuse_objects(y: np.ndarray) -> None:
    """Reject an array of objects that are not text, and name the dtype to which to convert it."""
    if y.dtype.kind != "O" or all(isinstance(label, str | Collection) for label in y):
        return
    kinds = ("bool", is_boolean), ("int", is_integer), ("float", is_number)
    fitting = (name for name, fits in kinds if all(is_boolean(x) or fits(x) for x in y))
    dtype = next(fitting, "str")
    odd = next(label for label in y if not isinstance(label, str))
    raise InvalidData(
        f"Unknown label type: y has dtype object and contains {shown(odd)} "
        f"({type(odd).__name__}), but classes must be text, or of a dtype of numbers or booleans; "
        f"pass y.astype({dtype})."
    )


def check_length(y: Any, n: int) -> None:
    """Check that there is one target for each row."""
    found = y.shape[0] if getattr(y, "shape", ()) else len(y)  # sparse tables have no length
    if found != n:
        raise InvalidData(
            f"X and y have inconsistent numbers of rows: {n} and {found}. "
            "Pass one target for each row of X."
        )


def as_sequence(y: object) -> Any:
    """Convert labels to a sequence with a length: lists, arrays, tables, and array-likes."""
    y = without_mask(y)
    if isinstance(y, Sized):
        return y
    if hasattr(y, "__array__"):
        return np.asarray(y)
    raise InvalidType(f"y must be a list or an array of labels; got {type(y).__name__}.")
