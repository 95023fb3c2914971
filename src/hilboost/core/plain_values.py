"""Values that JSON stores as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = (str, int, float, bool, type(None))


def as_python(value: Any) -> Any:
    """Convert a scalar of NumPy to one of Python; other values are unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def is_plain(value: object) -> bool:
    """Return whether JSON stores the value as it is."""
    return isinstance(value, PLAIN)
