"""Numbers and dates in columns of text: notes, errors, and the options that read them."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hilboost.cli.dialect import Dialect
from hilboost.cli.errors import CliError, note
from hilboost.tables.number_text import SEPARATED_NUMBER, Form, Written, form_of, written_as

if TYPE_CHECKING:
    import pandas as pd

_ONLY_READ_BY = {  # options, and numbers that only this option reads
    "--thousands ,": r"\d+(,\d+)+\.\d*|\d+(,\d+){2,}",
    "--thousands .": r"\d+(\.\d+)+,\d+|\d+(\.\d+){2,}",
    '--thousands "\'"': r"\d+('\d+)+([.,]\d*)?",
    '--thousands "’"': r"\d+(’\d+)+([.,]\d*)?",
    '--thousands " "': r"\d+([ \u00a0\u202f]\d+)+([.,]\d*)?",
    "--decimal ,": r"(0\d*|\d{4,}),\d+|\d+,(\d{1,2}|\d{4,})",
}
REMEDIES: dict[Written, str] = {
    "numbers with units": "remove the units",
    "numbers with marks": "replace parentheses by minus signs, and remove other marks",
    "times": "convert them to numbers, such as seconds",
}
_SPACES = " \u00a0\u202f"
_WORDS_NAMED = 3  # in the options of a remedy
_MOST_TEXT = 0.5  # part of the values of a column of numbers


@dataclass(frozen=True)
class Cause:
    """Why a column with numbers or dates is text, and what to do, as parts of a sentence."""

    why: str
    remedy: str
    form: Form | None  # ``None`` if many of its values are words

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


def numbers_as_text(
    features: "pd.DataFrame", chosen: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield columns of text that contain mostly numbers, with notes; reject nearly numeric ones.

    None of the ``chosen`` category columns is rejected.
    """
    for name, column in features.items():
        cause = None if column.dtype.kind == "f" else cause_of(column)
        if cause is None:
            continue
        form = cause.form if cause.form is not None and name not in chosen else None
        if form is not None and form.name == "numbers" and form.has_few_words:
            raise CliError(
                f"Column '{name}' is text because {cause}, or name it in --set "
                "categorical_features."
            )
        yield str(name), f"column '{name}' is treated as categorical because {cause}."


def cause_of(column: "pd.Series[Any]") -> Cause | None:
    """Say why a column is not read as numbers or dates, if it contains mostly these."""
    form = form_of_column(column)
    if form is None:
        return _words_among_numbers(column)
    if form.name == "numbers" and not form.words:
        row, value = first_of(column, column.dropna()[:1].astype(str))
        why = f"its numbers are written as text ('{value}' in data row {row})"
        return Cause(why, "read them with --coerce", form)
    causes, remedies = [], []
    texts = column.dropna().astype(str)
    if form.name not in ("numbers", "dates"):
        row, value = example_of(form, column)
        what = "values are times" if form.name == "times" else form.name.replace("with", "have")
        causes.append(f"its {what} ('{value}' in data row {row})")
        remedies.append(REMEDIES.get(form.name) or f"pass {reading_options(texts)}")
    if form.words:
        row, value = first_of(column, form.words)
        other = "dates" if form.name == "dates" else "numbers"
        number = f"{sum(form.words.values())} of its {form.n_values} values"
        causes.append(f"{number} ('{value}' in data row {row}) are not {other}")
        coerced = form.name in ("numbers", "numbers with separators")
        missing = as_missing(texts[texts.isin(form.words)], coerced)
        remedies.append(f"read the text as missing with {missing}")
    return Cause(" and ".join(causes), " and ".join(remedies), form) if causes else None


def _words_among_numbers(column: "pd.Series[Any]") -> Cause | None:
    """Say that some values are text, if less than half."""
    from pandas.api import types

    if types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column):
        return None
    counts, n = texts_among_numbers(column)
    separated = counts.index.str.fullmatch(SEPARATED_NUMBER)
    words = counts[~separated]
    if not 0 < words.sum() < _MOST_TEXT * n:
        return None
    row, value = first_of(column, words.index)
    options = "--missing, --coerce, and --thousands" if any(separated) else "--missing and --coerce"
    why = f"{words.sum()} of its {n} values ('{value}' in data row {row}) are not numbers"
    return Cause(why, f"see {options}", None)


def example_of(form: Form, column: "pd.Series[Any]") -> tuple[int, str]:
    """Return the first row (counted from 1) with a number of this form, and its value."""
    numbers = [text for text in map(str, column.dropna().unique()) if text not in form.words]
    marked = next((text for text in numbers if written_as(text) is None), numbers[0])
    telling = next((text for text in numbers if written_as(text) == form.name), marked)
    return first_of(column, [telling])


def reading_options(numbers: Iterable[str]) -> str:
    """Return the options that read numbers with separators."""
    distinct = {str(number).strip().lstrip("+-") for number in numbers}
    for option, pattern in _ONLY_READ_BY.items():
        if any(re.fullmatch(pattern, number) for number in distinct):
            grouped = option == "--decimal ," and any("." in number for number in distinct)
            return "--thousands ." if grouped else option
    if not any("," in number for number in distinct):
        return "--thousands ."
    return "--thousands , (or --decimal , for decimal commas)"


def form_of_column(column: "pd.Series[Any]") -> Form | None:
    """Return how the numbers or dates of a column of text are written, if it has any."""
    from pandas.api import types

    if types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column):
        return None
    counts = column.value_counts()
    return form_of(zip(counts.index.astype(str), counts.tolist(), strict=True))


def as_missing(words: "pd.Series[Any]", coerced: bool = True) -> str:
    """Return the options that read words as missing; --coerce may do so, too."""
    distinct = words.drop_duplicates().tolist()
    named = " ".join(f'--missing "{_shortened(word)}"' for word in distinct[:_WORDS_NAMED])
    if len(distinct) > _WORDS_NAMED:
        named += " …" + "," * coerced
    return f"{named} or --coerce" if coerced else named


def texts_among_numbers(column: "pd.Series[Any]") -> tuple["pd.Series[int]", int]:
    """Return the counts of the distinct texts that pandas cannot read, and of all values."""
    import pandas as pd

    counts = column.astype(str)[column.notna()].value_counts()
    levels = pd.Series(counts.index)
    text = pd.to_numeric(levels, errors="coerce").isna().to_numpy()
    return counts[text], int(counts.sum())


def read_as_told(frame: "pd.DataFrame", text: Collection[str], dialect: Dialect) -> "pd.DataFrame":
    """Read words for missing values and thousands as told, and text in columns of numbers."""
    import pandas as pd
    from pandas.api import types

    for name, column in frame.items():
        if not (types.is_object_dtype(column) or types.is_string_dtype(column)):
            continue
        missing = column.isin(dialect.missing)
        known = column.mask(missing, None)
        frame[name] = column = ungrouped(known, dialect)
        if name in text:
            continue
        texts, n = texts_among_numbers(column)
        if dialect.coerce and len(texts) and _are_words(texts, n, column):
            _coerce_only_words(column, texts.index)
            row, value = first_of(column, texts.index)
            note(
                f"reading {texts.sum()} of the {n} values of '{name}' as missing, such as "
                f"'{value}' in data row {row}."
            )
        else:
            as_told = missing.any() or not column.equals(known) or dialect.coerce
            if len(texts) or not as_told or (dialect.coerce and form_of_column(column) is None):
                continue
        frame[name] = pd.to_numeric(column, errors="coerce")
    return frame


def _are_words(texts: "pd.Series[int]", n: int, column: "pd.Series[Any]") -> bool:
    """Whether texts are words among numbers: less than half of the values, or placeholders."""
    if texts.sum() < _MOST_TEXT * n:
        return True
    form = form_of_column(column)
    return form is not None and form.name == "numbers" and len(form.words) > 0


def _coerce_only_words(column: "pd.Series[Any]", texts: "pd.Index[Any]") -> None:
    """Refuse to read numbers with separators as missing."""
    separated = texts[texts.str.fullmatch(SEPARATED_NUMBER)]
    if len(separated):
        row, value = first_of(column, separated)
        raise CliError(
            f"--coerce would read numbers such as '{value}' in data row {row} of column "
            f"'{column.name}' as missing; also pass {reading_options(separated)}."
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


def refuse_numbers_as_classes(column: "pd.Series[Any]", most_classes: int) -> None:
    """Reject a target of text whose values are numbers, up to a few words."""
    cause = cause_of(column)
    form = None if cause is None else cause.form
    if form is None or form.name in ("dates", "numbers with separators"):
        return
    if (form.name == "numbers" and form.words) or column.nunique() > most_classes:
        raise CliError(
            f"The target '{column.name}' is text because {cause}, or add --task classification if "
            "these are classes."
        )


def first_of(column: "pd.Series[Any]", levels: Iterable[str]) -> tuple[int, str]:
    """Return the first row of the file (from 1) with one of the levels, and its value."""
    position = int(column.astype(str).isin(set(levels)).to_numpy().argmax())
    return int(column.index[position]) + 1, _shortened(str(column.iloc[position]))


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
