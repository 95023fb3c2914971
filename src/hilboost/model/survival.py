"""Survival models: the encoding of times, and what turns risks into survival functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import DataWarning, InvalidData, warn_caller
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.distributions import TabulatedDistribution
from hilboost.losses._risk_sets import Risks
from hilboost.losses._survival import (
    CAUSE,
    DISTRIBUTIONS,
    LOWER,
    ONES_AND_TWOS,
    UPPER,
    are_ones_and_twos,
    is_event,
)
from hilboost.losses.discrete_hazard import DiscreteHazard
from hilboost.model.codecs import TargetCodec
from hilboost.validation.survival import (
    SurvivalLabels,
    check_entry,
    check_strata,
    check_times,
    refuse_times_of_zero,
)

_FARTHEST, _N_POINTS = 12.0, 241  # of logarithms of times from their location, in scales
_LEAST_HAZARD, _PARTS, _CLIPPED = 1e-12, 16, 500.0
_LARGEST_LOGARITHM = 650.0  # times, and their quotients by a least hazard, are finite


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
        """Distributions of times, with straight lines between the times of events.

        After the last event, the hazard of each row remains at its mean.
        """
        if self.discrete is None and self.hazard is None:
            assert self.distribution is not None
            z = np.append(-np.inf, np.linspace(-_FARTHEST, _FARTHEST, _N_POINTS))
            times = _times(self.location - raw[:, :1] + self.scale * z)
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
        return _times(noise - risk)


def _times(logarithms: Floats) -> Floats:
    return np.exp(np.minimum(logarithms, _LARGEST_LOGARITHM))


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


@dataclass(frozen=True)
class SurvivalCodec(TargetCodec):
    """Codec of survival times: lower and upper bound, entry time, and number of the stratum."""

    kind = "survival"
    # (s,) array or None: labels of the strata, sorted; ``None`` without strata
    strata_labels: NDArray[Any] | None = None
    n_causes: int = 1  # number of causes of events
    ends: Floats | None = None  # (m,) float64 or None: ends of the intervals of discrete hazards
    intervals: bool = True  # whether the loss takes times that are known to lie in an interval

    @classmethod
    def learn(
        cls, y: SurvivalLabels, n: int, n_intervals: int | None = None, intervals: bool = True
    ) -> tuple[SurvivalCodec, Floats]:
        """Return the codec and the encoded training target.

        The intervals, if there are any, hold about the same number of events.
        """
        labels = None if y.strata is None else np.unique(check_strata(y.strata, n))
        bounds = check_times(y.times, n, intervals)
        lower, upper, cause = bounds
        refuse_times_of_zero(lower, upper)
        n_causes = max(1, int(cause.max(initial=1)))
        ends = None
        if n_intervals is not None:
            if are_ones_and_twos(cause):
                warn_caller(f"{ONES_AND_TWOS}; otherwise, these are two causes.", DataWarning)
            times = lower[np.isfinite(upper) & (lower > 0)]
            levels = np.arange(1, n_intervals + 1) / n_intervals
            if len(times):
                ends = np.unique(np.quantile(times, levels, method="inverted_cdf"))
        codec = cls(labels, n_causes, ends, intervals)
        return codec, codec._encoded(y, n, bounds)

    def of_survival(self) -> SurvivalCodec:
        """Return the codec itself."""
        return self

    def n_outputs(self, loss: Loss) -> int:
        """Return one, or the number of intervals of all causes."""
        return 1 if self.ends is None else len(self.ends) * self.n_causes

    def encode(self, y: Any, n: int, allow_missing: bool = False) -> Floats:
        """Return bounds, entry times and strata, (n, 4), and causes, if there are several."""
        return self._encoded(y, n, check_times(y.times, n, self.intervals))

    def _encoded(self, y: SurvivalLabels, n: int, times: tuple[Floats, Floats, Floats]) -> Floats:
        """Join the bounds and causes of ``check_times`` with entry times and strata."""
        lower, upper, cause = times
        if cause.max(initial=0) > self.n_causes:
            raise InvalidData(
                f"y contains the cause {cause.max():g}, but the training rows contain "
                f"{self.n_causes}; pass the causes of the fit."
            )
        causes = [cause] if self.n_causes > 1 else []
        entry = np.zeros(n) if y.entry is None else check_entry(y.entry, lower, n)
        return np.column_stack([lower, upper, entry, self.strata_numbers(y.strata, n), *causes])

    def averaged(self, target: Target, rows: NDArray[np.uint32] | None = None) -> Target:
        """Return events of each cause minus those expected without inputs, (n, n_causes).

        These are martingale residuals: the expected number is the estimate of Nelson and Aalen of
        the cumulative hazard of the cause, from the training rows, until the time of the row.
        """
        learned = target if rows is None else target.rows(rows)
        time, cause = target.y[:, LOWER], self._causes(target)
        found = np.empty((len(time), self.n_causes))
        for k in range(1, self.n_causes + 1):
            times, hazard = _nelson_aalen(learned, self._causes(learned) == k)
            expected = np.append(0.0, hazard)[np.searchsorted(times, time, side="right")]
            found[:, k - 1] = (cause == k) - expected
        return target.with_y(found)

    def _causes(self, target: Target) -> Floats:
        """Causes of the events of the rows, (n,); 0 for censored rows."""
        causes = target.y[:, CAUSE] if self.n_causes > 1 else 1.0
        return np.where(is_event(target), causes, 0.0)

    def strata_numbers(self, strata: PerRow, n: int) -> Floats:
        """Return the number of the stratum of each row, (n,)."""
        if self.strata_labels is None:
            if strata is not None:
                raise InvalidData("the model was fitted without strata; pass none.")
            return np.zeros(n)
        if strata is None:
            raise InvalidData("the model was fitted with strata; pass the stratum of each row.")
        found = check_strata(strata, n)
        places = np.searchsorted(self.strata_labels, found)
        places = np.minimum(places, len(self.strata_labels) - 1)
        unknown = self.strata_labels[places] != found
        if unknown.any():
            raise InvalidData(
                f"strata contains {found[unknown].tolist()[0]!r}, which is not one of the strata "
                f"of the fit, {self.strata_labels.tolist()}."
            )
        return places.astype(np.float64)

    def strata(self, target: Target) -> NDArray[Any]:
        """Use censored rows and events of each cause as strata of held-out parts."""
        event = np.isfinite(target.y[:, UPPER]).astype(np.float64)
        return target.y[:, CAUSE] if self.n_causes > 1 else event


def _nelson_aalen(target: Target, ends: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Times of rows (u,), ascending, and the cumulative hazard of the ends of rows there, (u,)."""
    time, weight = target.y[:, LOWER], target.row_weights
    order = np.lexsort((weight, ends, time))  # sums do not depend on the order of the rows
    time, weight, ends = time[order], weight[order], ends[order]
    first = np.flatnonzero(np.append(True, np.diff(time) > 0)) if len(time) else np.empty(0, int)
    at_risk = np.cumsum(weight[::-1])[::-1][first]
    return time[first], np.cumsum(np.add.reduceat(weight * ends, first) / at_risk)
