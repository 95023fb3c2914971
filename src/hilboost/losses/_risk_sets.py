"""Sums over the rows that are at risk at the times of events."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import (
    empty_sums,
    is_whole,
    masses_of_groups,
    prefix_sums,
    sums_of_groups,
)
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.target import Target
from hilboost.losses._survival import ENTRY, LOWER, STRATUM, is_event

_MOST_KEPT = 100_000  # rows for which the last sums are kept
# exponents: no sum of the powers of events is zero, and its product with the power of a row of zero
# weight, whose score may be the largest, is finite
_SMALLEST, _LARGEST = -600.0, 50.0


@dataclass(frozen=True)
class RiskSets:
    """Quantities independent of the predictions, for all rows by stratum and descending time."""

    # (n,) int64: numbers of the rows in this order, which all arrays (n,) below have
    order: Ints
    event: NDArray[np.bool_]  # (n,) bool: events of positive weight
    event_rows: Ints  # (m,) int64: their rows in the target
    weight: Floats | None  # (n,) float64 or None
    # (n,) int64: number of the time of each row within its stratum, counted over all strata
    tie: Ints
    # (m,), (n,) int64: the same of the events, and of all rows with -1 for the others
    tie_of_events: Ints
    tie_or_none: Ints
    # (n,) int64 or None: number of the tie before whose events the row enters: these it does not
    # compete in. ``None`` if all rows enter at time zero.
    entered: Ints | None
    times: Floats  # (u,) float64: time and stratum of each tie
    strata: Floats  # (u,) float64: time and stratum of each tie
    first_ties: list[int]  # first tie of each stratum, and the number of ties
    mass: Floats  # (u,) float64: weight of the events of each tie
    count: Ints  # (u,) int64: number of the events of each tie
    # for sums over all rows up to each one, with a row of power zero after each stratum: places of
    # the rows, weights, whether these are whole, first places of the strata, and place after each
    # tie
    padded: tuple[Any, ...]

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return what was found at the first call with the target."""
        kept = target.memory.setdefault("risk sets", [])
        if not kept:
            kept.append(cls._found(target))
        return kept[0]

    @classmethod
    def _found(cls, target: Target) -> Self:
        time, stratum = target.y[:, LOWER], target.y[:, STRATUM]
        order = np.lexsort((-time, stratum))
        time, stratum, entry = time[order], stratum[order], target.y[order, ENTRY]
        weight = None if target.weight is None else target.weight[order]
        first = np.ones(len(time), dtype=bool)
        first[1:] = (time[1:] != time[:-1]) | (stratum[1:] != stratum[:-1])
        tie, starts = np.cumsum(first) - 1, np.flatnonzero(first)
        n_ties, event = len(starts), is_event(target)[order]
        if weight is not None:
            event &= weight > 0
        times, strata, tie_or_none = time[starts], stratum[starts], np.where(event, tie, -1)
        return cls(
            *(order, event, order[event], weight, tie, tie[event], tie_or_none),
            *(_ties_entered(entry, stratum, times, strata), times, strata),
            [*np.flatnonzero(np.diff(strata, prepend=np.nan) != 0).tolist(), n_ties],
            masses_of_groups(tie_or_none, weight, n_ties),
            np.bincount(tie[event], minlength=n_ties),
            _padded(weight, stratum, np.append(starts[1:], len(time)) - 1),
        )

    def at_risk(self, power: Floats) -> Floats:
        """Sum of the powers of the rows at risk at each tie, (u,)."""
        places, heavy, whole, starts, after = self.padded
        padded, result, total = np.zeros(starts[-1]), np.empty(starts[-1]), empty_sums(1)
        padded[places] = power
        prefix_sums(padded, heavy, whole, starts, total, result)
        found: Floats = result[after]
        return found if self.entered is None else found - self._not_entered(self.entered, power)

    def _not_entered(self, entered: Ints, power: Floats) -> Floats:
        """Sum of the powers of the rows that enter at the time of each tie or later."""
        n_ties = len(self.times)
        late = np.where(entered < n_ties, entered, -1)
        at_tie = sums_of_groups(late, power, self.weight, n_ties)
        for first, end in pairwise(self.first_ties):
            at_tie[first:end] = np.cumsum(at_tie[first:end])
        return at_tie


@dataclass(frozen=True)
class Risks:
    """Sums over risk sets for some predictions; the sums of the last ones are kept."""

    sets: RiskSets
    power: Floats  # (n,) float64: ``exp(F - shift)``, in the order of the sets
    # (u,) float64: increment of the cumulative hazard, and the part of it that rows with an event
    # at this time have, times ``exp(shift)``
    hazard: Floats
    partial_hazard: Floats
    # (u,) float64: mean logarithm of the sum over the risk set at the events of each tie
    log_risk: Floats
    shift: float

    @classmethod
    def of(cls, target: Target, scores: Floats, ties: str) -> Self:
        """Compute the sums for the predictions (n,), or return the last sums."""
        last = target.memory.get(f"risks, {ties}")
        if last is not None and np.array_equal(last[0], scores):
            return last[1]
        found = cls._found(RiskSets.of(target), target, scores, ties)
        if len(scores) <= _MOST_KEPT:
            target.memory[f"risks, {ties}"] = [scores.copy(), found]
        return found

    @classmethod
    def _found(cls, sets: RiskSets, target: Target, scores: Floats, ties: str) -> Self:
        counted = target.weight is None or target.weight > 0
        shift = float(scores.max(initial=-np.inf, where=counted))
        power = scores[sets.order] - shift
        power = np.exp(np.clip(power, _SMALLEST, _LARGEST, out=power), out=power)
        own = sums_of_groups(sets.tie_or_none, power, sets.weight, len(sets.times))
        risk = np.maximum(sets.at_risk(power), own)
        hazard, partial, log_risk = _increments(risk, own, sets.mass, sets.count, ties)
        return cls(sets, power, hazard, partial, log_risk + shift, shift)

    def cumulative(self) -> Floats:
        """Cumulative hazard of each stratum at its times, times ``exp(shift)``, (u,)."""
        found = np.empty(len(self.hazard))
        for first, end in pairwise(self.sets.first_ties):
            found[first:end] = np.cumsum(self.hazard[first:end][::-1])[::-1]
        return found

    def hazard_of_rows(self) -> Floats:
        """Hazard that each row has been exposed to, times ``exp(shift)``, (n,)."""
        sets, total = self.sets, self.cumulative()
        exposed: Floats = total[sets.tie]
        if sets.entered is not None:
            exposed -= np.append(total, 0.0)[sets.entered]
        if self.partial_hazard is self.hazard:
            return exposed
        missed = self.hazard - self.partial_hazard
        return exposed - np.where(sets.event, missed[sets.tie], 0.0)


def _padded(weight: Floats | None, stratum: Floats, last: Ints) -> tuple[Any, ...]:
    """Arguments of sums before every row, with a row of power zero after each stratum."""
    n = len(stratum)
    starts = np.append(np.flatnonzero(np.diff(stratum, prepend=np.nan) != 0), n)
    places = np.arange(n) + np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    heavy, after = np.empty(0), places[last] + 1
    if weight is not None:
        heavy = np.ones(n + len(starts) - 1)
        heavy[places] = weight
    used = slice(n) if len(starts) == 2 else places
    return used, heavy, is_whole(heavy), starts + np.arange(len(starts)), after


def _ties_entered(entry: Floats, stratum: Floats, times: Floats, strata: Floats) -> Ints | None:
    """The last tie, in descending order of time, that is not after the entry of each row.

    The number of ties if the row enters before all times of its stratum; ``None`` if no row enters
    after time zero.
    """
    if not (entry > 0).any():
        return None
    n_ties, found = len(times), np.empty(len(entry), dtype=np.int64)
    for value in np.unique(strata):
        ties, rows = np.flatnonzero(strata == value), stratum == value
        place = np.searchsorted(-times[ties], -entry[rows])
        found[rows] = np.append(ties, n_ties)[place]
    return found


def _increments(
    risk: Floats, own: Floats, mass: Floats, count: Ints, ties: str
) -> tuple[Floats, Floats, Floats]:
    """Hazard of each tie, the part of it for its events, and the mean logarithm of its risk."""
    some = count > 0
    safe = np.where(some, risk, 1.0)
    if ties == "breslow" or count.max(initial=0) < 2:
        hazard = mass / safe  # zero, as the mass is, at times without events
        return hazard, hazard, np.log(safe)
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
