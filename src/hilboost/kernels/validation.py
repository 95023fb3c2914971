"""Validation of hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, counted, shown
from hilboost.core.plain_values import is_integer, is_number, real


def positive(name: str, value: object) -> float:
    """Return a number as a float after checking that it is positive and finite."""
    if not (is_number(value) and 0 < real(value) < np.inf):
        raise InvalidParameter(f"{name} must be positive and finite; got {shown(value)}.")
    return real(value)


def not_negative(name: str, value: object) -> float:
    """Return a number as a float after checking that it is nonnegative and finite."""
    if not (is_number(value) and 0 <= real(value) < np.inf):
        raise InvalidParameter(f"{name} must be zero or positive, and finite; got {shown(value)}.")
    return real(value)


def positive_integer(name: str, value: Any) -> int:
    """Return a number as an int after checking that it is a positive integer."""
    if not is_integer(value) or value < 1:
        raise InvalidParameter(f"{name} must be a positive integer; got {shown(value)}.")
    return int(value)


def length_scales(value: object) -> Floats:
    """Copy length scales to an array, (1,) or (d,)."""
    try:
        scales = np.atleast_1d(np.array(value))
    except ValueError:  # a ragged list
        scales = np.empty(0)
    numeric = scales.ndim == 1 and len(scales) > 0 and scales.dtype.kind in "iuf"
    if not (numeric and np.isfinite(scales).all() and (scales > 0).all()):
        raise InvalidParameter(
            f"length_scale must be a positive finite number, or one per column; got {shown(value)}."
        )
    return scales.astype(np.float64)


def check_length_scales(scales: Floats, n_columns: int) -> None:
    """Check that there is one length scale, or one for each column."""
    if len(scales) not in (1, n_columns):
        raise InvalidParameter(
            f"the kernel has {len(scales)} length scales, but X has "
            f"{counted(n_columns, 'column')}; use one length scale, or one per column."
        )
