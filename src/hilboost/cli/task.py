"""Regression or classification, chosen from the target."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Task", "TaskName", "choose_task"]

TaskName = Literal["regression", "classification"]

# An integer target with more distinct values than this is treated as numeric.
MAX_INTEGER_CLASSES = 20


@dataclass(frozen=True)
class Task:
    """The task, and the reason why it was chosen."""

    name: TaskName
    reason: str


def choose_task(
    column: "pd.Series[Any]", requested: Literal["auto", "regression", "classification"], loss: str
) -> Task:
    """Choose between regression and classification.

    Parameters
    ----------
    column : pandas.Series
        The target, without missing values.
    requested : {"auto", "regression", "classification"}
        The requested task.
    loss : str
        Name of the requested loss, or "".

    Returns
    -------
    Task
        The task and the reason.
    """
    from pandas.api import types

    from hilboost.losses.registry import classification_losses, regression_losses

    name = column.name
    if requested != "auto":
        return Task(requested, f"--task {requested} was given")
    if loss in regression_losses():
        return Task("regression", f"--loss {loss} is for regression")
    if loss in classification_losses():
        return Task("classification", f"--loss {loss} is for classification")
    if types.is_bool_dtype(column):
        return Task("classification", f"the target '{name}' is boolean")
    if not types.is_numeric_dtype(column):
        return Task("classification", f"the target '{name}' is text")
    if not types.is_integer_dtype(column):
        return Task("regression", f"the target '{name}' has decimal numbers")
    distinct = column.nunique()
    word = "at most" if distinct <= MAX_INTEGER_CLASSES else "more than"
    kind: TaskName = "classification" if distinct <= MAX_INTEGER_CLASSES else "regression"
    return Task(
        kind,
        f"the target '{name}' has {distinct} distinct integers, {word} {MAX_INTEGER_CLASSES}",
    )
