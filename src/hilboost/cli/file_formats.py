"""Detection of unsupported file formats, and of numbers stored as text."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.cli.dialect import Dialect
from hilboost.cli.errors import CliError

if TYPE_CHECKING:
    import pandas as pd

HEAD = 8
"""Number of bytes that identify a file format."""
GZIP = b"\x1f\x8b"
_FORMATS = (
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook; save the sheet as CSV in UTF-8"),
    (b"PK\x03\x04", "an Excel workbook or another archive; save the sheet as CSV in UTF-8"),
    (b"\xff\xfe", "UTF-16 text; use --encoding utf-16"),
    (b"\xfe\xff", "UTF-16 text; use --encoding utf-16"),
)
_REMEDIES = {
    "numbers with commas": (
        "contain commas",
        "use decimal points and no thousands separators, or pass --decimal , or --thousands ,",
    ),
    "numbers with units": ("have percent signs or units", "remove these"),
}
_WORDS_NAMED = 3  # in the options of a remedy
PART_OF_NUMBERS = 0.5
"""Least part of numbers in a column of numbers that came as text."""


def refuse_other_formats(path: Path, head: bytes) -> None:
    """Reject files that start like another format than CSV.

    ``head``: the first :data:`HEAD` bytes.
    """
    if path.suffix == ".zip":  # contains one CSV file
        return
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b'{"', b"[{")):
        raise CliError(f"'{path}' is JSON; save the table as CSV in UTF-8.")
    for start, what in _FORMATS:
        if head.startswith(start):
            raise CliError(f"'{path}' is {what}.")


def numbers_as_text(features: "pd.DataFrame", chosen: bool = False) -> Iterator[tuple[str, str]]:
    """Yield columns of text that contain mostly numbers, with notes; reject nearly numeric ones.

    ``features``: input of an estimator: all columns that are not floats are text. ``chosen``:
    whether the user has chosen the category columns, so that none is rejected.
    """
    from hilboost.tables import written_as

    for name, column in features.items():
        if column.dtype.kind == "f":
            continue
        texts, n_text, n = text_among_numbers(column)
        form = written_as(column.dropna().unique())
        if form in _REMEDIES:
            row, value = first_of(column, texts)
            why, remedy = _REMEDIES[form]
            yield (
                str(name),
                f"column '{name}' is treated as categorical because its numbers {why} ('{value}' "
                f"in data row {row}); {remedy}.",
            )
            continue
        if not chosen:
            refuse_words(column, "Column", "name it in --set categorical_features")
        if 0 < n_text < PART_OF_NUMBERS * n:
            row, value = first_of(column, texts)
            yield (
                str(name),
                f"column '{name}' is treated as categorical because {n_text} of its {n} values "
                f"are text ('{value}' in data row {row}); the others are numbers (see --missing "
                "and --coerce).",
            )


def refuse_words(column: "pd.Series[Any]", what: str, otherwise: str) -> None:
    """Reject a column of text that is numeric but for a few words.

    ``what``: what the column is, such as ``"Column"``. ``otherwise``: another remedy than to read
    the words as missing.
    """
    from pandas.api import types

    from hilboost.tables import words_among_numbers, words_told

    if types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column):
        return
    counts = column.value_counts()
    n = int(counts.sum())
    words = words_among_numbers(zip(counts.index.astype(str), counts.tolist(), strict=True), n)
    if not words:
        return
    row, value = first_of(column, words)
    texts = column.astype(str)
    raise CliError(
        f"{what} '{column.name}' {words_told(words, n, value, f'data row {row}')}; read them as "
        f"missing with {as_missing(texts[texts.isin(set(words))])}, or {otherwise}."
    )


def as_missing(words: "pd.Series[Any]") -> str:
    """Return the options that read words as missing, with the first few of them."""
    distinct = words.drop_duplicates().tolist()
    named = " ".join(f'--missing "{_shortened(word)}"' for word in distinct[:_WORDS_NAMED])
    return f"{named} or --coerce" if len(distinct) <= _WORDS_NAMED else f"{named} …, or --coerce"


def text_among_numbers(column: "pd.Series[Any]") -> tuple["pd.Series[Any]", int, int]:
    """Return the distinct texts that are not numbers, their count, and the number of values."""
    import pandas as pd

    counts = column.value_counts()
    levels, weights = pd.Series(counts.index.astype(str)), counts.to_numpy()
    text = pd.to_numeric(levels, errors="coerce").isna().to_numpy()
    return levels[text], int(weights[text].sum()), int(weights.sum())


def ungrouped(column: "pd.Series[Any]", dialect: Dialect) -> "pd.Series[Any]":
    """Remove thousands separators from the numbers among texts, and write decimal points."""
    if dialect.thousands is None:
        return column
    mark, decimal = re.escape(dialect.thousands), re.escape(dialect.decimal_mark or ".,")
    grouped = rf"\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}"
    numbers = {
        text: text.replace(dialect.thousands, "").replace(",", ".")
        for text in map(str, column.dropna().unique())
        if re.fullmatch(rf"\s*[+-]?({grouped}|\d+)([{decimal}]\d*)?\s*", text)
    }
    return column.map(lambda text: numbers.get(text, text), na_action="ignore")


def first_of(column: "pd.Series[Any]", levels: Iterable[str]) -> tuple[int, str]:
    """Return the first row (counted from 1) with one of the levels, and its value."""
    row = int(column.astype(str).isin(set(levels)).to_numpy().argmax())
    return row + 1, _shortened(str(column.iloc[row]))


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
