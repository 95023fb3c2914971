"""Targets that a distribution can have, and likelihood of those that are only known by bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.tables.bounds import LOWER, UPPER

Parameters = tuple[Floats, ...]
_NARROW = 1e-4  # change of a logarithm within an interval, below which the density is constant
_LEAST = -1e300


class Tails(Protocol):
    """Formulas of a family; its parameters ``p`` are arrays that broadcast with ``y``."""

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""


def log_likelihood(family: Tails, bounds: Floats, p: Parameters) -> Floats:
    """Logarithm of the density or probability of each row, given that it is observed, (n,).

    Bounds are (n, 4), and parameters (n,) each.
    """
    exact = bounds[:, LOWER] == bounds[:, UPPER]
    found = log_chance_of_bounds(family, bounds, p)
    found[exact] += family.log_density(bounds[exact, LOWER], tuple(one[exact] for one in p))
    return found


def log_chance_of_bounds(family: Tails, bounds: Floats, p: Parameters) -> Floats:
    """Logarithm of the probability of the interval of each row, given that it is observed, (n,).

    An exact target has the probability one before it is observed.
    """
    lower, upper, entry, limit = bounds.T
    found = np.zeros(len(bounds))
    for rows, low, high, sign in (
        (lower < upper, lower, upper, 1.0),
        (np.isfinite(entry) | np.isfinite(limit), entry, limit, -1.0),
    ):
        if rows.any():
            own = tuple(np.broadcast_to(one, rows.shape)[rows] for one in p)
            found[rows] += sign * _log_between(family, low[rows], high[rows], own)
    return found


def _log_between(family: Tails, low: Floats, high: Floats, p: Parameters) -> Floats:
    """Logarithm of the probability of ``(low, high]``, (n,); one end may be infinite."""
    above, below = _log_tail(family, low, p, True), _log_tail(family, high, p, False)
    found = above + below
    both = np.isfinite(low) & np.isfinite(high)
    if both.any():
        own = tuple(one[both] for one in p)
        found[both] = _log_inside(family, (low[both], high[both]), (above[both], below[both]), own)
    return np.maximum(np.where(np.isnan(found), _LEAST, found), _LEAST)


def _log_inside(
    family: Tails, ends: tuple[Floats, Floats], tails: tuple[Floats, Floats], p: Parameters
) -> Floats:
    """Logarithm of the probability between two ends, (n,), from the tail that has more digits.

    ``tails`` are the logarithms of the probabilities above the lower end and below the upper one.
    """
    larger, smaller = np.minimum(tails[0], tails[1]), np.empty(len(ends[0]))
    in_upper_tail = tails[0] < tails[1]
    for rows, end, upper in ((in_upper_tail, ends[1], True), (~in_upper_tail, ends[0], False)):
        smaller[rows] = _log_tail(family, end[rows], tuple(one[rows] for one in p), upper)
    with np.errstate(all="ignore"):
        change = smaller - larger
        found = larger + np.log(-np.expm1(change))
        narrow = change > -_NARROW
        if narrow.any():
            low, high = ends[0][narrow], ends[1][narrow]
            density = family.log_density(0.5 * (low + high), tuple(one[narrow] for one in p))
            found[narrow] = density + np.log(high - low)
    return found


def _log_tail(family: Tails, y: Floats, p: Parameters, upper: bool) -> Floats:
    """Logarithm of the probability of more than ``y``, or of at most ``y``, (n,).

    It is 0 for an infinite ``y``, and the logarithm of the density where it is too small.
    """
    found, finite = np.zeros(len(y)), np.isfinite(y)
    if finite.any():
        y, own = y[finite], tuple(one[finite] for one in p)
        with np.errstate(all="ignore"):
            tail = family.log_tail(y, own, upper)
            tail = np.where(np.isnan(tail) & (y <= 0), 0.0 if upper else -np.inf, tail)
            small = np.isneginf(tail)
            if small.any():
                density = family.log_density(y, own)
                tail = np.where(small & np.isfinite(density), np.minimum(density, 0.0), tail)
        found[finite] = tail
    return found


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
