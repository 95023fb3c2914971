"""Negative partial log likelihood of the proportional hazards model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import empty_sums, is_whole, prefix_sums, sums_of_groups
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.group_loss import GroupLoss
from hilboost.core.target import Target
from hilboost.losses._survival import (
    ENTRY,
    LOWER,
    STRATUM,
    check_columns,
    check_right_censored,
    is_event,
    weights_of,
)

TIES = ("breslow", "efron")
_EXPONENTS = (-600.0, 600.0)  # no sum of the powers of events is zero or infinite


class Cox(GroupLoss):
    """Negative partial log likelihood of Cox (1972); ``F`` is the logarithm of the relative hazard.

    Parameters
    ----------
    ties : {"breslow", "efron"}, default="breslow"
        Approximation for events at the same time.

    Raises
    ------
    InvalidParameter
        If the approximation has another name.

    Notes
    -----
    Rows compete with the rows of their stratum that are at risk at the time of an event, from their
    entry on.  Weights count rows: with ``"breslow"``, a row of weight 2 is equivalent to two rows.
    The hessian is that of independent rows, which bounds the hessian matrix.  Sums over risk sets
    are exact.  The cost is O(n log n), or O(n) for rows in descending order of time.
    """

    survival_name = "cox"

    def __init__(self, ties: str = "breslow") -> None:
        if ties not in TIES:
            raise InvalidParameter(f"ties must be 'breslow' or 'efron'; got {ties!r}.")
        self.ties = ties

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameter ``ties``."""
        return cls(parameters.get("ties", "breslow"))

    def check(self, target: Target) -> None:
        """Check that there are exact and right-censored times, and an event."""
        check_columns(target)
        check_right_censored(target, "cox")
        if not is_event(target).any():
            raise InvalidData(
                "y contains no event, so that hazards cannot be estimated; pass rows with events."
            )

    def initial_raw(self, target: Target) -> Floats:
        """Zero: the partial likelihood does not depend on a constant."""
        return np.zeros(1)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Term of each row, (n,): zero for censored rows."""
        found = Risks.of(target, raw[:, 0], self.ties)
        values = np.zeros(len(raw))
        events = found.event
        values[found.order[events]] = found.log_risk[found.tie[events]]
        values[found.order[events]] -= raw[found.order[events], 0]
        return values

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Event minus expected number of events; the hessian is the expected number."""
        found = Risks.of(target, raw[:, 0], self.ties)
        expected = np.empty(len(raw))
        expected[found.order] = found.power * found.hazard_of_rows()
        event = np.empty(len(raw))
        event[found.order] = found.event
        return Gradients((event - expected)[:, None], expected[:, None])


@dataclass(frozen=True)
class Risks:
    """Sums over risk sets, for all rows in the order of strata and descending times.

    Attributes
    ----------
    order : (n,) int64
        Numbers of the rows in this order, which all arrays (n,) below have.
    event : (n,) bool
        Events of positive weight.
    power : (n,) float64
        ``exp(F - shift)``.
    tie : (n,) int64
        Number of the time of each row within its stratum, counted over all strata.
    entered : (n,) int64
        Number of the tie before whose events the row enters: these it does not compete in.
    times, strata : (u,) float64
        Time and stratum of each tie.
    hazard, partial_hazard : (u,) float64
        Increment of the cumulative hazard, and the part of it that rows with an event at this time
        have, times ``exp(shift)``.
    log_risk : (u,) float64
        Mean logarithm of the sum over the risk set at the events of each tie.
    shift : float
    """

    order: NDArray[np.int64]
    event: NDArray[np.bool_]
    power: Floats
    tie: NDArray[np.int64]
    entered: NDArray[np.int64]
    times: Floats
    strata: Floats
    hazard: Floats
    partial_hazard: Floats
    log_risk: Floats
    shift: float

    @classmethod
    def of(cls, target: Target, scores: Floats, ties: str) -> Self:
        """Compute the sums for the predictions (n,)."""
        time, stratum = target.y[:, LOWER], target.y[:, STRATUM]
        order = np.lexsort((-time, stratum))
        time, stratum, entry = time[order], stratum[order], target.y[order, ENTRY]
        weight = weights_of(target)[order]
        shift = float(scores.max(initial=-np.inf, where=weights_of(target) > 0))
        power = np.exp(np.clip(scores[order] - shift, *_EXPONENTS))
        first = np.ones(len(time), dtype=bool)
        first[1:] = (time[1:] != time[:-1]) | (stratum[1:] != stratum[:-1])
        tie, starts = np.cumsum(first) - 1, np.flatnonzero(first)
        n_ties, event = len(starts), is_event(target)[order] & (weight > 0)
        risk = _at_risk(power, weight, stratum, np.append(starts[1:], len(time)) - 1)
        entered = _ties_entered(entry, stratum, time[starts], stratum[starts], tie)
        if (entry > 0).any():
            risk = risk - _not_entered(power, weight, entered, stratum[starts])
        events = np.where(event, tie, -1)
        mass = sums_of_groups(events, weight, None, n_ties)
        own = sums_of_groups(events, power, weight, n_ties)
        risk = np.maximum(risk, own)
        count = np.bincount(tie[event], minlength=n_ties)
        hazard, partial, log_risk = _increments(risk, own, mass, count, ties)
        return cls(
            *(order, event, power, tie, entered, time[starts], stratum[starts]),
            *(hazard, partial, log_risk + shift, shift),
        )

    def cumulative(self) -> Floats:
        """Cumulative hazard of each stratum at its times, times ``exp(shift)``, (u,)."""
        found = np.empty(len(self.times))
        for stratum in np.unique(self.strata):
            here = np.flatnonzero(self.strata == stratum)[::-1]
            found[here] = np.cumsum(self.hazard[here])
        return found

    def hazard_of_rows(self) -> Floats:
        """Hazard that each row has been exposed to, times ``exp(shift)``, (n,)."""
        total = np.append(self.cumulative(), 0.0)
        exposed = total[self.tie] - total[self.entered]
        missed = self.hazard - self.partial_hazard
        return exposed - np.where(self.event, missed[self.tie], 0.0)


def _at_risk(power: Floats, weight: Floats, stratum: Floats, last: NDArray[np.int64]) -> Floats:
    """Sum of the powers of all rows with at least the time of each tie, whose last row is given."""
    n = len(power)
    starts = np.append(np.flatnonzero(np.diff(stratum, prepend=np.nan) != 0), n)
    # A row of power zero after each stratum has the sum of the whole stratum before it.
    at = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    padded, heavy = np.zeros(n + len(starts) - 1), np.ones(n + len(starts) - 1)
    places = np.arange(n) + at
    padded[places], heavy[places] = power, weight
    result, total = np.empty(len(padded)), empty_sums(1)
    prefix_sums(*(padded, heavy, is_whole(heavy), starts + np.arange(len(starts)), total, result))
    return result[places[last] + 1]


def _ties_entered(
    entry: Floats, stratum: Floats, times: Floats, strata: Floats, tie: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The last tie, in descending order of time, that is not after the entry of each row.

    The number of ties if the row enters before all times of its stratum.
    """
    n_ties = len(times)
    if not (entry > 0).any():
        return np.full(len(entry), n_ties)
    found = np.empty(len(entry), dtype=np.int64)
    for value in np.unique(strata):
        ties, rows = np.flatnonzero(strata == value), stratum == value
        place = np.searchsorted(-times[ties], -entry[rows])
        found[rows] = np.append(ties, n_ties)[place]
    return found


def _not_entered(
    power: Floats, weight: Floats, entered: NDArray[np.int64], strata: Floats
) -> Floats:
    """Sum of the powers of the rows that enter at the time of each tie or later."""
    n_ties = len(strata)
    late = np.where(entered < n_ties, entered, -1)
    at_tie = sums_of_groups(late, power, weight, n_ties)
    found = np.empty(n_ties)
    for value in np.unique(strata):
        here = strata == value
        found[here] = np.cumsum(at_tie[here])
    return found


def _increments(
    risk: Floats, own: Floats, mass: Floats, count: NDArray[np.int64], ties: str
) -> tuple[Floats, Floats, Floats]:
    """Hazard of each tie, the part of it for its events, and the mean logarithm of its risk."""
    some = count > 0
    safe = np.where(some, risk, 1.0)
    if ties == "breslow" or count.max(initial=0) < 2:
        hazard = np.where(some, mass / safe, 0.0)
        return hazard, hazard, np.where(some, np.log(safe), 0.0)
    # Each of m events at one time sees the others leave one after the other.
    tie = np.repeat(np.arange(len(count)), count)
    rank = np.arange(len(tie)) - np.repeat(np.cumsum(count) - count, count)
    part = rank / count[tie]
    left = risk[tie] - part * own[tie]
    step = (mass / np.maximum(count, 1))[tie] / left
    n_ties = len(count)
    hazard = np.bincount(tie, step, n_ties).astype(np.float64)
    partial = np.bincount(tie, step * (1 - part), n_ties).astype(np.float64)
    log_risk = np.bincount(tie, np.log(left), n_ties) / np.maximum(count, 1)
    return hazard, partial, log_risk
