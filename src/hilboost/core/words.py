"""Tables whose entries list several words."""

from __future__ import annotations

from collections.abc import Mapping


def by_word(texts: Mapping[str, str]) -> dict[str, str]:
    """Map each word of the texts to the key of its text."""
    return {word: key for key, text in texts.items() for word in text.split()}


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, as in "1 row" and "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def with_article(noun: str) -> str:
    """Return a noun with its article, as in "a dict" and "an int"."""
    return f"{'an' if noun[:1] in 'AEIOaeio' else 'a'} {noun}"
