"""Common parts of the losses of survival times.

The encoded target has the columns ``lower``, ``upper``, ``entry`` and ``stratum``: the time of the
event lies between ``lower`` and ``upper``; both are the time of an exact event, and ``upper`` is
infinite for a censored row.  The row is observed from ``entry`` on.  If events have several causes,
a fifth column holds their numbers, from 1 on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_ndtr

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


Derivatives = tuple[Floats, Floats, Floats]
Mask = NDArray[np.bool_]

_NARROWEST = 1e-9
"""Intervals that are narrower, in units of the scale, count as exact times."""
_FARTHEST = 500.0
_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Lifetimes:
    """A log-concave distribution."""

    # logarithms of the density, and of the probabilities above and below a value
    log_density: Callable[[Floats], Floats]
    log_above: Callable[[Floats], Floats]
    log_below: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]  # first and second derivative of the logarithm of the density
    bend: Callable[[Floats], Floats]  # first and second derivative of the logarithm of the density
    median: float = 0.0


def _log_one_minus_exp(x: Floats) -> Floats:
    """``log(1 - exp(x))`` for ``x < 0``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


DISTRIBUTIONS = {
    "normal": Lifetimes(
        lambda z: -0.5 * z * z - _LOG_ROOT_TWO_PI,
        lambda z: log_ndtr(-z),
        log_ndtr,
        lambda z: -z,
        lambda z: np.full_like(z, -1.0),
    ),
    "logistic": Lifetimes(
        lambda z: log_expit(z) + log_expit(-z),
        lambda z: log_expit(-z),
        log_expit,
        lambda z: 1.0 - 2.0 * expit(z),
        lambda z: -2.0 * expit(z) * expit(-z),
    ),
    "extreme": Lifetimes(
        lambda z: z - np.exp(z),
        lambda z: -np.exp(z),
        lambda z: _log_one_minus_exp(-np.exp(z)),
        lambda z: 1.0 - np.exp(z),
        lambda z: -np.exp(z),
        float(np.log(np.log(2.0))),
    ),
}


def likelihood(
    distribution: str, scale: float, y: Floats, scores: Floats
) -> tuple[Floats, Floats, Floats]:  # tuple of (n,) float64
    """Negative log likelihood, its negative gradient and its hessian, (n,) each.

    Scores (n,) are minus the location of the logarithm of the time.
    """
    noise, logs = DISTRIBUTIONS[distribution], _logs(y)
    places = (logs + scores[:, None]) / scale
    low, high = np.clip(places, -_FARTHEST, _FARTHEST).T
    exact, after, before, between = _kinds(y, places)
    parts: tuple[tuple[Mask, Callable[[tuple[Floats, Floats]], Derivatives]], ...] = (
        (exact, lambda z: _exact(noise, z[0])),
        (after, lambda z: _after(noise, z[0])),
        (before, lambda z: _before(noise, z[1])),
        (between, lambda z: _between(noise, z[0], z[1])),
    )
    found = np.zeros((3, len(y)))
    for rows, compute in parts:
        if rows.any():
            found[:, rows] = compute((low[rows], high[rows]))
    found[0, exact] += np.log(scale) + logs[exact, 0]
    # The derivatives are those with respect to z, which increases with the score.
    return found[0], found[1] / scale, found[2] / scale**2


def _logs(y: Floats) -> Floats:
    """Logarithms of the bounds, (n, 2)."""
    with np.errstate(divide="ignore"):
        found: Floats = np.log(y[:, [LOWER, UPPER]])
    return found


def _kinds(y: Floats, places: Floats) -> tuple[Mask, Mask, Mask, Mask]:
    """Which rows have exact times, lower bounds, upper bounds, and intervals, (n,) each."""
    with np.errstate(invalid="ignore"):
        exact = np.isfinite(places).all(axis=1) & (places[:, 1] - places[:, 0] < _NARROWEST)
    after = ~exact & (y[:, UPPER] == np.inf)
    before = ~exact & (y[:, LOWER] == 0) & ~after
    return exact, after, before, ~(exact | after | before)


class Residuals:
    """Logarithms of times minus their locations, by which the scale is estimated."""

    def __init__(self, distribution: str, y: Floats, scores: Floats, weight: Floats | None) -> None:
        self._noise = DISTRIBUTIONS[distribution]
        places = _logs(y) + scores[:, None]
        kinds = _kinds(y, places)
        self._parts = [places[kind].T for kind in kinds]
        self.exact = self._parts[0][0]
        # In the order of the slopes; sums do not depend on the order of the rows.
        self.weight = None if weight is None else np.concatenate([weight[kind] for kind in kinds])

    def slopes(self, scale: float) -> Floats:
        """Derivatives of the negative log likelihood by the logarithm of the scale, (n,)."""
        noise = self._noise
        (z, _), (a, _), (_, b), (low, high) = (
            np.clip(part / scale, -_FARTHEST, _FARTHEST) for part in self._parts
        )
        _, at_low, at_high = _ends(noise, low, high)
        return np.concatenate(
            [
                1.0 + z * noise.slope(z),
                -a * np.exp(noise.log_density(a) - noise.log_above(a)),
                b * np.exp(noise.log_density(b) - noise.log_below(b)),
                high * at_high - low * at_low,
            ]
        )


def _exact(noise: Lifetimes, z: Floats) -> Derivatives:
    return -noise.log_density(z), noise.slope(z), -noise.bend(z)


def _after(noise: Lifetimes, z: Floats) -> Derivatives:
    above = noise.log_above(z)
    hazard = np.exp(noise.log_density(z) - above)
    return -above, -hazard, hazard * (noise.slope(z) + hazard)


def _before(noise: Lifetimes, z: Floats) -> Derivatives:
    below = noise.log_below(z)
    ratio = np.exp(noise.log_density(z) - below)
    return -below, ratio, ratio * (ratio - noise.slope(z))


def _between(noise: Lifetimes, low: Floats, high: Floats) -> Derivatives:
    probability, at_low, at_high = _ends(noise, low, high)
    bend = (at_high - at_low) ** 2 - (noise.slope(high) * at_high - noise.slope(low) * at_low)
    return -probability, at_high - at_low, bend


def _ends(noise: Lifetimes, low: Floats, high: Floats) -> Derivatives:
    """Logarithm of the probability of an interval, and densities at its ends, divided by it."""
    above, below = noise.log_above(low), noise.log_below(high)
    # The smaller tail keeps its digits.
    probability = np.where(
        low > 0,
        above + _log_one_minus_exp(np.minimum(noise.log_above(high) - above, -1e-300)),
        below + _log_one_minus_exp(np.minimum(noise.log_below(low) - below, -1e-300)),
    )
    at_low = np.exp(noise.log_density(low) - probability)
    at_high = np.exp(noise.log_density(high) - probability)
    return probability, at_low, at_high
