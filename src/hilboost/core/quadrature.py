"""Integrals of quantiles over their levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from hilboost.core.dtypes import Floats

_NODES = 64
_MOST_COUNTS, _PARTS = 2000, 16  # counts that are summed one by one, and parts of larger steps


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


def crps_of_counts(
    y: Floats, cdf: Callable[[Floats], Floats], quantile: Callable[[Floats], Floats]
) -> Floats:
    """Compute the CRPS of counts for ``y`` (n, 1), (n,): sums of squares of probabilities.

    They are exact for small counts.  Otherwise, squares are straight lines between nodes.
    """
    inside = np.maximum(y, 0.0)
    first = np.ceil(inside)
    nodes = np.sort(np.append(_nodes(quantile, len(y)), first, axis=1), axis=1)
    level, steps, below = cdf(nodes), np.diff(nodes, axis=1), nodes[:, :-1] < first
    begins, ends = (np.where(below, one, 1 - one) ** 2 for one in (level[:, :-1], level[:, 1:]))
    sums = 0.5 * (steps * (begins + ends) + (begins - ends) * (steps > 0))
    between = (first - inside) * (1 - 2 * cdf(np.floor(inside)))  # for targets between counts
    return sums.sum(axis=1) + (between + inside - y)[:, 0]


def _nodes(quantile: Callable[[Floats], Floats], n: int) -> Floats:
    """Ascending counts from 0 with nearly all probability, (n, m): all, unless there are many."""
    top = quantile(np.full((n, 1), 1 - 1e-9))
    largest = float(top.max(initial=0.0))
    if largest <= _MOST_COUNTS:
        return np.tile(np.arange(largest + 2), (n, 1))
    ends = np.column_stack([np.zeros(n), quantile(np.tile(_unit_nodes()[0], (n, 1))), top])
    parts = np.sin(0.5 * np.pi * np.arange(1, _PARTS + 1) / _PARTS) ** 2  # dense at both ends
    steps = np.diff(ends, axis=1)[:, :, None] * parts
    inside = np.rint(ends[:, :-1, None] + steps).reshape(n, -1)
    return np.append(ends[:, :1], inside, axis=1)
