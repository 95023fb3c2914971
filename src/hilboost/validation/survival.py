"""Validation of survival times."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, InvalidData, shown
from hilboost.tables import as_array
from hilboost.validation.groups import check_groups
from hilboost.validation.targets import check_length

_FORMS = (
    "y must be a structured array with an event (bool, or the number of its cause) and a time, as "
    "in scikit-survival, or have two columns, the lower and upper bound of the time"
)


@dataclass(frozen=True)
class SurvivalLabels:
    """Survival times as the user passed them, with entry times and strata, if there are any."""

    times: Any
    entry: Any = None
    strata: Any = None


def check_times(y: Any, n: int) -> tuple[Floats, Floats, Floats]:
    """Return the lower and upper bounds of the times, and the causes of the events, (n,) each.

    Parameters
    ----------
    y : structured array (n,), or array-like (n, 2)
        Event and time, or lower and upper bounds.
    n : int

    Raises
    ------
    InvalidData
        The times are negative, missing, or not in one of these forms.
    """
    _refuse_pairs(y, n)
    found = np.asarray(as_array(y, "y"))
    check_length(found, n)
    if found.dtype.names is not None:
        lower, upper, cause = _of_events(found)
    else:
        lower, upper = _of_bounds(found)
        cause = np.ones(n)
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


def _refuse_pairs(y: Any, n: int) -> None:
    """Reject lists of events and times, which NumPy would convert to numbers.

    Raises
    ------
    InvalidData
    """
    if not isinstance(y, list | tuple) or not len(y):
        return
    if isinstance(y, tuple) and len(y) == 2 and n != 2:
        what, rows = "is a tuple of two arrays", "list(zip(*y))"
    elif isinstance(y[0], list | tuple) and any(isinstance(v, bool | np.bool_) for v in y[0]):
        what, rows = "is a list of events and times", "list(map(tuple, y))"
    else:
        return
    raise InvalidData(
        f"y {what}; pass a structured array, such as np.array({rows}, "
        "dtype=[('event', bool), ('time', float)])."
    )


def _of_events(y: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Event, or number of its cause, and time, in either order."""
    names = y.dtype.names or ()
    kinds: list[str] = [y.dtype[name].kind for name in names]
    of_event = next((kind for kind in "bui" if kinds.count(kind) == 1), None)
    text = next((name for name in names if y[name].dtype.kind in "OUS"), None)
    if text is not None:
        raise InvalidData(
            f"column {text!r} of y contains text or other objects ({shown(y[text][0])} in row 0); "
            "pass whether there was an event (bool), or the number of its cause from 1 on and 0 "
            "for censored rows."
        )
    if len(names) != 2 or of_event is None or not set(kinds) <= set("biuf"):
        raise InvalidData(f"{_FORMS}; got a structured array of {y.dtype}.")
    place = kinds.index(of_event)
    cause = y[names[place]].astype(np.float64)
    if (cause < 0).any():
        row = int(np.argmax(cause < 0))
        raise InvalidData(
            f"the cause of the event of row {row} of y, {cause[row]:g}, is negative; causes are "
            "numbered from 1 on, and 0 stands for censored rows."
        )
    lower = y[names[1 - place]].astype(np.float64)
    return lower, np.where(cause > 0, lower, np.inf), cause


def _of_bounds(y: NDArray[Any]) -> tuple[Floats, Floats]:
    """Lower and upper bounds; an upper bound may be infinite or NaN."""
    if y.ndim != 2 or y.shape[1] != 2 or y.dtype.kind not in "iuf":
        advice = "" if y.dtype.kind != "O" else " Convert a data frame by to_records(index=False)."
        raise InvalidData(f"{_FORMS}; got an array of shape {y.shape} and dtype {y.dtype}.{advice}")
    lower, upper = y.astype(np.float64).T
    if set(lower.tolist()) == {0.0, 1.0} and np.isfinite(upper).all():
        warnings.warn(
            "the columns of y are lower and upper bounds of the times, and all lower bounds are 0 "
            "or 1; if these are events, pass events and times as a structured array.",
            DataWarning,
            stacklevel=2,
        )
    return lower.copy(), np.where(np.isnan(upper), np.inf, upper)


def _refuse(bad: NDArray[np.bool_], values: Floats, why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidData(f"the time of row {row} of y, {values[row]:g}, {why}.")


def check_at(times: Any) -> Floats:
    """Return the times at which functions are evaluated, (m,).

    Raises
    ------
    InvalidData
        ``times`` is not a list of numbers that are not negative.
    """
    found = np.asarray(as_array(times, "times"))
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise InvalidData(f"times must be a list of numbers; got {shown(times)}.")
    bad = ~(found >= 0)
    if bad.any():
        place = int(np.argmax(bad))
        raise InvalidData(f"times must be 0 or more; number {place} is {found[place]:g}.")
    return found.astype(np.float64)


def check_entry(entry: Any, lower: Floats, n: int) -> Floats:
    """Return entry times, (n,), each before the time of its row.

    Raises
    ------
    InvalidData
    """
    found = np.asarray(as_array(entry, "entry"), dtype=np.float64)
    if found.shape != (n,):
        raise InvalidData(
            f"entry must hold one time for each of the {n} rows of X; got an array of shape "
            f"{found.shape}."
        )
    bad = ~(found >= 0) | ~(found < lower)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidData(
            f"the entry time of row {row}, {found[row]:g}, must be 0 or more and before its time, "
            f"{lower[row]:g}."
        )
    return found


def check_strata(strata: Any, n: int) -> NDArray[Any]:
    """Return the label of the stratum of each row, (n,).

    Raises
    ------
    InvalidData
    """
    try:
        return check_groups(strata, n)
    except InvalidData as error:
        raise InvalidData(f"{error}".replace("groups", "strata")) from error
