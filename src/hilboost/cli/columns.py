"""Columns of a table: targets, weights, groups, events, offsets, and features."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError, UsageError, note
from hilboost.cli.number_text import REMEDIES, as_missing, cause_of, first_of, reading_options
from hilboost.cli.task import TaskName
from hilboost.core.errors import counted, first_few
from hilboost.tables.number_text import NUMBER_WITH_UNIT, written_as
from hilboost.tables.schema import fold, meant_columns

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MANY_CLASSES = 100


def split_targets(
    frame: "pd.DataFrame", target: str, drop_missing: bool = False
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Split a training table into features and targets; its index holds the rows of the file."""
    names = target_names(target, frame)
    features, targets = frame.drop(columns=names), frame[names]
    if features.shape[1] == 0:
        only = "is the only column" if len(names) == 1 else "are the only columns"
        raise CliError(f"{first_few(names)} {only}; add at least one feature column.")
    unnamed = [name for name in features.columns if name.startswith("Unnamed: ")]
    if unnamed:
        place = list(frame.columns).index(unnamed[0]) + 1
        raise CliError(
            f"Column {place} has no name in the header; name it, or remove it if it only contains "
            "row numbers."
        )
    remark = "; NA, None, null, and similar words count as missing"
    known = rows_with_target(targets, drop_missing, remark)
    return features[known], targets[known]


def rows_with_target(
    targets: "pd.DataFrame", drop_missing: bool, remark: str = ""
) -> "np.ndarray[Any, Any]":
    """Return which rows have a target, (n,); all of them unless some may be dropped."""
    missing = targets.isna().all(axis=1).to_numpy()
    some = f"{missing.sum()} of {counted(len(targets), 'row')}"
    if missing.any() and drop_missing and not missing.all():
        note(f"dropped {some}, which have no target.")
    elif missing.any():
        raise CliError(
            f"The target {first_few(targets.columns)} is missing in {some} (first in data row "
            f"{missing.argmax() + 1}{remark}); fill in the values, or drop these rows with "
            "--drop-missing-target."
        )
    return ~missing


def target_names(target: str, frame: "pd.DataFrame") -> list[str]:
    """Return the columns that ``--target`` names: one, or several, separated by commas."""
    names = [target] if target in frame.columns else target.split(",")
    for name in names:
        if name not in frame.columns:
            raise CliError(f"There is no column '{name}'; {near_names(name, frame)}.")
    if len(set(names)) < len(names):
        raise CliError(f"--target '{target}' names a column twice; name it once.")
    return names


def without_columns(features: "pd.DataFrame", names: Collection[str]) -> "pd.DataFrame":
    """Drop columns, such as customer numbers."""
    for name in names:
        if name not in features.columns:
            raise CliError(f"There is no feature '{name}' to ignore; {near_names(name, features)}.")
    rest = features.drop(columns=list(names))
    if rest.shape[1] == 0:
        raise CliError("No feature column is left; ignore fewer columns.")
    return rest


def near_names(wanted: str, frame: "pd.DataFrame") -> str:
    """Suggest columns of a table for a name that it does not have."""
    names = list(frame.columns)
    if len(names) == 1 and any(mark in names[0] for mark in ",;\t|"):
        return f"the only column is {first_few(names)}, so check --sep"
    several = wanted.split(",")
    if len(several) > 1 and set(several) <= set(names):
        return f"name {first_few(several)} one at a time, and repeat the option"
    return meant_columns(wanted, names)


def prepare_targets(targets: "pd.DataFrame", task: TaskName) -> Any:
    """Convert one target to an array of numbers or class labels, and several to a data frame."""
    prepared = {name: _prepared(targets[name], task) for name in targets}
    if len(prepared) == 1:
        return prepared[targets.columns[0]]
    return type(targets)(prepared, index=targets.index)


def _prepared(column: "pd.Series[Any]", task: TaskName) -> "np.ndarray[Any, Any]":
    """Convert a target to floats, or for classification to booleans, numbers or text."""
    from pandas.api import types

    if types.is_numeric_dtype(column):
        return column.to_numpy() if task == "classification" else column.to_numpy(dtype=float)
    if task == "classification":
        return column.astype(str).to_numpy(dtype=str)
    row, value = _first_text(column)
    remedy = f"which is not supported in {task}; convert it to numbers, or choose another target"
    cause = cause_of(column)
    if cause is not None:
        remedy = f"but {task} requires numbers; {cause.remedy}"
        if cause.form is None or cause.form.words:
            remedy += ", and drop the rows with --drop-missing-target"
    elif re.fullmatch(NUMBER_WITH_UNIT, value):
        remedy = f"but {task} requires numbers; {REMEDIES['numbers with units']}"
    raise CliError(
        f"The target '{column.name}' contains text ('{value}' in data row {row}), {remedy}."
    )


def check_classes(column: "pd.Series[Any]", chosen: bool) -> None:
    """Reject numbers with commas and, unless the task was chosen, names; note very many classes."""
    from pandas.api import types

    n, n_classes = len(column), column.nunique()
    text = not types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    cause = cause_of(column) if text else None
    form = None if cause is None else cause.form
    if form is not None and form.name == "numbers with separators":
        raise CliError(f"The target '{column.name}' is text because {cause}.")
    are_many = n_classes > 2 and n_classes > n / 2
    if text and are_many and not chosen:
        raise CliError(
            f"The target '{column.name}' is text with {n_classes} different values in {n} rows; "
            "choose another target, convert it to numbers, or add --task classification if these "
            "are classes."
        )
    if n_classes > MANY_CLASSES or are_many:
        remedy = "convert text to numbers for regression" if text else "use --task regression"
        if cause is not None:
            remedy = f"it is text because {cause}"
        note(
            f"the target '{column.name}' has {n_classes} classes in {n} rows, which takes long and "
            f"predicts little if it is not meant as a class; {remedy}."
        )


def features_for_fit(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Convert feature columns for an estimator, in the same way for fit and predict."""
    from pandas.api import types

    found: dict[str, Any] = {}
    for name, column in frame.items():
        if types.is_numeric_dtype(column):
            found[str(name)] = column.to_numpy(dtype=float)
        elif types.infer_dtype(column, skipna=True) == "boolean":
            found[str(name)] = column.map({True: 1.0, False: 0.0}).to_numpy(dtype=float)
        else:
            found[str(name)] = column.array
    return type(frame)(found, index=frame.index)


def refuse_text(features: "pd.DataFrame", names: Collection[str]) -> None:
    """Reject text in numeric columns."""
    for name in names:
        column = features[name]
        if column.dtype.kind != "f" and column.notna().any():
            row, value = _first_text(column)
            texts = column[_is_text(column)]
            if not len(texts):
                remedy = "read it as a number with --coerce"
            elif written_as(value) == "numbers with separators":
                remedy = f"pass {reading_options(texts)}"
            else:
                missing = as_missing(texts)
                remedy = f"replace the text by a number, or read it as missing with {missing}"
            raise CliError(
                f"Column '{name}' contained numbers (or no values) in fit but contains text now "
                f"('{value}' in data row {row}); {remedy}."
            )


def _is_text(column: "pd.Series[Any]") -> "pd.Series[bool]":
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").isna() & column.notna()


def _first_text(column: "pd.Series[Any]") -> tuple[int, str]:
    texts = _is_text(column)
    return first_of(column, column[texts if texts.any() else column.notna()][:1].astype(str))


def align_columns(frame: "pd.DataFrame", names: list[str]) -> tuple["pd.DataFrame", list[str]]:
    """Select the columns of a model, in the order of fit."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        folded = {fold(name): name for name in frame.columns if name not in names}
        pairs = [(folded.get(fold(name)), name) for name in missing]
        renamed = [f"'{old}' to '{new}'" for old, new in pairs if old is not None]
        others = [new for old, new in pairs if old is None]
        advice = f"add {first_few(others)}" if others else ""
        if renamed:
            advice += " and " if others else ""
            advice += f"rename {first_few(renamed, str)}: names must match exactly"
        raise CliError(
            f"the table lacks {len(missing)} of the {counted(len(names), 'column')} that the model "
            f"uses; {advice}."
        )
    known = set(names)
    return frame[names], [name for name in frame.columns if name not in known]


def split_aside(
    features: "pd.DataFrame", name: str | None, option: str, used: Collection[str] = ()
) -> tuple["pd.DataFrame", "np.ndarray[Any, Any] | None"]:
    """Split the column that an option names from the features, if it names one.

    A group, weight or offset that is a feature of a fitted model, ``used``, remains a feature.
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
    if option in ("--offset", "--weights"):
        column = _numbers(column, option)
    if rest.shape[1] == 0:
        raise CliError(f"{option} '{name}' leaves no feature column; add at least one feature.")
    return rest, column.to_numpy()


def _numbers(column: "pd.Series[Any]", option: str) -> "pd.Series[Any]":
    """Return the column of an option as numbers."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.isna().any():
        row = int(numbers.index[numbers.isna()][0])
        raise CliError(
            f"Column '{column.name}' of {option} must contain numbers, but data row {row + 1} "
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

    if event.dtype.kind in "OU" and {str(word).lower() for word in event.tolist()} == {"yes", "no"}:
        event = np.array([str(word).lower() == "yes" for word in event.tolist()])
    causes = causes and event.dtype.kind in "iuf"
    if not causes and not all(value in (0, 1) for value in event.tolist()):
        raise CliError(
            f"The events '{name}' must be 0 and 1, no and yes, or false and true: 1 where the "
            "event has happened, and 0 where it is only known that it had not happened by then. "
            "Subtract 1 from events that are 1 and 2, as in R; exchange --target and --event if "
            "these are times; with --loss discrete_hazard, they may be the numbers of causes."
        )
    kind: Any = ("cause", float) if causes else ("event", bool)
    y = np.empty(len(time), dtype=[kind, ("time", float)])
    y[kind[0]], y["time"] = event, time
    return y
