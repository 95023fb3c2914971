"""Numbers in columns of text: notes, errors, and the options that read them."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hilboost.cli.dialect import Dialect
from hilboost.cli.errors import CliError, note
from hilboost.cli.task import MAX_INTEGER_CLASSES
from hilboost.tables.number_text import SEPARATED_NUMBER, Form, form_of

if TYPE_CHECKING:
    import pandas as pd

_SPACES = " \u00a0\u202f"
_MOST_WORDS = 0.5  # part of the values of a column of numbers
_MANY_CLASSES = 100


def form_of_column(column: "pd.Series[Any]") -> Form | None:
    """Return how the numbers or dates of a column of text are written, if it has any."""
    if not _is_text(column):
        return None
    counts = column.value_counts()
    return form_of(zip(counts.index.astype(str), counts.tolist(), strict=True))


def _is_text(column: "pd.Series[Any]") -> bool:
    from pandas.api import types

    return bool(types.is_object_dtype(column) or types.is_string_dtype(column))


def refuse_few_words(features: "pd.DataFrame", chosen: Collection[str]) -> None:
    """Reject columns with a few words among numbers, unless chosen as categories."""
    for name, column in features.items():
        form = None if name in chosen else form_of_column(column)
        if form is not None and form.name == "numbers" and form.has_few_words:
            words = column[column.astype(str).isin(form.words)]
            raise CliError(
                f"{len(words)} of the {form.n_values} values of column '{name}' "
                f"({_first(words)}) are not numbers; read the text as missing with "
                f"--missing '{words.iloc[0]}' or --coerce, or name the column in --set "
                "categorical_features."
            )


def _first(values: "pd.Series[Any]") -> str:
    return f"'{values.iloc[0]:.40}' in data row {values.index[0] + 1}"


def check_classes(column: "pd.Series[Any]", chosen: bool) -> None:
    """Reject text that is probably not meant as classes, unless they were chosen; note very many.

    Numbers with separators are never classes.
    """
    n, n_classes, form = len(column), column.nunique(), form_of_column(column)
    are_many = n_classes > 2 and n_classes > n / 2
    are_numbers = form is not None and form.name != "dates"
    separated = form is not None and form.name == "numbers with separators"
    if are_numbers and not separated and n_classes <= MAX_INTEGER_CLASSES:
        are_numbers = bool(form and form.name == "numbers" and form.words)
    if (separated or not chosen) and (are_numbers or (are_many and _is_text(column))):
        what = f" of {form.name}" if form is not None else ""
        or_classes = "" if separated else ", or add --task classification if these are classes"
        raise CliError(
            f"The target '{column.name}' is text{what} with {n_classes} different values in {n} "
            f"rows ({_first(column)}); read it with --thousands, --decimal, --missing or --coerce, "
            f"convert it to numbers, or choose another target{or_classes}."
        )
    if n_classes > _MANY_CLASSES or are_many:
        note(
            f"the target '{column.name}' has {n_classes} classes in {n} rows, which takes long and "
            "predicts little if it is not meant as a class; use --task regression, which requires "
            "numbers."
        )


def read_as_told(frame: "pd.DataFrame", text: Collection[str], dialect: Dialect) -> "pd.DataFrame":
    """Read words for missing values and thousands as told, and text in columns of numbers."""
    import pandas as pd

    for name, column in frame.items():
        if not _is_text(column):
            continue
        read = ungrouped(column.mask(column.isin(dialect.missing), None), dialect)
        frame[name] = read
        numbers = pd.to_numeric(read, errors="coerce")
        words = read[numbers.isna() & read.notna()]
        if name in text or not (words.empty or dialect.coerce):
            continue
        if words.empty:
            form = form_of_column(read) if dialect.coerce else None  # none of codes such as 007
            if form is None and read.equals(column):
                continue
        elif len(words) >= _MOST_WORDS * read.notna().sum():
            continue
        else:
            _note_coerced(words, int(read.notna().sum()))
        frame[name] = numbers
    return frame


def _note_coerced(words: "pd.Series[Any]", n: int) -> None:
    """Print a note about text that is read as missing, unless it is numbers with separators."""
    separated = words[words.str.fullmatch(SEPARATED_NUMBER)]
    if len(separated):
        raise CliError(
            f"--coerce would read numbers such as {_first(separated)} of column '{words.name}' as "
            "missing; also pass --thousands or --decimal."
        )
    note(
        f"reading {len(words)} of the {n} values of '{words.name}' as missing, such as "
        f"{_first(words)}."
    )


def ungrouped(column: "pd.Series[Any]", dialect: Dialect) -> "pd.Series[Any]":
    """Remove thousands separators from the numbers among texts, and write decimal points."""
    if dialect.thousands is None and dialect.decimal != ",":
        return column
    marks = _SPACES if (dialect.thousands or ".") in _SPACES else dialect.thousands
    mark, decimal = rf"[{re.escape(marks or '')}\0]", re.escape(dialect.decimal_mark or ".,")
    grouped = rf"\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}"
    numbers = {
        text: re.sub(mark, "", text).replace(",", ".")
        for text in map(str, column.dropna().unique())
        if re.fullmatch(rf"\s*[+-]?({grouped}|\d+)([{decimal}]\d*)?\s*", text)
    }
    return column.map(lambda text: numbers.get(text, text), na_action="ignore")
