"""Reading and checking tables, and writing predictions."""

import gzip
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hilboost.cli.csv_safety import open_csv, without_formulas
from hilboost.cli.errors import CliError, note
from hilboost.cli.files import STDIN, check_input
from hilboost.cli.looks import GZIP, HEAD, refuse_other_formats, refuse_other_separators
from hilboost.persistence.atomic import atomic_path

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = [
    "Task",
    "align_columns",
    "choose_task",
    "features_for_fit",
    "near_names",
    "prepare_target",
    "read_table",
    "refuse_text",
    "split_target",
    "split_weights",
    "without_columns",
    "write_table",
]

TaskName = Literal["regression", "classification"]

# An integer target with more distinct values than this is treated as numeric.
MAX_INTEGER_CLASSES = 20
NAMES_SHOWN = 8
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


@dataclass(frozen=True)
class Task:
    """The task, and the reason why it was chosen."""

    name: TaskName
    reason: str


def read_table(path: Path, text: Collection[str] = ()) -> "pd.DataFrame":
    """Read a table with a header and at least one row.

    Parameters
    ----------
    path : Path
        A comma-separated file in UTF-8, optionally compressed (``.csv.gz``), a Parquet file
        (``.parquet``, ``.pq``), or ``-`` for CSV on standard input.
    text : collection of str
        Columns of a CSV file to read as text even if all values look like numbers.

    Returns
    -------
    pandas.DataFrame
        Empty fields are missing values.
    """
    check_input(path)
    frame = _read_parquet(path) if path.suffix in PARQUET_SUFFIXES else _read_csv(path, text)
    if len(frame) == 0:
        raise CliError(f"'{path}' has a header but no rows; add at least one row.")
    frame.columns = frame.columns.astype(str)
    return frame


def _read_parquet(path: Path) -> "pd.DataFrame":
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise CliError(
            f"'{path}' is a Parquet file, which requires pyarrow; install it with "
            "`python -m pip install pyarrow`."
        ) from None
    except (OSError, ValueError) as error:
        detail = str(error).split(". ")[0].rstrip(".")
        raise CliError(f"'{path}' is not a valid Parquet table: {detail}.") from None


def _read_csv(path: Path, text: Collection[str]) -> "pd.DataFrame":
    import pandas as pd

    data = _piped(path)

    head = _head(path) if data is None else data[:HEAD]
    refuse_other_formats(path, head)

    try:
        with open_csv(path, data, head.startswith(GZIP)) as source:
            header = pd.read_csv(source, header=None, nrows=1, dtype=str, keep_default_na=False)
        names = [str(name) for name in header.iloc[0]]
        refuse_other_separators(path, names)
        _refuse_duplicates(path, names)
        with warnings.catch_warnings():
            # pandas only warns when it drops the surplus fields of a row.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            kinds = dict.fromkeys(text, str)
            with open_csv(path, data, head.startswith(GZIP)) as source:
                return pd.read_csv(source, index_col=False, low_memory=False, dtype=kinds)
    except pd.errors.EmptyDataError:
        raise CliError(f"'{path}' is empty; add a header row and data rows.") from None
    except pd.errors.ParserWarning:
        raise CliError(
            f"'{path}' has rows with more fields than its header; remove the extra fields, or add "
            "column names."
        ) from None
    except pd.errors.ParserError as error:
        detail = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise CliError(f"'{path}' is not a valid CSV table: {detail}.") from None
    except UnicodeDecodeError:
        raise CliError(f"'{path}' is not UTF-8 text; save it as CSV in UTF-8.") from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise CliError(f"'{path}' is not a complete gzip file: {error}.") from None


def _piped(path: Path) -> bytes | None:
    """Read all of standard input or of a pipe, which cannot be read twice."""
    if path == STDIN:
        if sys.stdin is None or sys.stdin.closed:
            raise CliError("There is no standard input to read; use the path of a file.")
        return sys.stdin.buffer.read()
    return None if path.is_file() else path.read_bytes()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _refuse_duplicates(path: Path, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise CliError(f"'{path}' has two columns named '{name}'; rename or remove one.")
        seen.add(name)


def split_target(frame: "pd.DataFrame", target: str) -> tuple["pd.DataFrame", "pd.Series[Any]"]:
    """Split a training table into features and target.

    Parameters
    ----------
    frame : pandas.DataFrame
        The training table.
    target : str
        Name of the target column.

    Returns
    -------
    features : pandas.DataFrame
        All other columns.
    target : pandas.Series
        The target, without missing values.
    """
    if target not in frame.columns:
        raise CliError(
            f"There is no column '{target}'; {_near_names(target, list(frame.columns))}."
        )
    features, column = frame.drop(columns=target), frame[target]
    if features.shape[1] == 0:
        raise CliError(f"'{target}' is the only column; add at least one feature column.")
    unnamed = [name for name in features.columns if name.startswith("Unnamed: ")]
    if unnamed:
        place = list(frame.columns).index(unnamed[0]) + 1
        raise CliError(
            f"Column {place} has no name in the header; name it, or remove it if it only contains "
            "row numbers."
        )
    missing = column.isna().to_numpy()
    if missing.any():
        raise CliError(
            f"The target '{target}' is missing in {missing.sum()} of {len(column)} rows (first "
            f"in data row {missing.argmax() + 1}; NA, None, null, and similar words count as "
            "missing); fill in the values or remove these rows."
        )
    return features, column


def without_columns(features: "pd.DataFrame", names: Collection[str]) -> "pd.DataFrame":
    """Drop columns, such as customer numbers.

    Parameters
    ----------
    features : pandas.DataFrame
    names : collection of str

    Returns
    -------
    pandas.DataFrame
    """
    for name in names:
        if name not in features.columns:
            raise CliError(f"There is no feature '{name}' to ignore; {near_names(name, features)}.")
    rest = features.drop(columns=list(names))
    if rest.shape[1] == 0:
        raise CliError("No feature column is left; ignore fewer columns.")
    return rest


def split_weights(
    features: "pd.DataFrame", name: str | None
) -> tuple["pd.DataFrame", "np.ndarray[Any, Any] | None"]:
    """Split the weight column from the features, if there is one.

    Parameters
    ----------
    features : pandas.DataFrame
    name : str or None
        Name of the weight column.

    Returns
    -------
    features : pandas.DataFrame
        The other columns.
    weights : numpy.ndarray of shape (n_rows,) or None
    """
    from pandas.api import types

    if name is None:
        return features, None
    if name not in features.columns:
        raise CliError(
            f"There is no column '{name}' for the weights; {near_names(name, features)}."
        )
    column = features[name]
    if not types.is_numeric_dtype(column) or column.isna().any():
        raise CliError(
            f"The weights '{name}' must be numbers without missing values; fill in the values or "
            "remove the rows."
        )
    rest = features.drop(columns=name)
    if rest.shape[1] == 0:
        raise CliError(f"The weights '{name}' leave no feature column; add at least one feature.")
    return rest, column.to_numpy(dtype=float)


def near_names(wanted: str, frame: "pd.DataFrame") -> str:
    """Suggest columns of a table for a name that it does not have."""
    return _near_names(wanted, list(frame.columns))


def _near_names(wanted: str, names: list[str]) -> str:
    folded = {name.strip().casefold(): name for name in names}
    near = get_close_matches(wanted.strip().casefold(), list(folded), n=3, cutoff=0.5)
    if near:
        return f"similar names are {_listed([folded[name] for name in near])}"
    return f"the columns are {_listed(names)}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


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


def prepare_target(column: "pd.Series[Any]", task: TaskName) -> "np.ndarray[Any, Any]":
    """Convert the target to an array of numbers or class labels.

    Parameters
    ----------
    column : pandas.Series
        The target, without missing values.
    task : {"regression", "classification"}
        The task.

    Returns
    -------
    numpy.ndarray of shape (n_rows,)
        Floats for regression; booleans, numbers, or fixed-width text for classification.
    """
    from pandas.api import types

    if types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float) if task == "regression" else column.to_numpy()
    if task == "classification":
        return column.astype(str).to_numpy(dtype=str)
    row, value = _first_text(column)
    raise CliError(
        f"The target '{column.name}' contains text ('{value}' in data row {row}), which is not "
        "supported in regression; remove the regression --task or --loss, or choose another target."
    )


def features_for_fit(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Convert feature columns for an estimator, in the same way for fit and predict.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns of numbers, booleans, or text.

    Returns
    -------
    pandas.DataFrame
        Numbers and booleans as floats; text unchanged.
    """
    from pandas.api import types

    found: dict[str, Any] = {}
    for name, column in frame.items():
        if types.is_numeric_dtype(column):
            found[str(name)] = column.to_numpy(dtype=float)
        elif types.infer_dtype(column, skipna=True) == "boolean":
            found[str(name)] = column.map({True: 1.0, False: 0.0}).to_numpy(dtype=float)
        else:
            found[str(name)] = column.array
    return type(frame)(found)


def refuse_text(features: "pd.DataFrame", names: Collection[str]) -> None:
    """Reject text in numeric columns.

    Parameters
    ----------
    features : pandas.DataFrame
        As returned by :func:`features_for_fit`.
    names : collection of str
        The numeric columns.
    """
    for name in names:
        column = features[name]
        if column.dtype.kind != "f" and column.notna().any():
            row, value = _first_text(column)
            raise CliError(
                f"Column '{name}' contained numbers (or no values) in fit but contains text now "
                f"('{value}' in data row {row}); replace the text by a number, or leave the field "
                "empty."
            )


def _first_text(column: "pd.Series[Any]") -> tuple[int, str]:
    import pandas as pd

    text = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    position = int(text.to_numpy().argmax())
    value = str(column.iloc[position])
    return position + 1, value if len(value) <= 40 else f"{value[:37]}..."


def align_columns(frame: "pd.DataFrame", names: list[str]) -> tuple["pd.DataFrame", list[str]]:
    """Select the columns of a model, in the order of fit.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with these columns in any order.
    names : list of str
        The columns of the model.

    Returns
    -------
    features : pandas.DataFrame
        The columns of the model.
    extra : list of str
        Names of the other columns.
    """
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise CliError(
            f"{len(missing)} of the {len(names)} columns that the model uses are missing in the "
            f"table; add {_listed(missing)}."
        )
    known = set(names)
    return frame[names], [name for name in frame.columns if name not in known]


def write_table(frame: "pd.DataFrame", path: Path | None, spreadsheet_safe: bool = True) -> None:
    """Write a CSV file atomically, or write to stdout if ``path`` is ``None``.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : Path or None
    spreadsheet_safe : bool
        Prefix text that a spreadsheet would execute with an apostrophe.
    """
    if spreadsheet_safe:
        frame, n_changed = without_formulas(frame)
        if n_changed:
            cells = "1 cell that looks" if n_changed == 1 else f"{n_changed} cells that look"
            note(
                f"added an apostrophe to {cells} like a formula, so that spreadsheets do not "
                "execute it; use --no-spreadsheet-safe to write text unchanged."
            )
    if path is None:
        if sys.stdout is None:
            raise CliError("There is no standard output to write to; specify a file with --out.")
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
