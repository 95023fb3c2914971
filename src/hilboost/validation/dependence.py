"""By what rows are held out: the parameter ``validation``, and ``groups`` and ``time`` of a fit."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import HELD, LEARNED, Dependence
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, errors_of, refuse_class, shown
from hilboost.core.plain_values import is_name, real
from hilboost.core.target import Target
from hilboost.reductions.rows import whole_dependence
from hilboost.tables.arrays import without_mask
from hilboost.tables.columns import is_missing_value
from hilboost.tables.reading import refuse_no_array
from hilboost.validation.choices import check_one_per_row
from hilboost.validation.groups import number_groups

_UNIT = "datetime64[us]"
_DAY = 86_400_000_000  # microseconds


def dependence_of(
    validation: Any,
    gap: Any,
    groups: PerRow,
    time: object,
    y: NDArray[Any],  # (n,): class codes or numbers, which a splitter may stratify by
    ranks: bool = False,  # whether groups are ranked, and held out as a whole in any case
) -> Dependence | None:
    """Return by what rows are held out; ``None`` for rows at random, or groups of a ranking.

    Raises
    ------
    InvalidData, InvalidParameter
        Groups, times, gap or splits that the rows cannot be divided by.
    """
    kind = _kind(validation, groups, time, ranks)
    if gap is not None and kind != "time":
        raise InvalidParameter(
            "validation_gap is the time before the held-out rows, but they are not held out by "
            "time; pass time=... to fit, or set validation_gap=None."
        )
    numbers = None if groups is None else number_groups(groups, None, len(y))
    times = None if time is None else check_times(time, len(y))
    if kind == "splitter":
        roles = _roles(validation, numbers, times, y)
        if ranks and numbers is not None:
            _refuse_cut_groups(roles, numbers)
        return Dependence(None if ranks else numbers, times, roles=roles)
    if kind == "time" and times is not None:
        if (times == times[0]).all():
            raise InvalidData(
                "time is the same in all rows, so that no row is later than others; pass "
                "different times, or omit time."
            )
        gap = 0.0 if gap is None else _duration("validation_gap", gap, times)
        return Dependence(times=times, gap=gap)
    if kind == "groups" and numbers is not None and not ranks:
        if not numbers.any():
            raise InvalidData(
                "groups has a single label, so that no group can be held out; pass at least two "
                "groups, or omit groups."
            )
        return Dependence(numbers)
    return None


def check_weighted(target: Target) -> None:
    """Check that the rows with positive weight can be divided."""
    found = whole_dependence(target)
    if found is None:
        return
    if found.roles is not None:
        for role, what in ((LEARNED, "learns from"), (HELD, "holds out")):
            is_empty = ~(found.roles == role).any(axis=0)
            if is_empty.any():
                raise InvalidData(
                    f"split {int(is_empty.argmax())} of validation {what} only rows of zero "
                    "weight; use other weights, or another splitter."
                )
    elif not found.divides:
        what = found.kind if found.kind == "time" else "group"
        raise InvalidData(
            f"all rows whose weight is not zero have the same {what}, so that none can be held "
            f"out; use other weights, or omit {found.kind}."
        )


def _kind(validation: Any, groups: PerRow, time: object, ranks: bool) -> str:
    """Return what the parameter says or, for ``"auto"``, what was passed to the fit."""
    if not isinstance(validation, str):
        refuse_class("validation", validation)
        return "splitter"
    if is_name(validation, "auto"):
        if groups is not None and time is not None and not ranks:
            raise InvalidData(
                "groups and time were both passed; set validation='groups', validation='time', or "
                "a scikit-learn splitter to say which rows are held out."
            )
        return "time" if time is not None else "random" if groups is None else "groups"
    if (validation == "groups" and groups is None) or (validation == "time" and time is None):
        raise InvalidData(
            f"validation={validation!r} requires the {validation} of the rows; pass "
            f"{validation}=... to fit, or set validation='auto'."
        )
    return validation


def check_times(time: object, n: int) -> NDArray[Any]:
    """Return the time of each row, (n,): float64 of numbers, or int64 microseconds of dates."""
    refuse_no_array(time, "time")
    if getattr(getattr(time, "dtype", None), "tz", None) is not None:  # a pandas type
        time = getattr(time, "dt", time).tz_convert(None)  # type: ignore[attr-defined]
    found = np.asarray(without_mask(time))
    check_one_per_row(found, n, "time must hold one value")
    if found.dtype.kind == "O":
        found = _of_objects(found.tolist())
    if found.dtype.kind not in "biufM":
        kind = found.dtype if found.dtype.kind != "O" else type(found[0]).__name__
        raise InvalidData(
            f"time must hold numbers or dates; got {kind}. Convert text by pandas.to_datetime, "
            "periods by to_timestamp() and durations to numbers."
        )
    missing = np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found)
    if missing.any():
        raise InvalidData(
            f"row {int(missing.argmax())} of time is missing or infinite; give every row a time."
        )
    if found.dtype.kind == "M":
        return found.astype(_UNIT).view(np.int64)
    return found.astype(np.float64)


def as_dates_or_numbers(times: NDArray[Any]) -> NDArray[Any]:
    """Return dates for the microseconds of :func:`check_times`, and numbers unchanged."""
    return times.view(_UNIT) if times.dtype == np.int64 else times


def _of_objects(values: list[Any]) -> NDArray[Any]:
    """Return numbers or dates (n,) of objects; the zone of dates that have one becomes UTC."""
    known = [None if is_missing_value(one) else one for one in values]
    if not all(isinstance(one, date | None) for one in known):
        return np.array([np.nan if one is None else one for one in known])
    return np.array([_in_utc(one) for one in known], dtype=_UNIT)


def _in_utc(one: date | None) -> date | None:
    if isinstance(one, datetime) and one.tzinfo is not None:
        return one.astimezone(UTC).replace(tzinfo=None)
    return one


def _duration(name: str, given: Any, times: NDArray[Any]) -> float:
    """Return a duration in the unit of the times; a number is one of days if these are dates."""
    of_dates = times.dtype == np.int64
    if isinstance(given, timedelta | np.timedelta64):
        if not of_dates:
            raise InvalidParameter(
                f"{name} is a duration, but time holds numbers; set a number in their unit."
            )
        microseconds = np.array(given, dtype="timedelta64").astype("timedelta64[us]")
        found = float(microseconds.astype(np.int64))
    else:
        found = real(given) * (_DAY if of_dates else 1)
    if not 0 <= found < np.inf:
        raise InvalidParameter(f"{name} must be a positive duration; got {shown(given)}.")
    return found


def check_half_life(half_life: Any, otherwise: str = "") -> float | None:
    """Return a number of rows, or ``None``."""
    if half_life is None:
        return None
    if not 0 < real(half_life) < np.inf:
        raise InvalidParameter(
            f"half_life must be a positive number of rows{otherwise}; got {shown(half_life)}."
        )
    return float(half_life)


def ages_in_half_lives(half_life: Any, time: object, n: int) -> Floats | None:
    """Ages (n,) of rows before the latest one; ``None`` if they do not matter."""
    if half_life is None:
        if time is not None:
            raise InvalidData(
                "time has no effect on a calibration without half_life; pass half_life=..., the "
                "age at which a row counts half as much, or leave time out."
            )
        return None
    times = np.arange(n, dtype=np.float64) if time is None else check_times(time, n)
    if time is None:
        unit = check_half_life(half_life, ", or a duration if time is passed")
    else:
        unit = _duration("half_life", half_life, times)
    if not unit:
        raise InvalidParameter("half_life is 0; set a positive duration.")
    return np.asarray((times.max() - times) / unit)


def _roles(
    splitter: Any, groups: NDArray[Any] | None, times: NDArray[Any] | None, y: NDArray[Any]
) -> NDArray[np.int8]:
    """Role of each row in each split, (n, k); the splitter sees the rows in the order of time."""
    name, n = type(splitter).__name__, len(y)
    order = np.arange(n) if times is None else np.argsort(times, kind="stable")
    ordered = None if groups is None else groups[order]
    with errors_of("validation"), catch_warnings():
        filterwarnings("ignore", "The groups parameter is ignored")  # it also has other uses
        found = list(splitter.split(order[:, None], y[order], ordered))
        try:
            pairs = [(order[learned][:], order[held][:]) for learned, held in found]
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidData(
                f"{name} must return pairs of arrays of row indices, those of the rows to learn "
                f"from and of those to hold out: {str(error).rstrip('.')}."
            ) from error
    if not pairs:
        raise InvalidData(f"validation={name} returned no splits; set its number of splits.")
    roles = np.zeros((n, len(pairs)), dtype=np.int8)
    for k, (learned, held) in enumerate(pairs):
        if not len(learned) or not len(held):
            what = "learns from" if not len(learned) else "holds out"
            raise InvalidData(
                f"split {k} of validation={name} {what} no rows; use fewer splits, or another "
                "splitter."
            )
        roles[learned, k] = LEARNED
        if roles[held, k].any():
            raise InvalidData(
                f"split {k} of validation={name} learns from rows that it holds out; return "
                "disjoint rows."
            )
        roles[held, k] = HELD
    if ((roles == HELD).sum(axis=1) > 1).any():
        raise InvalidData(
            f"several splits of validation={name} hold out the same row; use a splitter whose "
            "held-out rows are disjoint, such as KFold, GroupKFold or TimeSeriesSplit."
        )
    return roles


def _refuse_cut_groups(roles: NDArray[np.int8], numbers: NDArray[np.int64]) -> None:
    first = np.unique(numbers, return_index=True)[1]
    if (roles != roles[first][numbers]).any():
        raise InvalidData(
            "validation divides the rows of a group, which are ranked together; use a splitter of "
            "whole groups, such as GroupKFold."
        )
