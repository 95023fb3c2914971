"""Common parts of the losses of survival times.

The encoded target has the columns ``lower``, ``upper``, ``entry`` and ``stratum``: the time of the
event lies between ``lower`` and ``upper``; both are the time of an exact event, and ``upper`` is
infinite for a censored row.  The row is observed from ``entry`` on.  If events have several causes,
a fifth column holds their numbers, from 1 on.
"""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.target import Target

LOWER, UPPER, ENTRY, STRATUM, CAUSE = range(5)
ONES_AND_TWOS = (
    "if 1 means censored, subtract 1 from the events of y, which are 1 and 2, so that no row is "
    "censored (0)"
)


def check_columns(target: Target, n_causes: int = 1) -> None:
    """Check that the target consists of survival times, of at most so many causes."""
    if target.y.shape[1] not in (4, 5):
        raise InvalidData(
            "losses of survival times require encoded times; use BoostingSurvival, whose y holds "
            "events and times."
        )
    if target.y.shape[1] > max(4, 3 + n_causes):
        known = are_ones_and_twos(target.y[:, CAUSE])
        first = ONES_AND_TWOS if known else "pass whether there was an event (bool)"
        raise InvalidData(
            f"{first}; events of several causes require loss='discrete_hazard'; name columns of "
            "bounds 'lower' and 'upper'."
        )


def are_ones_and_twos(cause: Floats) -> bool:
    """Whether 1 may mean censored rows and 2 events, which elsewhere are 0 and 1."""
    return bool((cause == 1).any() and (cause == 2).any() and ((cause == 1) | (cause == 2)).all())


def check_right_censored(y: Floats, name: str) -> None:
    """Check that there are exact and right-censored times only."""
    lower, upper = y[:, LOWER], y[:, UPPER]
    other = np.flatnonzero((upper != lower) & np.isfinite(upper))
    if len(other):
        row = int(other[0])
        raise InvalidData(
            f"loss={name!r} supports exact and right-censored times; row {row} of y has an event "
            f"between {lower[row]:g} and {upper[row]:g}. Use loss='aft'."
        )


def check_events(target: Target) -> None:
    """Check that there is an event."""
    if not is_event(target).any():
        raise InvalidData(
            "y contains no event (True or 1), so that hazards cannot be estimated; pass rows with "
            "events."
        )


def check_no_entry(target: Target, name: str) -> None:
    """Check that all rows are observed from the beginning, in one stratum."""
    if (target.y[:, [ENTRY, STRATUM]] != 0).any():
        raise InvalidData(
            f"loss={name!r} does not support entry times and strata; use loss='cox', or pass "
            "neither."
        )


def is_event(target: Target) -> np.ndarray:
    """Rows with an event at a known time, (n,) bool."""
    return np.isfinite(target.y[:, UPPER]) & (target.y[:, LOWER] == target.y[:, UPPER])


def weights_of(target: Target) -> Floats:
    """Weights of all rows, (n,)."""
    return np.ones(len(target.y)) if target.weight is None else target.weight
