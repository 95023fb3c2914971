"""Tables whose entries list several words."""

from __future__ import annotations

from collections.abc import Mapping


def by_word(texts: Mapping[str, str]) -> dict[str, str]:
    """Map each word of the texts to the key of its text."""
    return {word: key for key, text in texts.items() for word in text.split()}
