"""Nouns in messages, with numbers and articles."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, as in "1 row" and "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def with_article(noun: str) -> str:
    """Return a noun with its article, as in "a dict" and "an int"."""
    return f"{'an' if noun[:1] in 'AEIOaeio' else 'a'} {noun}"
