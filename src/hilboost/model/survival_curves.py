"""Survival functions of fitted models, from the training rows and their predicted risks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.distributions import TabulatedDistribution
from hilboost.losses._lifetimes import DISTRIBUTIONS
from hilboost.losses._risk_sets import Risks
from hilboost.losses._survival import UPPER
from hilboost.losses.discrete_hazard import DiscreteHazard

_FARTHEST, _N_POINTS = 12.0, 241  # of logarithms of times from their location, in scales
_LEAST_HAZARD, _PARTS, _CLIPPED = 1e-12, 16, 500.0


@dataclass(frozen=True)
class SurvivalCurves:
    """Baseline that turns risks into survival functions."""

    times: Floats  # (u,) float64: times of the events in the training rows, ascending
    # (s, u) float64 or None: cumulative hazard of each stratum at these times for a risk of zero;
    # ``None`` if ``raw`` determines the hazards
    hazard: Floats | None = None
    distribution: str | None = None  # distribution of accelerated failure times
    scale: float = 1.0  # its scale
    location: float = 0.0  # added to the logarithms of its times
    discrete: DiscreteHazard | None = None  # the loss of discrete hazards

    def cumulative_hazard(self, raw: Floats, strata: Floats, times: Floats) -> Floats:
        """Cumulative hazard (n, m) at some times (m,).

        ``raw`` (n, r) is one column of risks, or of the logits of discrete hazards.
        """
        if self.discrete is not None:
            return _between_ends(self.discrete.ends, self.discrete.cumulative_hazards(raw), times)
        risk = raw[:, 0]
        if self.hazard is None:
            assert self.distribution is not None
            with np.errstate(divide="ignore"):
                z = (np.log(times)[None] + risk[:, None] - self.location) / self.scale
            return -DISTRIBUTIONS[self.distribution].log_above(np.clip(z, -_CLIPPED, _CLIPPED))
        place = np.searchsorted(self.times, times, side="right")
        padded = np.column_stack([np.zeros(len(self.hazard)), self.hazard])
        return np.exp(risk)[:, None] * padded[strata.astype(np.intp)][:, place]

    def cumulative_incidence(self, raw: Floats, times: Floats) -> Floats:
        """Probability of an event of each cause until some times, (n, n_causes, m).

        Within an interval, the total hazard is constant, and causes have constant shares of it.
        """
        loss = self.discrete
        assert loss is not None
        hazards, total = loss.hazards(raw), loss.cumulative_hazards(raw)
        share = hazards / np.maximum(hazards.sum(axis=1, keepdims=True), 1e-300)
        before = np.column_stack([np.zeros(len(raw)), total[:, :-1]])
        inside = share * (np.exp(-before) - np.exp(-total))[:, None]
        summed = np.cumsum(inside, axis=2) - inside
        place = np.minimum(np.searchsorted(loss.ends, times), len(loss.ends) - 1)
        now = np.exp(-_between_ends(loss.ends, total, times))
        gained = np.exp(-before)[:, place] - now
        return summed[:, :, place] + share[:, :, place] * gained[:, None]

    def distribution_of(self, raw: Floats, strata: Floats) -> TabulatedDistribution:
        """Distributions of times, with straight lines between those of events.

        After the last event, the hazard of each row remains at its mean.
        """
        if self.discrete is None and self.hazard is None:
            assert self.distribution is not None
            z = np.append(-np.inf, np.linspace(-_FARTHEST, _FARTHEST, _N_POINTS))
            times = np.exp(self.location - raw[:, :1] + self.scale * z)
            hazard = -DISTRIBUTIONS[self.distribution].log_above(np.maximum(z, -_CLIPPED))[None]
        else:
            times = np.append(0.0, self.times)[None]
            if self.discrete is not None:  # the hazard is constant between the ends
                ends = np.append(0.0, self.discrete.ends)
                steps = np.arange(_PARTS * len(ends) - _PARTS + 1) / _PARTS
                times = np.interp(steps, np.arange(len(ends)), ends)[None]
            hazard = self.cumulative_hazard(raw, strata, times[0])
        after = times[:, -1] / np.maximum(hazard[:, -1], _LEAST_HAZARD)
        tails = np.column_stack([np.zeros(len(after)), after])
        return TabulatedDistribution.of(times, -np.expm1(-hazard), tails)

    def median(self, risk: Floats) -> Floats:
        """Median time of accelerated failure times, (n,)."""
        assert self.distribution is not None
        noise = self.location + self.scale * DISTRIBUTIONS[self.distribution].median
        return np.exp(noise - risk)


def _between_ends(ends: Floats, values: Floats, times: Floats) -> Floats:
    """Interpolate values (n, m) at the ends of intervals, 0 at time 0; constant after the last."""
    begins, padded = np.append(0.0, ends), np.column_stack([np.zeros(len(values)), values])
    at = np.clip(times, 0.0, ends[-1])
    place = np.minimum(np.searchsorted(ends, at), len(ends) - 1)
    part = (at - begins[place]) / (ends[place] - begins[place])
    return padded[:, place] + part * (padded[:, place + 1] - padded[:, place])


def event_times(target: Target) -> Floats:
    """Times of the events, or of the ends of intervals, ascending."""
    upper = target.y[:, UPPER]
    return np.unique(upper[np.isfinite(upper)])


def baseline(target: Target, risk: Floats, ties: str, n_strata: int) -> SurvivalCurves:
    """Estimate the cumulative hazard of each stratum for a risk of zero (Breslow 1972)."""
    found, times = Risks.of(target, risk, ties), event_times(target)
    total = found.cumulative() * np.exp(-found.shift)
    hazard = np.zeros((n_strata, len(times)))
    for stratum in range(n_strata):
        here = np.flatnonzero(found.sets.strata == stratum)[::-1]  # ascending times
        place = np.searchsorted(found.sets.times[here], times, side="right")
        hazard[stratum] = np.append(0.0, total[here])[place]
    return SurvivalCurves(times, hazard)
