"""Doubt at the door: inputs, targets and weights are checked here, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from hilboost.core import dtypes
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.core.records import Floats


def check_inputs(estimator: BaseEstimator, X: Any, *, reset: bool) -> Floats:
    """Inputs as a C-contiguous float32 or float64 array (n, d), NaN for missing.

    Raises
    ------
    InvalidData
        Text in a column, infinite values.
    ValueError, TypeError
        scikit-learn's own: sparse input, wrong number or order of columns, no rows.
    """
    if not reset and _is_plain(estimator, X):
        return X
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite="allow-nan",
        )
    except ValueError as error:
        raise _explained(X, error) from error
    if len(X) > dtypes.MAX_ROWS:
        raise InvalidData(f"X has {len(X)} rows; at most {dtypes.MAX_ROWS} are supported.")
    return X


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Whether an array is just what prediction needs, so that nothing is left to check."""
    if not (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    ):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum(dtype=np.float64)))


def _explained(X: Any, error: ValueError) -> ValueError:
    """The error with the column named, where the cause is text or an infinite value."""
    message = str(error)
    if "could not convert" in message:
        return InvalidData(
            f"X holds text{_first_column(X, _holds_text)}; inputs must be numbers. "
            "Encode such columns first, for instance with scikit-learn's OrdinalEncoder."
        )
    if "infinity" in message:
        return InvalidData(
            f"Input X contains infinity or a value too large{_first_column(X, _holds_infinity)}. "
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


def _first_column(X: Any, is_bad: Any) -> str:
    names = list(X.columns) if hasattr(X, "columns") else None
    table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
    if getattr(table, "ndim", 0) != 2:
        return ""
    for k in range(table.shape[1]):
        if is_bad(table[:, k]):
            return f" in column {names[k]!r}" if names else f" in column {k}"
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
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise InvalidData(
            f"sample_weight must not be negative; row {row} has {weight[row]:g}. "
            "Use 0 to leave a row out."
        )
    if not (weight > 0).any():
        raise InvalidData("sample_weight is zero for every row; at least one must be positive.")
    return None if (weight == 1).all() else weight


def check_regression_target(y: Any, n: int) -> tuple[Floats, bool]:
    """Target (n, c) float64, and whether it was one-dimensional.

    Raises
    ------
    ValueError
        NaN or infinite values, text, or another number of rows than ``X``.
    """
    y = np.asarray(y) if not hasattr(y, "to_numpy") else y.to_numpy()
    if y.dtype.kind in "OUS":
        try:
            y = y.astype(np.float64)
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
    _require_known_targets(y)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_all_finite=True)
    if y.ndim > 2:
        raise InvalidData(f"y has {y.ndim} dimensions; it must have one (or two: n, targets).")
    check_length(y, n)
    return np.ascontiguousarray(y.reshape(n, -1)), flat


def _require_known_targets(y: np.ndarray) -> None:
    """Refuse a target with gaps, and say where the first one is."""
    if y.dtype.kind != "f" or y.ndim not in (1, 2) or not np.isnan(y).any():
        return
    row, column = (int(i) for i in np.argwhere(np.isnan(y.reshape(len(y), -1)))[0])
    if y.ndim == 1 or y.shape[1] == 1:
        raise InvalidData(f"Input y contains NaN in row {row}; leave out rows without a target.")
    raise InvalidData(
        f"Input y contains NaN in row {row} of target {column}; all targets of a row must be "
        "known. Fit one model a target, each on the rows where its target is known."
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
