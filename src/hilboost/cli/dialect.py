"""The form of a table: separator, decimal mark, encoding, and words for missing values."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

from hilboost.cli.errors import CliError, note

SAMPLE = 2**16
"""Number of bytes from which the form is detected."""
_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
_FALLBACK = "cp1252"
_LINES = 200
_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How a table is written; ``None`` where it is to be detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    date_order: str | None = None  # of dates whose year comes last
    missing: tuple[str, ...] = ()  # words for missing values
    coerce: bool = False  # whether text in columns of numbers is a missing value
    thousands: str | None = None  # separator of thousands; never detected

    @property
    def decimal_mark(self) -> str | None:
        """The decimal mark that was given, or that a thousands separator implies."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands or "")

    def check(self) -> None:
        """Reject marks that are not a single character, and unknown encodings."""
        marks = {"sep": self.separator, "decimal": self.decimal, "thousands": self.thousands}
        for name, mark in marks.items():
            if mark is not None and len(mark) != 1:
                raise CliError(f"--{name} must be a single character; got '{mark}'.")
        if (self.thousands or "").isalnum():
            raise CliError(f"--thousands must be a mark, such as a comma; got '{self.thousands}'.")
        if self.separator is not None and self.separator == self.decimal:
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


def detected(path: Path, sample: bytes, given: Dialect) -> Dialect:
    """Complete a dialect from the beginning of a file, and print a note about what is unusual.

    ``sample``: the first bytes, not compressed. ``given``: what the user specified.

    Returns Dialect: with a separator, a decimal mark and an encoding.
    """
    encoding = given.encoding or _encoding_of(sample)
    text = sample.decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()[:_LINES]
    if len(lines) > 1 and len(sample) >= SAMPLE:
        lines = lines[:-1]  # which may be cut
    separator = given.separator or _separator_of(lines)
    decimal = given.decimal_mark or _decimal_of(lines, separator)
    found = []
    if given.separator is None and separator != ",":
        found.append(f"separated by {_SEPARATORS[separator]}")
    if given.decimal_mark is None and decimal != ".":
        found.append("with decimal commas")
    if given.encoding is None and encoding == _FALLBACK:
        found.append(f"in the encoding {_FALLBACK}, because it is not UTF-8 text")
    if found:
        note(f"reading '{path}' as fields {', '.join(found)} (see --sep, --decimal, --encoding).")
    return replace(given, separator=separator, decimal=decimal, encoding=encoding)


def _encoding_of(sample: bytes) -> str:
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        if len(sample) < SAMPLE or error.start < len(sample) - 4:
            return _FALLBACK
    return "utf-8"


def _separator_of(lines: list[str]) -> str:
    """The mark that divides a header which has no commas."""
    header = lines[0] if lines else ""
    if "," in header:
        return ","
    return next((mark for mark in _SEPARATORS if mark in header), ",")


def _decimal_of(lines: list[str], separator: str) -> str:
    """A comma, if fields are numbers with a comma and none are numbers with a point."""
    if separator == ",":
        return "."
    fields = [field for row in csv.reader(lines[1:], delimiter=separator) for field in row]
    with_comma = any(_WITH_COMMA.fullmatch(field) for field in fields)
    with_point = any(_WITH_POINT.fullmatch(field) for field in fields)
    return "," if with_comma and not with_point else "."
