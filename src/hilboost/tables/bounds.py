"""Bounds of targets: intervals that contain them, and limits beyond which rows are not observed."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, first_few, first_true
from hilboost.tables.arrays import fields_of, frame_columns
from hilboost.tables.reading import as_array, named_columns

LOWER, UPPER, ENTRY, LIMIT = range(4)
"""Columns of encoded bounds."""
N_BOUNDS = 4
_NAMES = ("lower", "upper", "entry", "limit")
_PAIRS = (("lower", "upper"), ("event", "time"))
_OTHERWISE = MappingProxyType({"entry": -np.inf, "limit": np.inf})
_FORMS = (
    "censored targets have the fields 'lower' and 'upper', or 'event' and 'time', and 'entry' or "
    "'limit' if rows are truncated"
)


def holds_bounds(y: object) -> bool:
    """Whether targets are a structured array, or a data frame of bounds by the names of columns."""
    if fields_of(y) is not None:
        return True
    names = set(frame_columns(y) or ())
    return any(names >= set(pair) and names <= {*pair, *_OTHERWISE} for pair in _PAIRS)


def refuse_bounds(y: object) -> None:
    """Reject bounds where targets must be known."""
    if holds_bounds(y):
        raise InvalidData(
            "y holds bounds of targets, but must contain one number for each row here; censored "
            "rows have a log_score (predict_distribution(X).log_score(y)), and no other score."
        )


def bounds_refused(loss: str) -> InvalidData:
    """Return the error for bounds of targets of another loss."""
    return InvalidData(
        f"loss={loss!r} requires numbers as y; censored or truncated targets require a "
        "distribution, such as loss='normal'."
    )


def check_bounds(y: object, n: int) -> Floats:
    """Return the columns ``lower``, ``upper``, ``entry`` and ``limit``, (n, 4).

    A target is above ``lower`` and at most ``upper``, or equal to both.  Rows with a target of at
    most ``entry``, or above ``limit``, would not be in the table.
    """
    fields = _fields(y)
    lower, upper = _interval(fields)
    if len(lower) != n:
        raise InvalidData(
            f"X and y have inconsistent numbers of rows: {n} and {len(lower)}. "
            "Pass one target for each row of X."
        )
    entry, limit = (fields.get(name, np.full(n, end)) for name, end in _OTHERWISE.items())
    beyond = (upper <= entry) | (lower > limit) | ((lower == limit) & (lower < upper))
    for bad, why in (
        (np.isnan(lower), "the lower bound is missing; pass -inf if there is none"),
        (np.isnan(entry) | np.isnan(limit), "entry or limit is missing; pass -inf or inf"),
        (lower > upper, "the lower bound is above the upper one; exchange them"),
        (np.isinf(lower) & np.isinf(upper), "no bound is finite; remove the row"),
        (beyond, "the target is not above entry and up to limit; correct these"),
    ):
        if (row := first_true(bad)) is not None:
            values = zip(_NAMES, (lower, upper, entry, limit), strict=True)
            known = ", ".join(f"{name} {column[row]:g}" for name, column in values)
            raise InvalidData(f"in row {row} of y ({known}), {why}.")
    return np.column_stack([np.maximum(lower, entry), np.minimum(upper, limit), entry, limit])


def as_bounds(y: Floats) -> Floats:
    """Return numbers (n, 1) as exact bounds (n, 4), and bounds as they are."""
    if y.shape[1] > 1:
        return y
    ends = (np.full(len(y), end) for end in _OTHERWISE.values())
    return np.column_stack([y, y, *ends])


def are_exact(bounds: Floats) -> NDArray[np.bool_]:
    """Whether rows of bounds (n, 4) are exact and not truncated, (n,)."""
    truncated = np.isfinite(bounds[:, [ENTRY, LIMIT]]).any(axis=1)
    return (bounds[:, LOWER] == bounds[:, UPPER]) & ~truncated


def as_fields(bounds: Floats) -> NDArray[np.void]:
    """Return encoded bounds (n, 4) as a structured array (n,), which a user may pass."""
    return np.ascontiguousarray(bounds).view([(name, np.float64) for name in _NAMES])[:, 0]


def stand_ins(bounds: Floats) -> Floats:
    """Numbers inside of the bounds (n, 4), (n,): the middle, or the only finite end."""
    lower, upper = bounds[:, LOWER], bounds[:, UPPER]
    with np.errstate(invalid="ignore"):
        inside = lower + 0.5 * (upper - lower)
    return np.where(np.isinf(upper), lower, np.where(np.isinf(lower), upper, inside))


def _fields(y: object) -> dict[str, Floats]:
    """Columns of numbers by name, (n,) each."""
    columns = named_columns(y)
    if columns is None:
        structured = np.asarray(y)
        columns = {name: structured[name] for name in structured.dtype.names or ()}
    names = set(columns)
    if not any(names >= set(pair) and names <= {*pair, *_OTHERWISE} for pair in _PAIRS):
        raise InvalidData(f"{_FORMS}; y has {first_few(list(columns))}.")
    found = {}
    for name, values in columns.items():
        column = np.asarray(as_array(values, f"y[{name!r}]"))
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            raise InvalidData(
                f"y[{name!r}] must hold one number for each row; got an array of shape "
                f"{column.shape} and dtype {column.dtype}."
            )
        found[name] = column.astype(np.float64)
    return found


def _interval(fields: dict[str, Floats]) -> tuple[Floats, Floats]:
    """Lower and upper bounds, (n,) each."""
    if "lower" in fields:
        return fields["lower"], np.where(np.isnan(fields["upper"]), np.inf, fields["upper"])
    event, time = fields["event"], fields["time"]
    if (row := first_true(~np.isin(event, (0, 1)) | ~np.isfinite(time))) is not None:
        raise InvalidData(
            f"in row {row} of y, event is {event[row]:g} and time {time[row]:g}; pass True or 1 "
            "for an event, False or 0 for a censored row, and a finite time."
        )
    return time, np.where(event == 1, time, np.inf)
