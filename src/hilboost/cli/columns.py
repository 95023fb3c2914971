"""Columns of a table: targets, weights, groups, events, offsets, and features."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError, note
from hilboost.core.errors import counted, first_few
from hilboost.tables.schema import fold, meant_columns

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def split_targets(
    frame: "pd.DataFrame", target: str, drop_missing: bool = False
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Split a training table into features and targets; its index holds the rows of the file."""
    names = target_names(target, frame)
    known = rows_with_target(frame[names], drop_missing)
    return frame.drop(columns=names)[known], frame[names][known]


def rows_with_target(targets: "pd.DataFrame", drop_missing: bool) -> "np.ndarray[Any, Any]":
    """Return which rows have a target, (n,); all of them unless some may be dropped."""
    missing = targets.isna().all(axis=1).to_numpy()
    some = f"{missing.sum()} of {counted(len(targets), 'row')}"
    if missing.any() and drop_missing and not missing.all():
        note(f"dropped {some}, which have no target.")
    elif missing.any():
        raise CliError(
            f"The target {first_few(targets.columns)} is missing in {some} (first in data row "
            f"{missing.argmax() + 1}; NA, None, null, and similar words count as missing); fill in "
            "the values, or drop these rows with --drop-missing-target."
        )
    return ~missing


def target_names(target: str, frame: "pd.DataFrame") -> list[str]:
    """Return the columns that ``--target`` names: one, or several, separated by commas."""
    names = [target] if target in frame.columns else target.split(",")
    for name in names:
        require_column(name, frame, "--target")
    if len(set(names)) < len(names):
        raise CliError(f"--target '{target}' names a column twice; name it once.")
    return names


def require_column(name: str, frame: "pd.DataFrame", option: str) -> None:
    """Reject a name that no column has, or that another option has taken from the table."""
    if name in frame.columns:
        return
    advice, names = meant_columns(name, list(frame.columns)), list(map(str, frame.columns))
    if len(names) == 1 and any(mark in names[0] for mark in ",;\t|"):
        advice = f"the only column is {first_few(names)}, so check --sep"
    raise CliError(f"There is no column '{name}' for {option}; {advice}.")


def align_columns(frame: "pd.DataFrame", names: list[str]) -> tuple["pd.DataFrame", list[str]]:
    """Select the columns of a model, in the order of fit; also return the names of others."""
    missing = [name for name in names if name not in frame.columns]
    extra = [name for name in frame.columns if name not in set(names)]
    if missing:
        folded = {fold(name): name for name in extra}
        alike = [f"'{folded[fold(one)]}' to '{one}'" for one in missing if fold(one) in folded]
        advice = f"rename {first_few(alike, str)}: names must match exactly"
        raise CliError(
            f"the table lacks {first_few(missing)}, {len(missing)} of the "
            f"{counted(len(names), 'column')} that the model uses; "
            f"{advice if alike else 'add them'}."
        )
    return frame[names], extra


def split_aside(
    features: "pd.DataFrame", name: str | None, option: str, used: Collection[str] = ()
) -> tuple["pd.DataFrame", "pd.Series[Any] | None"]:
    """Split the column that an option names from the features, if it names one.

    A group, weight or offset that is a feature of a fitted model, ``used``, remains a feature.
    """
    if name is None:
        return features, None
    require_column(name, features, option)
    return features if name in used else features.drop(columns=name), features[name]


def survival_target(time: "pd.Series[Any]", event: "pd.Series[Any]") -> "pd.DataFrame":
    """Join times and events; no and yes become booleans."""
    import pandas as pd

    words = event.astype(str).str.lower()
    event = words == "yes" if set(words) == {"yes", "no"} else event
    return pd.DataFrame({"event": event, "time": time})
