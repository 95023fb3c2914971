"""Survival functions of fitted models, from the training rows and their predicted risks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses._lifetimes import DISTRIBUTIONS
from hilboost.losses._survival import UPPER
from hilboost.losses.cox import Risks


@dataclass(frozen=True)
class SurvivalCurves:
    """What turns risks into survival functions.

    Attributes
    ----------
    times : (u,) float64
        Times of the events in the training rows, ascending.
    hazard : (s, u) float64 or None
        Cumulative hazard of each stratum at these times for a risk of zero.
    distribution : str or None
        Distribution of accelerated failure times.
    scale : float
        Its scale.
    """

    times: Floats
    hazard: Floats | None = None
    distribution: str | None = None
    scale: float = 1.0

    def cumulative_hazard(self, risk: Floats, strata: Floats, times: Floats) -> Floats:
        """Cumulative hazard at some times.

        Parameters
        ----------
        risk : (n,) float64
        strata : (n,) float64
            Numbers of the strata.
        times : (m,) float64

        Returns
        -------
        (n, m) float64
        """
        if self.hazard is None:
            assert self.distribution is not None
            with np.errstate(divide="ignore"):
                z = (np.log(times)[None] + risk[:, None]) / self.scale
            return -DISTRIBUTIONS[self.distribution].log_above(np.clip(z, -500.0, 500.0))
        place = np.searchsorted(self.times, times, side="right")
        padded = np.column_stack([np.zeros(len(self.hazard)), self.hazard])
        return np.exp(risk)[:, None] * padded[strata.astype(np.intp)][:, place]

    def median(self, risk: Floats) -> Floats:
        """Median time of accelerated failure times, (n,)."""
        assert self.distribution is not None
        return np.exp(self.scale * DISTRIBUTIONS[self.distribution].median - risk)


def event_times(target: Target) -> Floats:
    """Times of the events, or of the ends of intervals, ascending."""
    upper = target.y[:, UPPER]
    return np.unique(upper[np.isfinite(upper)])


def baseline(target: Target, risk: Floats, ties: str, n_strata: int) -> SurvivalCurves:
    """Estimate the cumulative hazard of each stratum for a risk of zero (Breslow 1972).

    Parameters
    ----------
    target : Target
    risk : (n,) float64
    ties : {"breslow", "efron"}
    n_strata : int

    Returns
    -------
    SurvivalCurves
    """
    found, times = Risks.of(target, risk, ties), event_times(target)
    total = found.cumulative() * np.exp(-found.shift)
    hazard = np.zeros((n_strata, len(times)))
    for stratum in range(n_strata):
        here = np.flatnonzero(found.strata == stratum)[::-1]  # ascending times
        place = np.searchsorted(found.times[here], times, side="right")
        hazard[stratum] = np.append(0.0, total[here])[place]
    return SurvivalCurves(times, hazard)
