"""Regression, classification, ranking or survival, chosen from the target and the options."""

from typing import TYPE_CHECKING, Any, Literal

from hilboost.cli.errors import UsageError, note

if TYPE_CHECKING:
    import pandas as pd

TaskName = Literal["regression", "classification", "ranking", "survival"]

# An integer target with more distinct values than this is treated as numeric.
MAX_INTEGER_CLASSES = 20


def choose_task(
    column: "pd.Series[Any]",  # the target, without missing values
    requested: Literal["auto"] | TaskName,
    loss: str,  # name of the requested loss, or ""
    group: str | None = None,  # columns of rankings and of survival models
    event: str | None = None,
) -> TaskName:
    """Choose the task, with a note of the reason."""
    for own, option, given in (("ranking", "--group", group), ("survival", "--event", event)):
        if requested == own and given is None:
            raise UsageError(f"--task {own} requires {option} COLUMN.")
        if given is not None and requested not in ("auto", own):
            raise UsageError(f"{option} requires --task {own}; remove {option}, or set the task.")
    if group is not None and event is not None:
        raise UsageError("--group and --event cannot be combined; remove one of them.")
    task, reason = _automatic(column, loss)
    if requested != "auto":
        task, reason = requested, f"--task {requested} was given"
    elif group is not None:
        task, reason = "ranking", "--group was given"
    elif event is not None:
        task, reason = "survival", "--event was given"
    note(f"{task}, because {reason}.")
    return task


def _automatic(column: "pd.Series[Any]", loss: str) -> tuple[TaskName, str]:
    """Choose by the loss, or else by the target; return the reason, too."""
    from pandas.api import types

    from hilboost.losses.registry import classification_losses, regression_losses

    target = f"the target '{column.name}'"
    if loss in regression_losses():
        return "regression", f"--loss {loss} is for regression"
    if loss in classification_losses():
        return "classification", f"--loss {loss} is for classification"
    if types.is_bool_dtype(column):
        return "classification", f"{target} is boolean"
    if not types.is_numeric_dtype(column):
        return "classification", f"{target} is text"
    if not types.is_integer_dtype(column):
        return "regression", f"{target} has decimal numbers"
    n = column.nunique()
    if n <= MAX_INTEGER_CLASSES:
        return (
            "classification",
            f"{target} has {n} distinct integers, at most {MAX_INTEGER_CLASSES}",
        )
    return "regression", f"{target} has {n} distinct integers, more than {MAX_INTEGER_CLASSES}"
