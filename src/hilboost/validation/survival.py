"""Validation of survival times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, first_true, shown
from hilboost.tables.reading import as_array, named_columns
from hilboost.validation.choices import check_one_per_row
from hilboost.validation.event_times import FORMS, events_in, events_in_columns, refuse_pairs
from hilboost.validation.groups import check_groups
from hilboost.validation.targets import check_length
from hilboost.validation.weights import as_numbers


@dataclass(frozen=True)
class SurvivalLabels:
    """Survival times as the user passed them, with entry times and strata, if there are any."""

    times: Any
    entry: Any = None
    strata: Any = None


def check_times(y: object, n: int, intervals: bool = True) -> tuple[Floats, Floats, Floats]:
    """Return the lower and upper bounds of the times, and the causes of the events, (n,) each.

    ``intervals`` says whether the bounds may differ.
    """
    events = events_in(y)
    if events is None:
        refuse_pairs(y, n)
        lower, upper = _of_bounds(np.asarray(as_array(y, "y")))
        if named_columns(y) is None:
            events = events_in_columns(lower, upper, intervals)
        upper = np.where(np.isnan(upper), np.inf, upper)
        cause = np.ones(len(lower))
    if events is not None:
        lower, cause = events
        upper = np.where(cause > 0, lower, np.inf)
    check_length(lower, n)
    _refuse(np.isnan(lower), lower, "is missing; remove the row, or pass its lower bound")
    _refuse(~np.isfinite(lower), lower, "is infinite; a lower bound must be finite")
    _refuse(lower < 0, lower, "is negative; times must be 0 or more")
    _refuse(
        upper < lower,
        upper,
        "is an upper bound below the lower one; exchange them, or pass events and times as a "
        "structured array",
    )
    return lower, upper, cause


def refuse_times_of_zero(lower: Floats, upper: Floats) -> None:
    """Reject bounds, (n,) each, if all times are 0, so that no row has been observed."""
    if not lower.any() and not upper[np.isfinite(upper)].any():
        raise InvalidData(
            "all times of y are 0, so that no row was observed for any time; pass the time from "
            "the start of the observation of each row until its event or its end."
        )


def _of_bounds(y: NDArray[Any]) -> tuple[Floats, Floats]:
    """Lower and upper bounds, as passed; an upper bound may be infinite or NaN."""
    if y.ndim != 2 or y.shape[1] != 2 or y.dtype.kind not in "iuf":
        got = f"got an array of shape {y.shape} and dtype {y.dtype}."
        if y.ndim == 1:
            got += " Pass events and times together as y: the third argument is sample_weight."
        raise InvalidData(f"{FORMS}; {got}")
    lower, upper = y.astype(np.float64).T
    return lower.copy(), upper.copy()


def _refuse(bad: NDArray[np.bool_], values: Floats, why: str) -> None:
    if (row := first_true(bad)) is not None:
        raise InvalidData(f"the time of row {row} of y, {values[row]:g}, {why}.")


def check_at(times: object) -> Floats:
    """Return the times at which functions are evaluated, (m,)."""
    found = np.asarray(times if np.isscalar(times) else as_array(times, "times"))
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iuf":
        raise InvalidData(f"times must be a list of one or more numbers; got {shown(times)}.")
    if (place := first_true(~(found >= 0))) is not None:
        raise InvalidData(f"times must be 0 or more; number {place} is {found[place]:g}.")
    return found.astype(np.float64)


def check_entry(entry: PerRow, lower: Floats, n: int) -> Floats:
    """Return entry times, (n,), each before the time of its row."""
    found = as_numbers(np.asarray(as_array(entry, "entry")), "entry")
    check_one_per_row(found, n, "entry must hold one time")
    if (row := first_true(~(found >= 0) | ~(found < lower))) is not None:
        raise InvalidData(
            f"the entry time of row {row}, {found[row]:g}, must be 0 or more and before its time, "
            f"{lower[row]:g}."
        )
    return found


def check_strata(strata: PerRow, n: int) -> NDArray[Any]:
    """Return the label of the stratum of each row, (n,)."""
    try:
        return check_groups(strata, n)
    except InvalidData as error:
        raise InvalidData(f"{error}".replace("groups", "strata")) from error
