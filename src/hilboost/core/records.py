"""The ``repr`` of records with arrays, and their state without cached properties."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np


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


def without_caches(record: object) -> Any:
    """State of an object for pickles and hashes, without cached properties."""
    state = object.__getstate__(record)
    kept = {
        name: value
        for name, value in vars(record).items()
        if not isinstance(getattr(type(record), name, None), cached_property)
    }
    return (kept or None, state[1]) if type(state) is tuple else kept or None
