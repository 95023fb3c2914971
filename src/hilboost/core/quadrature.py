"""Integrals of quantiles over their levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from hilboost.core.dtypes import Floats

_NODES = 64


@cache
def _unit_nodes() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1], dense at both ends, where quantiles may be infinite."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    s, ds = 0.5 * (x + 1), 0.5 * w
    return s**3 * (10 - 15 * s + 6 * s**2), ds * 30 * (s * (1 - s)) ** 2


def nodes_between(low: float, high: float) -> tuple[Floats, Floats]:
    """Return levels and weights of an integral between two levels, (m,) each."""
    s, w = _unit_nodes()
    return low + (high - low) * s, (high - low) * w


def crps_of_quantiles(y: Floats, below: Floats, quantile: Callable[[Floats], Floats]) -> Floats:
    """Compute the CRPS from quantiles, (n,): twice the integral of pinball losses.

    ``y`` (n, 1) has the levels ``below`` (n, 1), at which the pinball loss has a kink.
    """
    s, w = _unit_nodes()
    lower, upper = below * s, below + (1 - below) * s
    with np.errstate(invalid="ignore"):  # infinite quantiles of levels 0 and 1
        under = np.where(lower > 0, lower * (y - quantile(lower)), 0.0) * below
        over = np.where(upper < 1, (1 - upper) * (quantile(upper) - y), 0.0) * (1 - below)
    return 2 * (under + over) @ w


def crps_of_counts(y: Floats, cdf: Callable[[Floats], Floats], largest: int) -> Floats:
    """Compute the CRPS of counts up to ``largest``, (n,); ``y`` is (n, 1)."""
    counts = np.arange(largest + 1.0)[None]
    inside = ((cdf(counts) - (y <= counts)) ** 2).sum(axis=1)
    outside = np.maximum(y[:, 0] - largest - 1, 0.0) + np.maximum(-y[:, 0], 0.0)
    fraction = np.ceil(y) - y  # targets between counts
    part = fraction * (1 - 2 * cdf(np.floor(y)))
    return inside + outside + np.where(y >= 0, part, 0.0)[:, 0]
