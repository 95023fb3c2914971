"""Columns of rankings and survival models that are no features: groups and events."""

from typing import TYPE_CHECKING, Any

from hilboost.cli.columns import near_names
from hilboost.cli.errors import CliError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["split_aside", "survival_target"]


def split_aside(
    features: "pd.DataFrame", name: str | None, option: str
) -> tuple["pd.DataFrame", "np.ndarray[Any, Any] | None"]:
    """Split the column that an option names from the features, if it names one.

    Parameters
    ----------
    features : pandas.DataFrame
    name : str or None
    option : str
        The option, for error messages.

    Returns
    -------
    features : pandas.DataFrame
        The other columns.
    column : numpy.ndarray of shape (n_rows,) or None
    """
    if name is None:
        return features, None
    if name not in features.columns:
        raise CliError(f"There is no column '{name}' for {option}; {near_names(name, features)}.")
    column, rest = features[name], features.drop(columns=name)
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax()) + 1
        raise CliError(f"Column '{name}' of {option} is empty in data row {row}; fill it in.")
    if rest.shape[1] == 0:
        raise CliError(f"{option} '{name}' leaves no feature column; add at least one feature.")
    return rest, column.to_numpy()


def survival_target(
    time: "np.ndarray[Any, Any]", event: "np.ndarray[Any, Any]", name: str
) -> "np.ndarray[Any, Any]":
    """Join times and events.

    Parameters
    ----------
    time : numpy.ndarray of shape (n_rows,)
    event : numpy.ndarray of shape (n_rows,)
        1 or true where the event has happened at this time, 0 or false where the row is censored.
    name : str
        Name of the event column.

    Returns
    -------
    numpy.ndarray of shape (n_rows,)
        Structured array of events and times.
    """
    import numpy as np

    if not all(value in (0, 1) for value in event.tolist()):
        raise CliError(
            f"The events '{name}' must be 0 and 1, or false and true: 1 where the event has "
            "happened, and 0 where it is only known that it had not happened by then."
        )
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event.astype(bool), time
    return y
