"""Columns that are not features: groups of rankings, events, and offsets."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hilboost.cli.columns import near_names
from hilboost.cli.errors import CliError, UsageError, note

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def split_aside(
    features: "pd.DataFrame", name: str | None, option: str, used: Collection[str] = ()
) -> tuple["pd.DataFrame", "np.ndarray[Any, Any] | None"]:
    """Split the column that an option names from the features, if it names one.

    A group or an offset that is a feature of a fitted model, ``used``, remains a feature.
    """
    if name is None:
        return features, None
    if name not in features.columns:
        raise CliError(f"There is no column '{name}' for {option}; {near_names(name, features)}.")
    if name in used and option == "--event":
        raise CliError(
            f"The model uses the column '{name}' as a feature, so that it cannot contain the "
            "events; choose another column with --event."
        )
    column, rest = features[name], features if name in used else features.drop(columns=name)
    if column.isna().any():
        row = int(column.index[column.isna()][0]) + 1
        raise CliError(f"Column '{name}' of {option} is empty in data row {row}; fill it in.")
    if option == "--offset":
        column = _numbers(column)
    if rest.shape[1] == 0:
        raise CliError(f"{option} '{name}' leaves no feature column; add at least one feature.")
    return rest, column.to_numpy()


def _numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the column of ``--offset`` as numbers."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.isna().any():
        row = int(numbers.index[numbers.isna()][0])
        raise CliError(
            f"Column '{column.name}' of --offset must contain numbers, but data row {row + 1} "
            f"contains '{column[row]}'; replace it by a number."
        )
    return numbers


def check_offset_option(model: Any, name: str | None) -> None:
    """Reject ``--offset`` for models that do not support it; ``name`` is the column, if given."""
    if name is not None and not model.takes_offsets:
        raise UsageError(f"--offset is not supported by {type(model).__name__}; remove it.")


def check_offset_of_fitted(model: Any, name: str | None) -> None:
    """Check ``--offset``, with a note if the model was fitted with offsets and there is none."""
    check_offset_option(model, name)
    if name is None and model.fitted_.beside_offsets:
        note(
            "the model was fitted with --offset, which is not given and counts as zero; add "
            "--offset COLUMN unless that is meant."
        )


def survival_target(
    time: "np.ndarray[Any, Any]", event: "np.ndarray[Any, Any]", name: str, causes: bool = False
) -> "np.ndarray[Any, Any]":
    """Join times (n,) and events (n,): 1, or 0 where censored; or with ``causes`` their numbers."""
    import numpy as np

    from hilboost.validation.event_times import seem_exchanged

    if event.dtype.kind in "OU" and {str(word).lower() for word in event.tolist()} == {"yes", "no"}:
        event = np.array([str(word).lower() == "yes" for word in event.tolist()])
    if seem_exchanged(event, time):
        raise CliError(
            f"The events '{name}' are not 0 and 1, but the times of --target are; exchange "
            "--target and --event."
        )
    if causes and event.dtype.kind in "iuf" and (event % 1 == 0).all() and (event >= 0).all():
        y = np.empty(len(time), dtype=[("cause", int), ("time", float)])
        y["cause"], y["time"] = event.astype(int), time
        return y
    if not all(value in (0, 1) for value in event.tolist()):
        if set(event.tolist()) == {1, 2}:
            raise CliError(
                f"The events '{name}' are 1 and 2, so that no row is censored (0); if 1 means "
                "censored, subtract 1, and if these are two causes, add --loss discrete_hazard."
            )
        raise CliError(
            f"The events '{name}' must be 0 and 1, no and yes, or false and true: 1 where the "
            "event has happened, and 0 where it is only known that it had not happened by then. "
            "With --loss discrete_hazard, they may be the numbers of causes, 1, 2 and so on."
        )
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event.astype(bool), time
    return y
