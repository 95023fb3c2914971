"""Regression, classification, ranking or survival, chosen from the target and the options."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hilboost.cli.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

TaskName = Literal["regression", "classification", "ranking", "survival"]

# An integer target with more distinct values than this is treated as numeric.
MAX_INTEGER_CLASSES = 20


@dataclass(frozen=True)
class Task:
    """The task, and the reason why it was chosen."""

    name: TaskName
    reason: str


def refuse_offset_of_classes(task: Task, column: "pd.Series[Any]", offset: str | None) -> None:
    """Reject the one column of ``--offset`` for the many outputs of more than two classes."""
    from pandas.api import types

    n_classes = column.nunique()
    if task.name != "classification" or offset is None or n_classes < 3:
        return
    remedy = "remove --offset"
    if types.is_numeric_dtype(column):
        remedy = f"add --loss poisson for counts, or --task regression, or {remedy}"
    raise UsageError(
        f"The target '{column.name}' has {n_classes} classes, but --offset is a single column; "
        f"{remedy}."
    )


def _check_grouping(requested: str, loss: str, group: str | None, event: str | None) -> None:
    """Reject columns of groups and events that do not belong to the task or the loss."""
    from hilboost.losses.registry import ranking_losses, regression_losses, survival_losses

    if group is not None and event is not None:
        raise UsageError(
            "--group, which is for rankings, and --event, which is for survival times, cannot be "
            "combined; remove one of them."
        )
    for own, option, given, losses in (
        ("ranking", "--group", group, ranking_losses()),
        ("survival", "--event", event, survival_losses()),
    ):
        if requested == own and given is None:
            raise UsageError(f"--task {own} requires {option} COLUMN.")
        if given is not None and requested not in ("auto", own):
            raise UsageError(f"{option} requires --task {own}; remove {option}, or set the task.")
        if given is not None and loss in regression_losses() and loss not in losses:
            raise UsageError(
                f"--loss {loss} is for regression; remove {option}, or use a loss of {own}: "
                f"{', '.join(sorted(losses))}."
            )


def choose_task(
    column: "pd.Series[Any]",  # the target, without missing values
    requested: Literal["auto"] | TaskName,  # the requested task
    loss: str,  # name of the requested loss, or ""
    group: str | None = None,  # columns of rankings and of survival models
    event: str | None = None,  # columns of rankings and of survival models
) -> Task:  # the task and the reason
    """Choose between regression, classification, ranking and survival."""
    from pandas.api import types

    from hilboost.losses.registry import (
        classification_losses,
        ranking_losses,
        regression_losses,
        survival_losses,
    )

    name = column.name
    _check_grouping(requested, loss, group, event)
    if requested != "auto":
        return Task(requested, f"--task {requested} was given")
    if group is not None:
        return Task("ranking", "--group was given")
    if event is not None:
        return Task("survival", "--event was given")
    if loss in regression_losses():
        return Task("regression", f"--loss {loss} is for regression")
    if loss in classification_losses():
        if types.is_float_dtype(column) and (column % 1 != 0).any():
            raise UsageError(
                f"--loss {loss} is for classification, but the target '{name}' has decimal "
                "numbers; remove --loss, or use a loss of regression."
            )
        return Task("classification", f"--loss {loss} is for classification")
    for losses, option in ((ranking_losses(), "--group"), (survival_losses(), "--event")):
        if loss in losses:
            raise UsageError(f"--loss {loss} requires {option} COLUMN.")
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
        kind, f"the target '{name}' has {distinct} distinct integers, {word} {MAX_INTEGER_CLASSES}"
    )
