"""Columns of text in which all or nearly all values are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = re.compile(r"0\d")
_MOST_WORDS = 0.01  # part of the values


def is_numeric(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def are_numbers(texts: Iterable[object]) -> bool:
    """Return whether all texts are numbers; those with leading zeros, as ``"007"``, are codes."""
    return all(is_numeric(str(text)) and not _CODE.match(str(text)) for text in texts)


def words_among_numbers(counts: Iterable[tuple[str, int]], n_values: int) -> dict[str, int]:
    """Return the texts that are not numbers, with their counts, if they are few but not none."""
    words: dict[str, int] = {}
    n_words = 0
    for text, count in counts:
        if count and not is_numeric(text):
            words[text] = words.get(text, 0) + count  # chunks repeat texts
            n_words += count
            if n_words >= _MOST_WORDS * n_values:
                return {}
    return words


def words_told(words: dict[str, int], n_values: int, first: str, row: str) -> str:
    """Say how many values are words, and which is the first one."""
    text = first if len(first) <= 40 else f"{first[:37]}..."
    n_words = sum(words.values())
    return f"is numeric except for {n_words} of its {n_values} values ('{text}' in {row})"
