"""Events and times in the forms in which they are passed."""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import (
    DataWarning,
    InvalidData,
    counted,
    first_few,
    first_true,
    shown,
    warn_caller,
    with_article,
)
from hilboost.core.plain_values import is_boolean
from hilboost.tables.arrays import fields_of, refuse_dates_and_complex
from hilboost.tables.reading import as_array, named_columns

FORMS = (
    "y must be a structured array with an event (bool, or the number of its cause) and a time, as "
    "in scikit-survival, a data frame of these two, such as frame[['event', 'time']], or have two "
    "columns, the lower and upper bound of the time"
)
MOST_CAUSES = 100
_USUAL_CAUSES = 10
_FEW = 10  # rows
_TIMES_PER_CAUSE = 3  # different ones, which bounds of times do not have
_MANY = 100
_MOST_CENSORED = 0.95

_NAMES_OF_EVENTS = frozenset({
    "cause", "causes", "cens", "censor", "death", "died", "dead", "delta", "event", "events",
    "failed", "failure", "observed", "relapse", "status",
})  # fmt: skip
_WORDS_OF_EVENTS = frozenset({"1", "dead", "death", "deceased", "died", "event", "true", "yes"})
_WORDS_OF_CENSORING = frozenset({"alive", "censored", "survived"})  # "cens" is an event
_NAMES_OF_TIMES = frozenset({
    "day", "days", "duration", "durations", "hour", "hours", "month", "months", "survtime", "t",
    "time", "times", "tte", "week", "weeks", "year", "years",
})  # fmt: skip
_WORDS_OF_BOUNDS = (("low", "left", "start", "min"), ("upp", "right", "stop", "max"))

Fields = dict[str, NDArray[Any]]


def events_in(y: object) -> tuple[Floats, Floats] | None:
    """Return the times and causes of rows, (n,) each, or ``None`` if ``y`` holds bounds.

    A frame of numbers holds events if a column has the name of events, or a few small whole
    numbers beside many times.
    """
    of_array = fields_of(y)
    columns = named_columns(y) if of_array is None else of_array
    if columns is None:
        return None
    fields = {name: _plain(column, f"y[{name!r}]") for name, column in columns.items()}
    numbers = len(fields) == 2 and all(column.dtype.kind in "iuf" for column in fields.values())
    by_values = numbers and of_array is None
    return None if by_values and not _looks_like_events(fields) else _of_fields(fields)


def _looks_like_events(fields: Fields) -> bool:
    """Whether the numbers in two columns of a data frame are events and times, not bounds."""
    if _by_name(fields) is not None:
        return True
    if all(any(word in name.lower() for name in fields for word in of) for of in _WORDS_OF_BOUNDS):
        return False
    place = _place_of_events(list(fields.values()))
    if place is None:
        return False
    event = list(fields)[place]
    if len(np.unique(fields[event])) == 1 and _next_to_time(fields) != event:
        names = "'time' and 'event'" if place else "'event' and 'time'"
        raise InvalidData(
            f"the columns {' and '.join(map(repr, fields))} of y may be events and times, or "
            f"bounds of times; name them {names}, or 'lower' and 'upper'."
        )
    return True


def _place_of_events(columns: Sequence[NDArray[Any]]) -> int | None:
    """Place of events or causes among two columns (n,), unless these look like bounds of times."""
    if len(columns) != 2:
        return None
    first, second = columns
    if _beside_times(first, second):
        return 0
    return 1 if _beside_times(second, first) and not (first <= second).all() else None


def _beside_times(event: NDArray[Any], time: NDArray[Any]) -> bool:
    """Whether a column holds 0 and 1, or few small whole numbers, and the other one many more."""
    if np.isinf(time).any() or is_zero_one(time) or not _may_be_causes(event, _USUAL_CAUSES):
        return False
    missing = np.isnan(time)
    n_times = len(np.unique(time[~missing]))
    both = _is_both(event) and not missing.any()
    return both or n_times > _TIMES_PER_CAUSE * len(np.unique(event))


def _plain(column: object, what: str) -> NDArray[Any]:
    """Convert objects that are all numbers, as nullable columns become, to an array of them."""
    found = np.asarray(column)
    refuse_dates_and_complex(found, what)
    if found.dtype.kind != "O":
        return found
    plain = np.array(found.tolist()) if len(found) else found
    refuse_dates_and_complex(plain, what)
    return plain if plain.ndim == 1 and plain.dtype.kind in "biuf" else found


def _of_fields(fields: Fields) -> tuple[Floats, Floats]:
    """Times and causes."""
    names = list(fields)
    if len(names) != 2:
        pair = [name for name in names if name.lower() not in ("index", "level_0")]
        advice = f"y[{pair}]" if len(pair) == 2 else "y[['event', 'time']]"
        n_columns = counted(len(names), "column")
        raise InvalidData(f"y has {n_columns}, {first_few(names)}; pass two, such as {advice}.")
    for name, column in fields.items():
        if column.dtype.kind not in "biuf" or column.ndim != 1:
            raise InvalidData(_not_numbers(name, column))
    event = _event_of(fields)
    (time,) = (name for name in names if name != event)
    _refuse_exchanged(event, time, fields)
    causes = _causes(event, fields[event])
    _warn_of_censored(event, causes)
    return fields[time].astype(np.float64), causes


def _warn_of_censored(event: str, causes: Floats) -> None:
    """Warn of names of events, and of few events, that suggest the opposite convention."""
    words = _WORDS_OF_CENSORING & set(re.split("[^a-z]+", event.lower()))
    share = float((causes == 0).mean()) if len(causes) >= _MANY else 0.0
    if causes.max(initial=0) == 1 and (words or share > _MOST_CENSORED):
        what = f"{event!r} sounds otherwise" if words else f"{share:.1%} of the rows are censored"
        warn_caller(
            f"In y, an event is True or 1 and a censored row False or 0, but {what}; if {event!r} "
            f"is 1 for censored rows, pass 1 - y[{event!r}] as the event.",
            DataWarning,
        )


def _refuse_exchanged(event: str, time: str, fields: Fields) -> None:
    """Reject times in the field of events, and warn about times that a conversion made booleans."""
    if _seem_exchanged(fields[event], fields[time]):
        raise InvalidData(
            f"events and times of y seem to be exchanged: {time!r} holds only 0 and 1, and "
            f"{event!r} other numbers; pass the numbers of {event!r} as the times."
        )
    true = fields[event].dtype.kind == "b" and len(fields[event]) >= _FEW and fields[event].all()
    if true and _is_both(fields[time]):
        warn_caller(
            f"All rows of y have an event ({event!r}), and all times ({time!r}) are 0 or 1; if "
            "events and times are exchanged, pass them the other way round.",
            DataWarning,
        )


def _seem_exchanged(event: NDArray[Any], time: NDArray[Any]) -> bool:
    """Whether times (n,) hold only 0 and 1, and events (n,) what looks like times."""
    if event.dtype.kind not in "iuf" or not _is_both(time):
        return False
    causes = (event % 1 == 0) & (event <= _USUAL_CAUSES)
    return bool(not causes.all() or ((event > 0).all() and (event > 1).any()))


def _is_both(column: NDArray[Any]) -> bool:
    """Return whether a column holds both 0 and 1, and nothing else."""
    return len(column) > 0 and is_zero_one(column) and column.min() < column.max()


def events_in_columns(
    first: Floats, second: Floats, intervals: bool
) -> tuple[Floats, Floats] | None:
    """Return the times and causes, (n,) each, in columns of an array; ``None`` if these are bounds.

    Where they could also be bounds of ``intervals``, or the events have no 0 or as many values as
    the times, they are rejected.
    """
    columns = [first, second]
    place = _place_of_events(columns)
    if place is not None:
        event, time = columns[place], columns[1 - place]
        has_both = event.min() == 0 < event.max()
        if has_both and not (intervals or _may_be_causes(time, _USUAL_CAUSES)):
            return _of_fields({"event": event, "time": time})
        names = ["time", "event"] if place else ["event", "time"]
        kind = "bool" if is_zero_one((first, second)[place]) else "int"
        listed = ", ".join(f"({one!r}, {'float' if one == 'time' else kind})" for one in names)
        raise InvalidData(
            f"the columns of y seem to be {names[0]}s and {names[1]}s, not bounds of times; pass "
            f"np.array(list(map(tuple, y)), dtype=[{listed}]), or bounds in a data frame of the "
            "columns 'lower' and 'upper'."
        )
    return None


def _not_numbers(name: str, column: NDArray[Any]) -> str:
    if column.ndim != 1:
        return f"{FORMS}; the field {name!r} of y has the shape {column.shape}."
    bad = [not isinstance(value, bool | int | float) for value in column.tolist()]
    row = int(np.argmax(bad))
    ends = [value for value in set(column.tolist()) if f"{value}".lower() in _WORDS_OF_EVENTS]
    example = f", such as y[{name!r}] == {ends[0]!r}" if len(ends) == 1 else ""
    return (
        f"column {name!r} of y contains text or other objects ({shown(column[row])} in row {row}); "
        f"pass whether there was an event (bool{example}), or the number of its cause from 1 on "
        "and 0 for censored rows, and times as numbers."
    )


def _event_of(fields: Fields) -> str:
    """The name of the event: by its type, the names, or the values that the other cannot have."""
    found = _by_type(fields) or _by_name(fields) or _next_to_time(fields) or _by_values(fields)
    if found is not None:
        return found
    listed = " and ".join(map(repr, fields))
    first = next(iter(fields))
    raise InvalidData(
        f"{FORMS}; it is not clear which of the fields {listed} is the event: name them 'event' "
        f"and 'time', or convert the event, such as frame.astype({{{first!r}: bool}})."
    )


def _by_type(fields: Fields) -> str | None:
    """The only boolean field."""
    return _only([name for name, column in fields.items() if column.dtype.kind == "b"])


def _by_name(fields: Fields) -> str | None:
    """The only field with the name of an event."""
    return _only([name for name in fields if name.lower() in _NAMES_OF_EVENTS])


def _next_to_time(fields: Fields) -> str | None:
    """The field next to the only one with the name of a time."""
    others = [name for name in fields if name.lower() not in _NAMES_OF_TIMES]
    return _only(others) if len(fields) == 2 else None


def _by_values(fields: Fields) -> str | None:
    """The only field of 0 and 1, or the only one of a few whole numbers."""
    zero_one = [name for name, column in fields.items() if is_zero_one(column)]
    if zero_one:
        return _only(zero_one)
    place = _place_of_events(list(fields.values()))
    if place is not None:
        return list(fields)[place]
    return _only([name for name, column in fields.items() if _may_be_causes(column)])


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def is_zero_one(column: NDArray[Any]) -> bool:
    """Return whether a column holds only 0 and 1."""
    return bool(((column == 0) | (column == 1)).all())


def _may_be_causes(column: NDArray[Any], most: int = MOST_CAUSES) -> bool:
    values = column.astype(np.float64)
    inside = (values >= 0) & (values <= most)
    return bool(inside.all() and (values % 1 == 0).all())


def _causes(name: str, column: NDArray[Any]) -> Floats:
    """Number of the cause of the event of each row, (n,); 0 for censored rows."""
    cause = column.astype(np.float64)
    for bad, why in (
        (np.isnan(cause), "is missing; remove the row, or pass 0 if it is censored"),
        (cause < 0, "is negative; causes are numbered from 1 on, and 0 stands for censored rows"),
        (cause % 1 != 0, "is not a whole number; pass 1 for events and 0 for censored rows"),
    ):
        if (row := first_true(bad)) is not None:
            raise InvalidData(f"the event of row {row} of y ({name!r}), {cause[row]:g}, {why}.")
    if cause.max(initial=0) > MOST_CAUSES:
        raise InvalidData(
            f"number the causes of events 1, 2, ..., at most {MOST_CAUSES}; y contains "
            f"{cause.max():.0f} as an event ({name!r})."
        )
    return cause


def refuse_pairs(y: object, n: int) -> None:
    """Reject pairs of events and times in any order, which NumPy would convert to numbers."""
    if not isinstance(y, list | tuple):
        y = np.asarray(as_array(y, "y"))
        if y.dtype.kind != "O":
            return
    found = _columns_of_pairs(y, n)
    if found is None:
        return
    columns, what, rows = found
    fields = {"'event', bool": np.asarray(columns[0]), "'time', float": np.asarray(columns[1])}
    dtype = list(fields)
    if (_by_type(fields) or _by_values(fields)) == dtype[1]:
        dtype.reverse()
    raise InvalidData(
        f"y {what}; pass a structured array, such as np.array({rows}, "
        f"dtype=[({dtype[0]}), ({dtype[1]})])."
    )


def _columns_of_pairs(y: Any, n: int) -> tuple[Sequence[Any], str, str] | None:
    """The two columns, what they are, and how to list their rows."""
    kind = type(y).__name__.removeprefix("nd")
    if kind in ("list", "tuple") and len(y) == 2 and n != 2 and all(np.ndim(v) == 1 for v in y):
        parts = "arrays" if kind == "tuple" else "columns"
        return y, f"is a {kind} of two {parts}", "list(zip(*y))"
    if not len(y) or not all(isinstance(pair, Sized) and len(pair) == 2 for pair in y):
        return None
    columns = list(zip(*y, strict=True))
    if any(map(is_boolean, (*columns[0], *columns[1]))):
        return columns, f"is {with_article(kind)} of events and times", "list(map(tuple, y))"
    return None
