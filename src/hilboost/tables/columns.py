"""A single column: numbers, or categories as codes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidType
from hilboost.tables.schema import Level, place

_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
_DATE_TYPES = {"Period"}  # a pandas type; pandas is optional
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Numbers:
    """A column of numbers."""

    is_category: ClassVar[bool] = False
    declared: ClassVar[bool] = False

    # (n,) float32 or float64, NaN for missing; or integers or booleans, none missing
    values: NDArray[Any]
    kind: Literal["f", "i", "b"] = "f"  # original type: float, integer, or boolean
    # (n,) integers, or None: the same, where floats would round them; any number for missing
    exact: NDArray[Any] | None = None

    def as_numbers(self) -> Numbers:
        """Return the column itself."""
        return self

    def as_labels(self) -> Labels:
        """Return the column with its distinct values as categories."""
        values = self.values if self.exact is None else self.exact
        present = ~np.isnan(self.values)
        distinct, inverse = np.unique(values[present], return_inverse=True)
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[present] = inverse
        finite = self.exact is not None or bool(np.isfinite(distinct).all())
        return Labels(codes, self.levels(distinct) if finite else distinct.tolist())

    def levels(self, values: NDArray[Any]) -> list[Level]:
        """Convert values to Python objects of the original type."""
        make: Any = int if self.exact is not None else {"f": float, "i": int, "b": bool}[self.kind]
        return [make(value) for value in values.tolist()]


@dataclass(frozen=True)
class Labels:
    """A column of text or of a categorical dtype."""

    is_category: ClassVar[bool] = True

    codes: NDArray[np.int64]  # (n,) int64: indices into ``distinct``; -1 for missing
    distinct: list[Any]  # the values; may contain unused values and duplicates
    declared: bool = False  # whether the dtype says that the values are categories

    def as_numbers(self) -> None:
        """Return ``None``: the values may be text."""
        return

    def as_labels(self) -> Labels:
        """Return the column itself."""
        return self

    def counts(self) -> NDArray[np.int64]:
        """Numbers of rows with each of ``distinct``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    def used(self) -> NDArray[np.int64]:
        """Indices of ``distinct`` that occur, ascending."""
        return np.flatnonzero(self.counts())

    def row_of(self, distinct: int) -> int:
        """Return the first row that contains the given value of ``distinct``."""
        return int(np.flatnonzero(self.codes == distinct)[0])


ReadColumn = Numbers | Labels


def are_rounded(values: NDArray[Any]) -> bool:
    """Return whether numbers of any shape are so large that float64 rounds integers."""
    if not values.size:
        return False
    low, high = (float(end.reduce(values, axis=None)) for end in (np.fmin, np.fmax))
    return max(-low, high) >= 2.0**53


def read_objects(
    values: Sequence[Any], name: object, row_of: Callable[[int], int] = int
) -> ReadColumn:
    """Read a column of numbers or text, and missing values; ``row_of`` numbers rows in messages."""
    kinds = {kind: kind_of(kind) for kind in set(map(type, values))}
    found = set(kinds.values())
    if "date" in found:
        refuse_dates(name, next(kind for kind, what in kinds.items() if what == "date").__name__)
    if "object" in found:
        i = next(i for i, value in enumerate(values) if kinds[type(value)] == "object")
        what = f"{_shown(values[i])} in row {row_of(i)}"
        if isinstance(values[i], Collection):
            refuse_nested(name, what)
        raise _neither_text_nor_number(name, what, "convert it, for instance with .astype(str)")
    if "text" not in found:
        return _numbers(values, kinds)
    for i, value in enumerate(values):
        if kinds[type(value)] == "number" and value == value:
            j = next(j for j, other in enumerate(values) if kinds[type(other)] == "text")
            raise InvalidData(
                f"{place(name)} contains text ({values[j]!r} in row {row_of(j)}) and numbers "
                f"({value!r} in row {row_of(i)}); convert it to text, for instance with "
                ".astype(str), or to numbers, for instance with pandas.to_numeric(..., "
                "errors='coerce')."
            )
    return coded(values)


def kind_of(kind: type) -> str:
    """Classify a type as missing, text, number, date, or object."""
    if kind.__name__ in _MISSING_TYPES:
        return "missing"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, (Real, Decimal, np.bool_)):
        return "number"
    if issubclass(kind, _DATES) or kind.__name__ in _DATE_TYPES:
        return "date"
    return "object"


def _numbers(values: Sequence[Any], kinds: dict[type, str]) -> Numbers:
    present = [kind for kind, what in kinds.items() if what == "number"]
    missing = {kind for kind, what in kinds.items() if what == "missing"}
    array = np.array([np.nan if type(v) in missing else _number(v) for v in values], np.float64)
    exact = _exact(values, array) if are_rounded(array) else None
    if present and all(issubclass(kind, (bool, np.bool_)) for kind in present):
        return Numbers(array, "b")
    whole = bool(present) and all(issubclass(kind, (Integral, np.bool_)) for kind in present)
    return Numbers(array, "i" if whole else "f", exact)


def _exact(values: Sequence[Any], numbers: Floats) -> NDArray[Any] | None:
    """Return the values as integers, 0 for missing; ``None`` if floats hold them all."""
    if np.isinf(numbers).any() or (np.mod(numbers, 1) > 0).any():
        return None
    known = ~np.isnan(numbers)
    exact = np.array([int(v) if here else 0 for v, here in zip(values, known, strict=True)], object)
    return exact if (exact[known] != numbers[known]).any() else None


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")  # rejected later, like any infinity


def coded(values: Iterable[Any]) -> Labels:
    """Encode hashable values by codes, in order of appearance."""
    codes: dict[Any, int] = {}
    array = np.array([codes.setdefault(v, len(codes)) for v in values], dtype=np.int64)
    return without_missing(Labels(array, list(codes)))


def without_missing(labels: Labels) -> Labels:
    """Replace the codes of missing values by -1."""
    if set(map(type, labels.distinct)) <= {str}:
        return labels
    is_missing = np.array([is_missing_value(v) for v in labels.distinct], dtype=bool)
    if not is_missing.any():
        return labels
    places = np.append(np.where(is_missing, -1, np.arange(len(is_missing))), -1)
    return replace(labels, codes=places[labels.codes])


def is_missing_value(value: object) -> bool:
    """Return whether a value is None, NaN, NA, or NaT."""
    return type(value).__name__ in _MISSING_TYPES or (
        isinstance(value, (Real, Decimal)) and value != value
    )


def refuse_dates(name: object, what: str) -> NoReturn:
    """Reject dates, times, and durations, which have no unique numeric form."""
    kind, end = "dates or times", "; pass time=... to fit if later rows are predicted."
    advice = "year, month, day of the week, or the seconds since a fixed date"
    if "elta" in what or "uration" in what:
        kind, end = "durations", "."
        advice = "their length in seconds, for instance with .dt.total_seconds()"
    raise InvalidData(
        f"{place(name)} contains {kind}; convert them to numbers, such as {advice}, or drop the "
        f"column{end}"
    )


def refuse_nested(name: object, what: str) -> NoReturn:
    """Reject lists, structs, and bytes."""
    raise _neither_text_nor_number(
        name, what, "split it into several columns, decode it if it contains bytes"
    )


def _neither_text_nor_number(name: object, what: str, advice: str) -> InvalidType:
    return InvalidType(
        f"{place(name)} contains {what}, but each value of this argument must be a string or a "
        f"number; {advice}, or drop it."
    )


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
