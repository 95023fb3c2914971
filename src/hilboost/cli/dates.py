"""Columns of dates: detected, and converted to columns of calendar numbers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError, note
from hilboost.core.errors import counted, first_few, first_true
from hilboost.tables.number_text import COMPACT_DAY, DATE, MONTH_NAMED, YEAR_LAST

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("year", "month", "day", "weekday", "hour", "days")
"""Calendar numbers of a date; ``days`` counts from 1970."""
ORDERS = ("dmy", "mdy")
"""Orders of day, month and year where the year comes last."""
REMEDY = "use --dates expand for columns of calendar numbers, or --dates text for categories"
"""Advice about ignored columns of dates."""
_SAMPLE = 100
_WITH_OFFSET = r"(:\d\d.*?)\s*[+-]\d\d(:?\d\d)?\s*$"  # from UTC


def date_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns whose values are dates."""
    return [str(name) for name, column in frame.items() if _holds_dates(column)]


def _holds_dates(column: pd.Series[Any]) -> bool:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column):
        return True
    if types.is_bool_dtype(column):
        return False
    sample = column.dropna().head(_SAMPLE)
    if not len(sample):
        return False
    if types.is_numeric_dtype(column):  # all of them, because amounts may look like days
        return all(bool(_parsed(some, None).notna().all()) for some in (sample, column.dropna()))
    sample = sample.astype(str)
    orders = _orders(sample)
    possible = (None,) if orders is None else orders
    return any(bool(_parsed(sample, order).notna().all()) for order in possible)


def _with_dashes(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write days such as 20230115 as 2023-01-15."""
    from pandas.api import types

    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        column = column.where(column % 1 == 0).map("{:.0f}".format, na_action="ignore")
    return column.astype(str).str.replace(COMPACT_DAY, r"\1-\2-\3", regex=True)


def _orders(column: pd.Series[Any]) -> tuple[str, ...] | None:
    """The possible orders of the dates of a column; None if all begin with numbers of years."""
    known = column.dropna().astype(str)
    text = known[known.str.fullmatch(YEAR_LAST)]
    if not len(text):
        return ORDERS[:1] if known.str.fullmatch(MONTH_NAMED).any() else None
    if text.str.contains(r"^\s*\d+\.").all():
        return ("dmy",)
    numbers = text.str.extract(r"(\d+)\D(\d+)").astype(int)
    largest = numbers.max()
    if largest[0] > 12 and largest[1] > 12:
        return ()
    return tuple(order for order, k in zip(ORDERS, (1, 0), strict=True) if largest[k] <= 12)


def _parsed(column: pd.Series[Any], order: str | None) -> pd.Series[Any]:
    """Convert dates, which pandas reads in English, as the local clock; other text is missing."""
    import pandas as pd
    from pandas.api import types

    if types.is_datetime64_any_dtype(column):
        column = column.dt.tz_localize(None)
    else:
        column = _with_dashes(column)
        are_dates = column.str.fullmatch(DATE)
        column = column.str.replace(_WITH_OFFSET, r"\1", regex=True).where(are_dates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that pandas infers
        if order is not None:
            year_first = column.astype(str).str.match(r"\s*\d{4}")
            read = functools.partial(pd.to_datetime, errors="coerce", utc=True, format="mixed")
            others = read(column.where(~year_first), dayfirst=order == "dmy")
            return read(column.where(year_first)).fillna(others)
        for form in ("ISO8601", None):  # None: that of the first value
            found = pd.to_datetime(column, errors="coerce", utc=True, format=form)
            if (found.notna() == column.notna()).all():
                break
        return found


def _order_of(column: pd.Series[Any], given: str | None) -> str | None:
    """Return the order of the dates of a column: that of its values, or else the given one."""
    from pandas.api import types

    orders = None if types.is_datetime64_any_dtype(column) else _orders(column)
    if orders is None:
        return None
    if len(orders) == 1:
        return orders[0]
    example = str(column.dropna().iloc[0])
    if not orders:
        raise CliError(
            f"Column '{column.name}' contains dates with the day first and dates with the month "
            "first; write them as year-month-day."
        )
    if given is None:
        raise CliError(
            f"Dates of column '{column.name}', such as {example}, may have the day or the month "
            "first; add --date-order dmy or --date-order mdy."
        )
    return given


def without_dates(features: pd.DataFrame, dates: list[str], remedy: str = REMEDY) -> pd.DataFrame:
    """Drop columns of dates with a note that ends with a remedy."""
    if dates:
        note(f"ignoring {first_few(dates)}, which contains dates; {remedy}.")
    return features.drop(columns=dates)


def expanded(
    frame: pd.DataFrame,
    names: list[str],
    order: str | None = None,
    used: Collection[str] | None = None,  # features of a model
) -> pd.DataFrame:
    """Replace columns of dates by calendar numbers, such as ``day: month``; others are missing.

    All that a model uses, or without a model, hours only of dates with a time of day.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for name, column in frame.items():
        if name not in names:
            found[str(name)] = column
            continue
        parsed = _parsed(column, _order_of(column, order))
        _note_no_dates(column, parsed)
        date = parsed.dt
        numbers = {
            f"{name}: year": date.year,
            f"{name}: month": date.month,
            f"{name}: day": date.day,
            f"{name}: weekday": date.day_of_week,
            f"{name}: hour": date.hour + date.minute / 60,
            f"{name}: days": (date.normalize() - pd.Timestamp(0, tz="UTC")).dt.days,
        }
        if used is None and not numbers[f"{name}: hour"].any():
            del numbers[f"{name}: hour"]
        found |= {key: number for key, number in numbers.items() if used is None or key in used}
    return pd.DataFrame(found)


def as_times(column: pd.Series[Any], order: str | None = None) -> pd.Series[Any]:
    """Convert a column of ``--time``: numbers stay, and dates become times."""
    from pandas.api import types

    if types.is_numeric_dtype(column):
        return column
    parsed = _parsed(column, _order_of(column, order)).dt.tz_localize(None)
    if (row := first_true(parsed.isna().to_numpy())) is not None:
        raise CliError(
            f"Column '{column.name}' of --time must contain numbers or dates, but data row "
            f"{row + 1} contains '{column.iloc[row]}'; replace it by a date."
        )
    return parsed


def _note_no_dates(column: pd.Series[Any], parsed: pd.Series[Any]) -> None:
    odd = column[parsed.isna() & column.notna()]
    if len(odd):
        values = counted(len(odd), "value")
        note(f"{values} of '{column.name}', such as '{odd.iloc[0]}', are no dates: missing values.")


def used_columns(names: Collection[str]) -> set[str]:
    """Return the features of a model, and the dates whose calendar numbers are among them."""
    split = (name.rpartition(": ") for name in names)
    return {*names, *(date for date, _, part in split if part in PARTS)}


def with_calendar(
    frame: pd.DataFrame, names: Collection[str], order: str | None = None
) -> pd.DataFrame:
    """Expand the columns of dates whose calendar numbers a model uses."""
    dates = [name for name in used_columns(names).difference(names) if name in frame.columns]
    return expanded(frame, dates, order, names) if dates else frame
