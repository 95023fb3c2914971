"""The form of a table: separator, decimal mark, encoding, and words for missing values."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from hilboost.cli.errors import CliError, note
from hilboost.cli.option_fields import flag, option, several

_SAMPLE = 2**16  # bytes from which separators and marks are detected
_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
_FALLBACK = "cp1252"
_LINES = 200
_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?(0|\d{4,})?\.\d+\s*|\s*[+-]?\d+\.(\d{1,2}|\d{4,})\s*")
_GROUPED_BY_POINTS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?((0\d*|\d{4,}|[\d.]+\.\d{3}),\d+|\d+,(\d{1,2}|\d{4,}))\s*")


@dataclass(frozen=True)
class Dialect:
    """How a table is written: options of commands; ``None`` where it is to be detected."""

    sep: str | None = option("MARK", "Separator of the fields; detected by default.")
    decimal: str | None = option("MARK", "Decimal mark of numbers; detected by default.")
    thousands: str | None = option("MARK", "Thousands separator of numbers, such as a comma.")
    encoding: str | None = option(
        "NAME", "Encoding of the text, such as cp1252; detected by default."
    )
    date_order: Literal["dmy", "mdy"] | None = option(
        "ORDER",
        "Order of dates whose year comes last, dmy or mdy; detected where values or dots show it.",
    )
    missing: list[str] = several("WORD", "Word that means a missing value, such as unknown")
    coerce: bool = flag("Read text in columns of numbers as missing values.", "--coerce")

    @property
    def decimal_mark(self) -> str | None:
        """The decimal mark that was given, or that a thousands separator implies."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands or "")

    @property
    def converts(self) -> bool:
        """Whether columns of text are read as numbers, or words as missing values."""
        return bool(self.missing or self.coerce or self.thousands or self.decimal == ",")

    def check(self) -> None:
        """Reject marks that are not a single character, and unknown encodings."""
        marks = {"sep": self.sep, "decimal": self.decimal, "thousands": self.thousands}
        for name, mark in marks.items():
            if mark is not None and len(mark) != 1:
                raise CliError(f"--{name} must be a single character; got '{mark}'.")
        if (self.thousands or "").isalnum():
            raise CliError(f"--thousands must be a mark, such as a comma; got '{self.thousands}'.")
        if self.sep is not None and self.sep == self.decimal:
            raise CliError(f"--sep and --decimal are both '{self.decimal}'; change one.")
        if self.thousands is not None and self.thousands == self.decimal:
            raise CliError(f"--decimal and --thousands are both '{self.decimal}'; change one.")
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError:
            raise CliError(
                f"--encoding {self.encoding} is not known; use a name such as utf-8, cp1252, or "
                "latin-1."
            ) from None


def detected(path: Path, content: bytes, given: Dialect) -> Dialect:
    """Complete a dialect from the content of a file, with a note about what is unusual."""
    encoding = given.encoding or _encoding_of(content)
    text = content[:_SAMPLE].decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()[:_LINES]
    if len(lines) > 1 and len(content) > _SAMPLE:
        lines = lines[:-1]  # which may be cut
    separator = given.sep or _separator_of(lines)
    header, *rows = [*csv.reader(lines, delimiter=separator)] or [[]]
    fields = [field for row in rows for field in row]
    if given.decimal == "," and given.thousands is None:
        _refuse_points(path, fields)
    decimal, thousands = given.decimal_mark or _decimal_of(fields, separator), given.thousands
    if thousands is None and decimal == "," and _have_groups(_with_points(fields)):
        thousands = "."
    found = []
    if given.sep is None and separator != ",":
        found.append(f"separated by {_SEPARATORS[separator]}")
    if given.decimal_mark is None and decimal != ".":
        found.append("with decimal commas")
    if thousands != given.thousands:
        found.append("with dots between thousands")
    if given.encoding is None and encoding == _FALLBACK:
        found.append(f"in the encoding {_FALLBACK}, because it is not UTF-8 text")
    if found:
        also = "" if thousands == given.thousands else " --thousands,"
        options = f"--sep, --decimal,{also} --encoding"
        note(f"reading '{path}' as fields {', '.join(found)} (see {options}).")
    if thousands is None:
        _tell_possible_thousands(header, rows, decimal, separator)
    return replace(given, sep=separator, decimal=decimal, thousands=thousands, encoding=encoding)


def _refuse_points(path: Path, fields: list[str]) -> None:
    """Reject decimal commas for numbers that only have decimal points."""
    point = next(filter(_DECIMAL_POINT.fullmatch, fields), None)
    if point is not None and not any(re.search(r"\d,\d", field) for field in fields):
        raise CliError(
            f"--decimal , does not suit '{path}', which has decimal points, as in "
            f"'{point.strip()}', and no decimal commas; leave out --decimal ,."
        )


def _encoding_of(content: bytes) -> str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return _FALLBACK
    return "utf-8"


def _separator_of(lines: list[str]) -> str:
    """The mark that divides a header which has no commas."""
    header = lines[0] if lines else ""
    if "," in header:
        return ","
    return next((mark for mark in _SEPARATORS if mark in header), ",")


def _decimal_of(fields: list[str], separator: str) -> str:
    """A comma, if there are numbers with a comma, and points can only separate thousands."""
    points = _with_points(fields)
    commas = any(map(_WITH_COMMA.fullmatch, fields)) or any("," in number for number in points)
    if separator == "," or not commas:
        return "."
    certain = _have_groups(points) and any(map(_DECIMAL_COMMA.fullmatch, fields))
    return "," if certain or not points else "."


def _with_points(fields: list[str]) -> list[str]:
    """Fields that are numbers with points."""
    return [f for f in fields if _WITH_POINT.fullmatch(f) or _GROUPED_BY_POINTS.fullmatch(f)]


def _have_groups(points: list[str]) -> bool:
    """Whether numbers have points between groups of three digits, if there are any numbers."""
    return bool(points) and all(map(_GROUPED_BY_POINTS.fullmatch, points))


def _tell_possible_thousands(
    header: list[str], rows: list[list[str]], mark: str, separator: str
) -> None:
    """Print a note on the first column whose decimal marks may be separators of thousands.

    In such a column, three digits follow each mark, and numbers without a mark have at most three.
    Without such numbers, the column is told unless other numbers have certain decimal marks, or
    fields are separated by commas, as where the decimal mark is not a comma.
    """
    certain = _DECIMAL_COMMA if mark == "," else _DECIMAL_POINT
    is_certain = any(certain.fullmatch(field) for row in rows for field in row)
    marked = re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}\s*")
    for name, *fields in zip_longest(header, *rows, fillvalue=""):
        numbers = [field for field in fields if field.strip()]
        grouped = [number for number in numbers if marked.fullmatch(number)]
        others = [number for number in numbers if re.fullmatch(r"\s*[+-]?\d{1,3}\s*", number)]
        if not grouped or len(grouped) + len(others) < len(numbers):
            continue
        if others or (not is_certain and (mark == "," or separator != ",")):
            text = grouped[0].strip()
            note(
                f"'{text}' in column '{name}' is read as {float(text.replace(mark, '.')):g}; pass "
                f"--thousands {mark} if it means {text.replace(mark, '')}."
            )
            return
