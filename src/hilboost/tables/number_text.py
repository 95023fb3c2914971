"""Numbers and dates that are written as text, such as ``"6,471"``, ``"22.3%"``, ``"1.1.2022"``."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import Literal

Written = Literal["numbers", "numbers with commas", "numbers with units", "dates"]

_DAY, _MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
_DAY_MONTH = rf"({_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})"
_TWO_DIGITS_EACH = _DAY_MONTH.replace("?", "")
_TIME = r"([T ]\d{1,2}:\d{2}.*)?\s*"
YEAR_FIRST = rf"\s*\d{{4}}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}"
YEAR_LAST = rf"\s*({_DAY_MONTH}[-/.]\d{{4}}|{_TWO_DIGITS_EACH}[-/.]\d\d){_TIME}"
NUMBER_WITH_UNIT = r"\s*([$€£¥]\s*[+-]?\d[\d.,]*|[+-]?\d[\d.,]*\s*[^\d\s.,:;+-][^\d\s]*)\s*"
_COMMAS = re.compile(r"\s*[+-]?(\d+,\d+|\d{1,3}(,\d{2,3})*,\d{3}(\.\d*)?|\d{1,3}(\.\d{3})+,\d+)\s*")
_UNITS = re.compile(NUMBER_WITH_UNIT)
_DATES = re.compile(f"{YEAR_FIRST}|{YEAR_LAST}")
_OF_NUMBER = re.compile(r"[\d\s.,+-]")
_CODE = re.compile(r"^0\d|_")
_SIGNS = frozenset("%$€£¥")
_FEWEST_WITH_UNIT = 10  # distinct values; "1b", "2b" are names


def is_numeric(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def written_as(texts: Iterable[object]) -> Written | None:
    """Return what all distinct texts are: numbers or dates in one of these forms, or else None."""
    found = list(map(str, texts))
    if all(map(_is_plain, found)):
        return "numbers"
    if all(_COMMAS.fullmatch(text) or _is_plain(text) for text in found):
        return "numbers with commas"
    if _have_one_unit(found):
        return "numbers with units"
    return "dates" if all(map(_DATES.fullmatch, found)) else None


def _is_plain(text: str) -> bool:
    """Whether a text is a finite number; ``"007"`` and ``"12_34"`` are codes."""
    return not _CODE.search(text) and is_numeric(text) and math.isfinite(float(text))


def _have_one_unit(texts: Collection[str]) -> bool:
    """Whether all texts are numbers with the same percent sign, currency, or other unit."""
    unit = None
    for text in texts:
        own = _OF_NUMBER.sub("", text)
        if not _UNITS.fullmatch(text) or own != (unit or own):
            return False
        unit = own
    return unit in _SIGNS or len(texts) >= _FEWEST_WITH_UNIT
