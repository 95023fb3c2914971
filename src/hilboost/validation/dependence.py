"""By what rows are held out: the parameter ``validation``, and ``groups`` and ``time`` of a fit."""

from __future__ import annotations

from datetime import date, timedelta
from numbers import Real
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import HELD, LEARNED, Dependence
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, errors_of, refuse_class, shown
from hilboost.validation.choices import is_name
from hilboost.validation.groups import check_groups

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
    numbers = None if groups is None else _numbers(groups, len(y))
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
        return Dependence(times=times, gap=_gap(gap, times))
    if kind == "groups" and numbers is not None and not ranks:
        if not numbers.any():
            raise InvalidData(
                "groups has a single label, so that no group can be held out; pass at least two "
                "groups, or omit groups."
            )
        return Dependence(numbers)
    return None


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


def _numbers(groups: PerRow, n: int) -> NDArray[np.int64]:
    """Number of the group of each row, (n,), in the order of the sorted labels."""
    return np.unique(check_groups(groups, n), return_inverse=True)[1].astype(np.int64)


def check_times(time: object, n: int) -> NDArray[Any]:
    """Return the time of each row, (n,): float64 of numbers, or int64 microseconds of dates."""
    if getattr(getattr(time, "dtype", None), "tz", None) is not None:  # a pandas type
        time = getattr(time, "dt", time).tz_convert(None)  # type: ignore[attr-defined]
    found = np.asarray(time)
    if found.dtype.kind == "O" and all(isinstance(one, date | None) for one in found.flat):
        found = found.astype(_UNIT)
    if found.dtype.kind not in "biufM":
        raise InvalidData(
            f"time must hold numbers or dates; got {found.dtype}. Convert it, for instance with "
            "pandas.to_datetime."
        )
    if found.shape != (n,):
        raise InvalidData(
            f"time must hold one value for each of the {n} rows of X; got an array of shape "
            f"{found.shape}."
        )
    missing = np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found)
    if missing.any():
        raise InvalidData(
            f"row {int(missing.argmax())} of time is missing or infinite; give every row a time."
        )
    if found.dtype.kind == "M":
        return found.astype(_UNIT).view(np.int64)
    return found.astype(np.float64)


def _gap(gap: Any, times: NDArray[Any]) -> float:
    return 0 if gap is None else _duration("validation_gap", gap, times)


def _duration(name: str, given: Any, times: NDArray[Any]) -> float:
    """Return a duration in the unit of the times; a number is one of days if these are dates."""
    of_dates, is_duration = times.dtype == np.int64, isinstance(given, timedelta | np.timedelta64)
    if is_duration and not of_dates:
        raise InvalidParameter(
            f"{name} is a duration, but time holds numbers; set a number in their unit."
        )
    found = np.timedelta64(given, "us").astype(np.int64) if is_duration else given
    if found < 0:
        raise InvalidParameter(f"{name} is negative; set a positive duration.")
    return int(found if is_duration else given * _DAY) if of_dates else float(given)


def check_half_life(half_life: Any) -> float | None:
    """Return a number of rows, or ``None``."""
    if half_life is None:
        return None
    if not isinstance(half_life, Real) or not 0 < float(half_life) < np.inf:
        raise InvalidParameter(
            "half_life must be a positive number of rows, or a duration if time is passed; got "
            f"{shown(half_life)}."
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
    unit = check_half_life(half_life) if time is None else _duration("half_life", half_life, times)
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
            pairs = [(order[learned], order[held]) for learned, held in found]
        except IndexError as error:
            raise InvalidData(f"{name} returned no indices of rows: {error}.") from error
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
