"""Texts of messages: numbers and nouns, and records with arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, as in "1 row" and "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def with_article(noun: str) -> str:
    """Return a noun with its article, as in "a dict" and "an int"."""
    return f"{'an' if noun[:1] in 'AEIOaeio' else 'a'} {noun}"


def brief_repr(record: Any) -> str:
    """Return the ``repr`` of a dataclass with the shapes of its arrays instead of their entries."""
    shown = []
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            value = f"<{' × '.join(map(str, value.shape))} {value.dtype}>"
        elif isinstance(value, float):
            value = f"{value:.6g}"
        shown.append(f"{field.name}={value}")
    return f"{type(record).__name__}({', '.join(shown)})"
