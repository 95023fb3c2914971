"""Doubt at the door: inputs, targets and weights are checked here, once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from hilboost.core import dtypes
from hilboost.core.contracts import Learner
from hilboost.core.errors import (
    DataWarning,
    IncompatibleParts,
    InvalidData,
    InvalidParameter,
    InvalidType,
)
from hilboost.core.records import Floats
from hilboost.estimators.names import check_columns
from hilboost.tables import (
    Schema,
    SparseTable,
    Table,
    as_array,
    category_choice,
    encode,
    encode_array,
    is_missing_value,
    is_sparse,
    learn,
    learn_array,
    read_table,
)

_DTYPES = [np.float64, np.float32]


def check_inputs(estimator: Any, X: Any, *, reset: bool) -> Floats:
    """Inputs as a matrix (n, d): NaN for missing, codes for categories.

    Parameters
    ----------
    estimator : estimator
        Its ``categorical_features`` (``"from_dtype"`` where it has none) say which columns hold
        categories; with ``reset`` its ``_schema`` is set, else followed.
    X : array-like, data frame or sparse table (n, d)
    reset : bool
        Whether this is a fit.

    Returns
    -------
    C-contiguous float32 or float64 array, or SparseTable where the estimator takes these

    Raises
    ------
    InvalidData, InvalidType
        Infinite values, dates, nested values, text among numbers or where numbers are wanted.
    InvalidParameter
        ``categorical_features`` that ``X`` does not have.
    ValueError, TypeError
        scikit-learn's own: wrong number or order of columns, no rows.
    """
    if not reset and _is_plain(estimator, X):
        return X
    if is_sparse(X):
        return _check_sparse(estimator, X, reset)
    table = read_table(X)
    if table is None:
        X = _check_array(estimator, X, reset)
    else:
        X = _check_table(estimator, table, reset)
    if len(X) > dtypes.MAX_ROWS:
        raise InvalidData(f"X has {len(X)} rows; at most {dtypes.MAX_ROWS} are supported.")
    return X


def _is_plain(estimator: Any, X: Any) -> bool:
    """Whether an array is just what prediction needs, so that nothing is left to check."""
    if not (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and not estimator._schema.categories
    ):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum(dtype=np.float64)))


def _check_table(estimator: Any, table: Table, reset: bool) -> Floats:
    """A table of columns of their own dtypes."""
    d = len(table.columns)
    check_columns(estimator, table.names, d, reset=reset)
    if reset:
        chosen = category_choice(estimator._given_categories(), d, table.names)
        X, estimator._schema = learn(table, chosen)
    else:
        X = encode(table, estimator._schema)
    try:
        return check_array(
            X, dtype=_DTYPES, order="C", ensure_all_finite="allow-nan", estimator=estimator
        )
    except ValueError as error:
        raise _explained(X, error, table.names) from error


def _check_array(estimator: Any, X: Any, reset: bool) -> Floats:
    """An array of numbers, or what scikit-learn has a message for."""
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=_DTYPES,
            order="C",
            ensure_all_finite="allow-nan",
        )
    except ValueError as error:
        raise _explained(X, error) from error
    if reset:
        chosen = category_choice(estimator._given_categories(), X.shape[1], None)
        X, estimator._schema = learn_array(X, chosen or ())
        return X
    return encode_array(X, estimator._schema)


def _check_sparse(estimator: Any, X: Any, reset: bool) -> Floats:
    """A sparse table, for learners that take it: it has to go by the name of an array."""
    if not estimator._takes_sparse():
        raise InvalidType(
            f"Sparse data was passed for X, but {type(estimator).__name__} with these parameters "
            "requires dense data. Use '.toarray()' to convert it, or the built-in trees "
            "(learner='tree'), which take it as it is."
        )
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=_DTYPES,
            accept_sparse=["csr", "csc"],
            ensure_all_finite="allow-nan",
        )
    except ValueError as error:
        raise _explained(X, error) from error
    d = X.shape[1]
    if reset:
        if category_choice(estimator._given_categories(), d, None):
            raise InvalidParameter(
                "categorical_features names columns, and those of a sparse table hold numbers; "
                "set categorical_features=None, or give X as an array or a data frame."
            )
        estimator._schema = Schema(d)
    elif estimator._schema.categories:
        raise InvalidType(
            "the model was fitted with category columns, which a sparse table cannot hold; give X "
            "as an array or a data frame."
        )
    table: Any = SparseTable(X)
    return table


def learner_name(learner: Any) -> str:
    """What messages call it."""
    return repr(learner) if isinstance(learner, str) else type(learner).__name__


def check_learner(learner: Learner, schema: Schema, name: str, instead: str) -> None:
    """Refuse categories that a learner would take for numbers.

    Parameters
    ----------
    learner : Learner
    schema : Schema
    name : str
        What messages call the learner.
    instead : str
        The learner of this estimator that takes categories, in words.

    Raises
    ------
    IncompatibleParts
    """
    if schema.categories and not learner.takes_categories:
        column = schema.columns[schema.categories[0]]
        raise IncompatibleParts(
            f"column {column.name!r} holds categories, and {name} takes numbers only. Turn it into "
            "numbers, for instance with scikit-learn's OneHotEncoder or OrdinalEncoder, or "
            f"{instead}."
        )


def check_kernel(kernel: Any, given: Any, schema: Schema) -> None:
    """Refuse text for a kernel that would take its codes for numbers.

    Who names the columns in ``categorical_features`` has a kernel that compares codes.

    Raises
    ------
    IncompatibleParts
    """
    by_dtype, is_auto = isinstance(given, str), isinstance(kernel, str) and kernel == "auto"
    if schema.categories and by_dtype and not is_auto:
        column = schema.columns[schema.categories[0]]
        raise IncompatibleParts(
            f"column {column.name!r} holds categories, and kernel={kernel!r} compares numbers. Set "
            "kernel='auto'; or name the column in categorical_features, and give a kernel that "
            "compares its codes, such as a product with OnColumns(Delta(), ...)."
        )


def _explained(X: Any, error: ValueError, names: Sequence[str] | None = None) -> ValueError:
    """The error with the column named, where the cause is text or an infinite value."""
    message = str(error)
    if "could not convert" in message and np.ndim(X) == 1:
        return InvalidData(
            "Expected 2D array, got 1D array instead: X is a single row or column. Give a table, "
            "for instance X.iloc[[0]] for the first row of a data frame, or X[['age']] for a "
            "column."
        )
    if "could not convert" in message:
        return InvalidData(
            f"X holds text{_first_column(X, _holds_text)} in a form that is not read. Give a data "
            "frame, or an array or list of rows of str and numbers."
        )
    if "infinity" in message:
        return InvalidData(
            "Input X contains infinity or a value too large"
            f"{_first_column(X, _holds_infinity, names)}. "
            "Replace it by a finite number, or by NaN where it means missing."
        )
    return error


def _holds_text(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False


def _holds_infinity(column: Any) -> bool:
    return bool(np.isinf(np.asarray(column, dtype=np.float64)).any())


def _first_column(X: Any, is_bad: Any, names: Sequence[str] | None = None) -> str:
    table = X.tocsc() if is_sparse(X) else np.asarray(X)
    if table.ndim != 2:
        return ""
    for k in range(table.shape[1]):
        if is_bad(table[:, [k]].data if is_sparse(X) else table[:, k]):
            return f" in column {k}" if names is None else f" in column {names[k]!r}"
    return ""


def check_weights(sample_weight: Any, X: Floats) -> Floats | None:
    """Weights (n,) float64, or ``None`` where all are one.

    Raises
    ------
    InvalidData
        A negative weight, or only zeros.
    """
    if sample_weight is None:
        return None
    weight = _check_sample_weight(as_array(sample_weight), X, dtype=np.float64)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise InvalidData(
            f"sample_weight must not be negative; row {row} has {weight[row]:g}. "
            "Use 0 to leave a row out."
        )
    if not (weight > 0).any():
        raise InvalidData("sample_weight is zero for every row; at least one must be positive.")
    return None if (weight == 1).all() else weight


def check_regression_target(y: Any, n: int, gaps: bool = False) -> tuple[Floats, bool]:
    """Target (n, c) float64, and whether it was one-dimensional.

    With ``gaps`` some of several targets of a row may be NaN.

    Raises
    ------
    ValueError
        NaN or infinite values, text, or another number of rows than ``X``.
    """
    y = as_array(y)
    y = np.asarray(y) if not hasattr(y, "to_numpy") else y.to_numpy()
    if y.dtype.kind in "OUS":
        try:
            y = _without_na(y).astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidData(
                "y holds text or other objects; a regression target must be numbers. "
                "Use BoostingClassifier for classes."
            ) from None
    if y.dtype.kind == "c":
        raise InvalidData("Complex data not supported: y must be real numbers.")
    flat = y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1)
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() is used.",
            DataConversionWarning,
            stacklevel=4,
        )
    _require_known_targets(y, gaps)
    finite: Any = "allow-nan" if gaps else True
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_all_finite=finite)
    if y.ndim > 2:
        raise InvalidData(f"y has {y.ndim} dimensions; it must have one (or two: n, targets).")
    check_length(y, n)
    return np.ascontiguousarray(y.reshape(n, -1)), flat


def _without_na(y: np.ndarray) -> np.ndarray:
    """Objects with NaN in the place of pandas' NA, which is no number to NumPy."""
    if y.dtype.kind != "O":
        return y
    return np.where(np.frompyfunc(is_missing_value, 1, 1)(y).astype(bool), np.nan, y)


def _require_known_targets(y: np.ndarray, gaps: bool) -> None:
    """Refuse rows without a target, and single gaps unless these are allowed."""
    if y.dtype.kind != "f" or y.ndim not in (1, 2) or not np.isnan(y).any():
        return
    missing = np.isnan(y.reshape(len(y), -1))
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        raise InvalidData(
            f"Input y contains NaN in row {empty[0]}; leave out rows without a target."
        )
    if not gaps:
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise InvalidData(
            f"Input y contains NaN in row {row} of target {column}. Trees learn from the targets "
            "that are known under squared error, Poisson, gamma and Tweedie losses "
            "(BoostingRegressor with learner='tree'); or fit one model a target, each on the rows "
            "where its target is known."
        )


def check_labels(y: np.ndarray) -> None:
    """Every row has a class.

    Raises
    ------
    InvalidData
    """
    missing = np.zeros(len(y), dtype=bool)
    if y.dtype.kind == "f":
        missing = np.isnan(y)
    elif y.dtype.kind == "O":
        missing = np.array([is_missing_value(label) for label in y], dtype=bool)
    if missing.any():
        raise InvalidData(
            f"Input y contains NaN: row {int(missing.argmax())} has no label. Leave such rows out."
        )


def check_length(y: Any, n: int) -> None:
    """One target a row."""
    found = y.shape[0] if getattr(y, "shape", ()) else len(y)  # sparse tables have no length
    if found != n:
        raise InvalidData(
            f"X and y have inconsistent numbers of rows: {n} and {found}. "
            "Give one target for every row of X."
        )


def warn_of_light_weights(weight: Floats | None, min_samples_leaf: float) -> None:
    """Say so where weights are so small that no leaf could ever be heavy enough."""
    if weight is None:
        return
    total, n = float(weight.sum()), len(weight)
    if total < 2 * min_samples_leaf <= n:
        warnings.warn(
            f"sample_weight sums to {total:.3g} over {n} rows, and a weight of 2 counts as two "
            f"rows, so that no leaf can reach min_samples_leaf={min_samples_leaf:g}: the model is "
            "a constant. Multiply the weights so that they sum to about the number of rows.",
            DataWarning,
            stacklevel=4,
        )
