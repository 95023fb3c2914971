"""Columns of dates: detected, and converted to columns of calendar numbers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import note

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTS", "date_columns", "expanded", "with_calendar", "without_dates"]

PARTS = ("year", "month", "day", "weekday", "hour", "days")
"""Calendar numbers of a date; ``days`` counts from 1970."""
_SAMPLE = 100
_LOOKS = r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?\s*"


def date_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns whose values are dates.

    Parameters
    ----------
    frame : pandas.DataFrame

    Returns
    -------
    list of str
    """
    return [str(name) for name, column in frame.items() if _holds_dates(column)]


def _holds_dates(column: pd.Series[Any]) -> bool:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column):
        return True
    if types.is_numeric_dtype(column):
        return False
    sample = column.dropna().head(_SAMPLE).astype(str)
    if not len(sample) or not sample.str.fullmatch(_LOOKS).all():
        return False
    return bool(_parsed(sample).notna().all())


def _parsed(column: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that pandas infers
        for form in ("ISO8601", None):  # None: that of the first value
            found = pd.to_datetime(column, errors="coerce", utc=True, format=form)
            if (found.notna() == column.notna()).all():
                break
        return found


def without_dates(features: pd.DataFrame) -> pd.DataFrame:
    """Drop columns of dates with a note; keep them if no other column would be left.

    Parameters
    ----------
    features : pandas.DataFrame

    Returns
    -------
    pandas.DataFrame
    """
    dates = date_columns(features)
    if not dates or len(dates) == features.shape[1]:
        return features
    listed = ", ".join(f"'{name}'" for name in dates)
    note(
        f"ignoring {listed}, which contains dates; use --dates expand for columns of calendar "
        "numbers, or --dates text for categories."
    )
    return features.drop(columns=dates)


def expanded(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Replace columns of dates by calendar numbers, such as ``day: month``.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : list of str
        The columns of dates.

    Returns
    -------
    pandas.DataFrame
        Missing dates give missing numbers.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for name, column in frame.items():
        if name not in names:
            found[str(name)] = column
            continue
        date = _parsed(column).dt
        found |= {
            f"{name}: year": date.year,
            f"{name}: month": date.month,
            f"{name}: day": date.day,
            f"{name}: weekday": date.day_of_week,
            f"{name}: hour": date.hour + date.minute / 60,
            f"{name}: days": (date.normalize() - pd.Timestamp(0, tz="UTC")).dt.days,
        }
    return pd.DataFrame(found)


def with_calendar(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Expand the columns of dates whose calendar numbers a model uses.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : list of str
        The columns of the model.

    Returns
    -------
    pandas.DataFrame
    """
    wanted = {name.rpartition(": ")[0] for name in names if name.rpartition(": ")[2] in PARTS}
    dates = [name for name in wanted - set(names) if name in frame.columns]
    return expanded(frame, dates) if dates else frame
