"""The ``repr`` of records with arrays."""

from __future__ import annotations

from dataclasses import fields
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
