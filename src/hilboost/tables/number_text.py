"""Numbers and dates that are written as text, such as ``"6,471"``, ``"22.3%"``, ``"1.1.2022"``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from hilboost.core.dtypes import NO_NUMBER

Written = Literal[
    "numbers",
    "numbers with separators",
    "numbers with units",
    "numbers with marks",
    "dates",
    "times",
]

_DAY, _MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
_DAY_MONTH = rf"({_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})"
_TWO_DIGITS_EACH = _DAY_MONTH.replace("?", "")
_TIME = r"([T ]\d{1,2}:\d{2}.*)?\s*"
_YEAR_FIRST = rf"\s*(\d{{4}}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}|(19|20)\d\d-(0[1-9]|1[0-2])\s*)"
YEAR_LAST = rf"\s*({_DAY_MONTH}[-/.]\d{{4}}|{_TWO_DIGITS_EACH}[-/.]\d\d){_TIME}"
_WEEKDAY = r"(?i:(mon|fri|sun)(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|sat(urday)?)"
_MONTH_NAME = (
    r"(?i:jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sep(t|tember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?)"
)
_OR = r"[-/., ]+"
_DAY_MONTH_NAME = rf"({_DAY}{_OR}{_MONTH_NAME}|{_MONTH_NAME}({_OR}{_DAY})?){_OR}\d{{4}}"
MONTH_NAMED = (
    rf"\s*({_WEEKDAY}{_OR})?({_DAY_MONTH_NAME}|{_DAY}{_OR}{_MONTH_NAME}{_OR}\d\d|"
    rf"\d{{4}}{_OR}{_MONTH_NAME}{_OR}{_DAY}){_TIME}"
)
COMPACT_DAY = r"^\s*((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\s*$"
DATE = f"{_YEAR_FIRST}|{YEAR_LAST}|{MONTH_NAMED}"
_SYMBOL = r"[$£¢¥฿₠-⃀]"
_CURRENCY = (
    rf"([A-Z]{{0,3}}{_SYMBOL}|Rs\.?|"
    r"AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|INR|JPY|NOK|NZD|PLN|SEK|USD)"
)
_FACTOR = r"(?i:k|m|b|bn|mn|mio|mrd)"
_NUMBER, _MINUS, _SIGN = r"\d[\d.,]*", "[-−–]", r"[+−–-]"
_AMOUNT = (  # each part but one may have the sign
    rf"({_SIGN}\s*)?({_CURRENCY}\s*({_SIGN}\s*)?{_NUMBER}\s*{_FACTOR}?\s*{_MINUS}?|"
    rf"{_NUMBER}\s*{_MINUS}\s*(%|{_CURRENCY})|{_NUMBER}\s*[^\d\s.,:;()+−–-][^\d\s()]*)"
)
_IN_PARENTHESES = (
    rf"\(\s*{_AMOUNT}\s*\)|{_CURRENCY}\s*\(\s*{_NUMBER}\s*{_FACTOR}?\s*\)|"
    rf"\(\s*{_NUMBER}\s*\)\s*(%|{_CURRENCY})"
)
NUMBER_WITH_UNIT = rf"\s*({_AMOUNT}|{_IN_PARENTHESES})\s*"
_SPACES = " \u00a0\u202f"
_GROUPED_BY_COMMAS = r"\d{1,3}(,\d{2,3})*,\d{3}(\.\d*)?"
_GROUPED_BY_POINTS = r"\d{1,3}((\.\d{3})+,\d+|(\.\d{3}){2,})"
_GROUPED_OTHERWISE = rf"[1-9]\d{{0,2}}(['’]\d{{3}}|[{_SPACES}]\d{{3}})+([.,]\d*)?"
SEPARATED_NUMBER = (
    rf"\s*[+-]?(\d+,\d+|{_GROUPED_BY_COMMAS}|{_GROUPED_BY_POINTS}|{_GROUPED_OTHERWISE})\s*"
)
_WITHIN_GROUPS = re.compile(r"\s*[+-]?([1-9]\d{0,2}(\.\d{3})?|0)\s*")
_COMPACT_DAY = re.compile(COMPACT_DAY)
_MARKED = (
    rf"\s*(\(\s*{_NUMBER}\s*\)|[<>≤≥~]=?\s*{_SIGN}?{_NUMBER}|{_SIGN}\s*{_NUMBER}|"
    rf"{_NUMBER}[.,]\d+\s*{_MINUS})\s*"
)
_TIMES = re.compile(r"\s*\d{1,2}:[0-5]\d(:[0-5]\d(\.\d+)?)?\s*")
_PLACEHOLDER = re.compile(  # for a missing value
    rf"\s*({_SYMBOL}?\s*[-−–—]*|\.+|\?+|#?n/?a|n\.a\.|nan|null|nil|unknown|missing|tbd|"
    r"not (available|applicable))\s*",
    re.IGNORECASE,
)
_OF_NUMBER = re.compile(r"[\d\s.,()+−–-]")
_WITH_FACTOR = re.compile(rf"({_CURRENCY})?{_FACTOR}")
_HAS_SIGN = re.compile(rf"(%|{_SYMBOL})$")
_CODE = re.compile(r"^0\d|_")
_OF_MANY: tuple[Written, ...] = ("numbers with marks", "times")
_FACTORS = "k, M"  # as one unit
_SAMPLE = 1000  # texts that tell the unit
_FEWEST_WITH_UNIT = 10  # distinct values; "1b", "2b" are names
_FEW_WORDS = 0.01  # part of the values; any number of different words
_MOST_WORDS = 0.5  # part of the values; a few different words
_MOST_DISTINCT_WORDS, _FEWEST_DISTINCT_NUMBERS = 3, 20


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a long pattern when first used: all of them would take a tenth of the import."""
    return re.compile(text)


@dataclass(frozen=True)
class Form:
    """How the numbers or dates of a column of text are written."""

    name: Written
    words: dict[str, int]  # the few other texts, with their counts
    n_values: int

    @property
    def has_few_words(self) -> bool:
        """Whether less than 1 % of the values are words."""
        return 0 < sum(self.words.values()) < _FEW_WORDS * self.n_values


def is_numeric(value: Any) -> bool:
    """Return whether a text or another value is a number."""
    try:
        float(value)
    except NO_NUMBER:
        return False
    return True


def form_of(counts: Iterable[tuple[object, int]]) -> Form | None:
    """Return how all texts of a column but a few words are written, from the counts of texts."""
    texts: Counter[str] = Counter()
    for text, count in counts:
        if count:
            texts[str(text)] += count
    found: Form | None = None
    for name, fits in _forms(texts).items():
        if found is not None and name in _OF_MANY:
            break
        words = _words(texts, fits)
        if words is not None and (found is None or len(words) < len(found.words)):
            found = Form(name, words, texts.total())
    if found is None or any(map(_CODE.search, found.words)):
        return None
    numbers = texts.keys() - found.words.keys()
    if found.name == "numbers" and all(map(_COMPACT_DAY.fullmatch, numbers)):
        return replace(found, name="dates")
    if found.name == "numbers" and _may_have_groups(numbers):
        return replace(found, name="numbers with separators")
    return found


def _may_have_groups(numbers: Iterable[str]) -> bool:
    """Whether points may separate thousands, as in ``"2.501"`` beside ``"950"``."""
    has_points = set()
    for number in numbers:
        if not _WITHIN_GROUPS.fullmatch(number):
            return False
        has_points.add("." in number)
    return len(has_points) == 2


def written_as(text: object) -> Written | None:
    """Return how a number or date is written; None for other text."""
    form = form_of([(text, 1)])
    return None if form is None else form.name


def _forms(texts: Counter[str]) -> dict[Written, Callable[[str], object]]:
    """Return what texts of each form match."""
    separated = _pattern(SEPARATED_NUMBER)
    forms: dict[Written, Callable[[str], object]] = {
        "numbers": _is_plain,
        "numbers with separators": lambda text: _is_plain(text) or separated.fullmatch(text),
        "dates": _pattern(DATE).fullmatch,
    }
    units = Counter(_unit_of(text) for text, _ in zip(texts, range(_SAMPLE), strict=False))
    unit = max(filter(None, units), key=units.__getitem__, default="")
    if unit == _FACTORS and units[unit] >= _FEWEST_WITH_UNIT:
        forms["numbers with units"] = lambda text: _unit_of(text) == unit or _is_plain(text)
    elif _HAS_SIGN.search(unit) or (unit and len(texts) >= _FEWEST_WITH_UNIT):
        forms["numbers with units"] = lambda text: _unit_of(text) == unit
    if len(texts) > _FEWEST_DISTINCT_NUMBERS:
        plain, marked = forms["numbers with separators"], _pattern(_MARKED)
        forms["numbers with marks"] = lambda text: plain(text) or marked.fullmatch(text)
        forms["times"] = _TIMES.fullmatch
    return forms


def _words(texts: Counter[str], fits: Callable[[str], object]) -> dict[str, int] | None:
    """Return the texts that are not of a form if they are few, or else None."""
    words: dict[str, int] = {}
    n_words, n_distinct, n_values = 0, 0, texts.total()
    for text, count in texts.items():
        if fits(text):
            continue
        words[text] = count
        if _PLACEHOLDER.fullmatch(text):
            continue
        n_words, n_distinct = n_words + count, n_distinct + 1
        if n_words >= _FEW_WORDS * n_values and (
            n_distinct > _MOST_DISTINCT_WORDS or n_words >= _MOST_WORDS * n_values
        ):
            return None
    has_many = len(texts) - len(words) > _FEWEST_DISTINCT_NUMBERS
    few = has_many or sum(words.values()) < _FEW_WORDS * n_values
    return words if few else None


def _is_plain(text: str) -> bool:
    """Whether a text is a finite number; ``"007"`` and ``"12_34"`` are codes."""
    return not _CODE.search(text) and is_numeric(text) and math.isfinite(float(text))


def are_days(name: object, names: Container[Any]) -> bool:
    """Whether a column holds days since 1970: it is named as its year is, ``"sold: days"``."""
    date = str(name).removesuffix(": days")
    return date != name and f"{date}: year" in names


def day_text(day: float) -> str | None:
    """Format a day since 1970 as a date; None outside the years 1 to 9999."""
    return str(np.datetime64(round(day), "D")) if -719_162 <= day <= 2_932_896 else None


def _unit_of(text: str) -> str:
    """Return the percent sign, currency, or other unit of a number, or else an empty text."""
    if not _pattern(NUMBER_WITH_UNIT).fullmatch(text):
        return ""
    unit = _OF_NUMBER.sub("", text)
    scaled = _WITH_FACTOR.fullmatch(unit)
    return unit if scaled is None else scaled[1] or _FACTORS
