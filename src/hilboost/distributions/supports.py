"""Supports of distributions: the targets that they can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.tables.bounds import LOWER, UPPER

ENDS: Mapping[str, tuple[float, float]] = {
    "numbers": (-np.inf, np.inf),
    "positive": (0.0, np.inf),
    "counts": (0.0, np.inf),
    "fractions": (0.0, 1.0),
}
"""Smallest and largest numbers between which targets are."""

SUPPORTS: Mapping[str, tuple[Callable[[Floats], Any], str, str]] = {
    "numbers": (np.isfinite, "finite targets", "squared_error"),
    "positive": (lambda y: (y > 0) & np.isfinite(y), "positive targets", "normal"),
    "counts": (
        lambda y: (y >= 0) & np.isfinite(y) & (y == np.rint(y)),
        "counts (whole numbers that are not negative)",
        "normal",
    ),
    "fractions": (lambda y: (y > 0) & (y < 1), "targets between 0 and 1", "normal"),
}
"""Which targets are possible, the words for them, and another loss."""


def are_possible(support: str, bounds: Floats) -> NDArray[np.bool_]:
    """Whether a target of the support lies within the bounds of each row (n, 4), (n,)."""
    lower, upper = bounds[:, LOWER], bounds[:, UPPER]
    least, most = ENDS[support]
    reached = (upper > least) | SUPPORTS[support][0](upper)
    return np.where(lower == upper, SUPPORTS[support][0](lower), reached & (lower < most))


def refuse_outside(support: str, loss: str, y: Floats) -> None:
    """Reject targets (n,) outside of the support."""
    holds, words, other = SUPPORTS[support]
    inside = holds(y)
    if inside.all():
        return
    row = int(np.argmin(inside))
    raise InvalidData(
        f"loss={loss!r} requires {words}; row {row} has {y[row]:g}. Remove such rows or choose "
        f"another loss, such as {other!r}."
    )
