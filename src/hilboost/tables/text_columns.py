"""Warnings about columns of text that hold numbers, dates, or names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.errors import DataWarning, first_few, warn_caller
from hilboost.tables.columns import Labels
from hilboost.tables.number_text import Form, Written, form_of, is_numeric
from hilboost.tables.schema import place

_FEWEST_ROWS_OF_NAMES, _MANY_ROWS = 50, 1000
_ADVICE: dict[Written, str] = {
    "numbers": "convert {them}, for instance with pandas.to_numeric",
    "numbers with separators": "remove thousands separators, replace decimal commas by points, and "
    "convert {them}, for instance with pandas.to_numeric",
    "numbers with units": "remove percent signs and units, and convert {them}, for instance with "
    "pandas.to_numeric",
    "numbers with marks": "replace parentheses by minus signs, remove marks such as '<', and "
    "convert {them}, for instance with pandas.to_numeric",
    "dates": "convert {them} to calendar numbers, for instance with pandas.to_datetime",
    "times": "write {them} with hours, minutes and seconds, and convert {them} to numbers, for "
    "instance with pandas.to_timedelta",
}


@dataclass(frozen=True)
class TextColumn:
    """The texts of a column, in a table or in some of its rows."""

    texts: Sequence[str]
    counts: NDArray[np.int64]  # number of rows with each text
    first: NDArray[np.int64]  # first row with each text
    declared: bool  # whether the user or the dtype says that they are categories

    @classmethod
    def of(cls, labels: Labels, chosen: bool) -> Self:
        """Count the texts of a column of categories; ``chosen`` by the user."""
        counts, n = labels.counts(), len(labels.codes)
        used = np.flatnonzero(counts)
        # The last assignment counts; missing values have the code -1.
        first = np.zeros(len(counts) + 1, dtype=np.int64)
        first[labels.codes[::-1]] = np.arange(n - 1, -1, -1)
        texts = [str(labels.distinct[i]) for i in used]
        return cls(texts, counts[used], first[used], chosen or labels.declared)

    @property
    def form(self) -> Form | None:
        """How its numbers or dates are written; ``None`` if they are categories."""
        return None if self.declared else self._written

    @property
    def _written(self) -> Form | None:
        return form_of(zip(self.texts, self.counts.tolist(), strict=True))

    @property
    def names(self) -> str:
        """How many values differ: all, or over 90 % of 1000 or more; empty if fewer do.

        Numbers with separators are never names, even if they are declared as categories.
        """
        n, n_distinct = int(self.counts.sum()), len(set(self.texts))
        every = n >= _FEWEST_ROWS_OF_NAMES and n_distinct == n
        many = n >= _MANY_ROWS and n_distinct > 0.9 * n
        if not (every or many):
            return ""
        form = self._written
        if form is not None and form.name == "numbers with separators":
            return ""
        if every:
            return f"a different value in each of {n} rows"
        return f"{n_distinct} different values in {n} rows"


@dataclass
class TextSums:
    """The texts of a column, added part by part."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    declared: bool = False

    def add(self, part: TextColumn, begin: int) -> None:
        """Add the rows from ``begin`` on."""
        self.declared |= part.declared
        numbers = zip(part.texts, part.counts.tolist(), part.first.tolist(), strict=True)
        for text, n, row in numbers:
            self.counts[text] += n
            self.first.setdefault(text, begin + row)

    @property
    def column(self) -> TextColumn:
        """The texts of all parts."""
        counts, first = np.array(list(self.counts.values())), np.array(list(self.first.values()))
        return TextColumn(list(self.counts), counts, first, self.declared)


def warn_of_texts(columns: Mapping[object, TextColumn]) -> None:
    """Warn of columns of text, by their names, that are probably not categories."""
    for sentence in sentences_about(columns):
        warn_caller(sentence, DataWarning)


def sentences_about(
    columns: Mapping[object, TextColumn], row_of: Callable[[int], str] = "row {}".format
) -> list[str]:
    """Say which columns hold numbers, dates or names; ``row_of`` names a row."""
    written, unlike, told = {}, {}, []
    for name, column in columns.items():
        form = column.form
        if form is not None:
            written[name] = form
            told += [_with_words(name, form, column, row_of)] if form.words else []
        elif column.names:
            unlike[name] = column.names
    for kind in _ADVICE:
        plain = [name for name, form in written.items() if form.name == kind and not form.words]
        if plain:
            told.append(_numbers(plain, kind, columns[plain[0]]))
    return [*told, *([_names(unlike)] if unlike else [])]


def _with_words(name: object, form: Form, column: TextColumn, row_of: Callable[[int], str]) -> str:
    """Describe a column of numbers that a few words have turned into text."""
    rows = zip(column.first.tolist(), column.texts, strict=True)
    row, word = min(pair for pair in rows if pair[1] in form.words)
    what = "is numeric" if form.name == "numbers" else f"contains {form.name}"
    word = word if len(word) <= 40 else f"{word[:37]}..."
    return (
        f"{place(name)} {what} except for {sum(form.words.values())} of its {form.n_values} values "
        f"('{word}' in {row_of(row)}), so that it is categorical; "
        f"{_ADVICE[form.name].format(them='it')}(..., errors='coerce'), or mark it as categorical "
        "with .astype('category')."
    )


def _numbers(names: Sequence[object], kind: Written, first: TextColumn) -> str:
    """Describe columns of text in which all values are numbers or dates, with an example."""
    them, they, are = ("it", "it", "is") if len(names) == 1 else ("them", "they", "are")
    example = min(sorted(first.texts), key=lambda text: (is_numeric(text), text.isdigit()))
    such = "" if kind == "numbers" else f", such as {example!r:.60}"
    return (
        f"{_listed(names)} text in which all values are {kind}{such}, so that {they} {are} "
        f"categorical; {_ADVICE[kind].format(them=them)}, or mark {them} as categorical with "
        ".astype('category')."
    )


def _names(columns: Mapping[object, str]) -> str:
    """Describe columns of text in which nearly all rows differ."""
    one = len(columns) == 1
    what = next(iter(columns.values())) if one else "a different value in nearly every row"
    return (
        f"{_listed(list(columns))} text with {what}. Names, identifiers, and "
        f"dates do not generalize to other rows: drop the "
        f"{'column, or convert it' if one else 'columns, or convert them'} to numbers."
    )


def _listed(columns: Sequence[object]) -> str:
    """Name the first few columns, followed by the verb."""
    names = first_few(columns)
    return f"column {names} is" if len(columns) == 1 else f"columns {names} are"
