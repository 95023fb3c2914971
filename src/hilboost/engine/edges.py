"""Thresholds between the bins of one column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import masses_of_groups
from hilboost.core.dtypes import Floats
from hilboost.reductions.rows import ROUNDING, are_close, ends_of_equals

_HIGHEST = np.finfo(np.float64).max


def column_edges(values: Floats, weight: Floats | None, max_bins: int) -> Floats:
    """Compute the thresholds between the bins of one column, ascending.

    If there are at most ``max_bins`` distinct values, every value has its own bin, with the
    threshold halfway between neighbors.  Otherwise thresholds lie where the weighted distribution
    passes ``1 / max_bins, 2 / max_bins, …``; a more frequent value has a bin of its own.  So do
    ``-inf`` and ``inf``, next to which thresholds are the lowest and the highest finite numbers.
    Values that differ by rounding alone count as one.
    """
    values = values.astype(np.float64)
    mass: Floats | None
    if weight is None:
        distinct, mass = _sorted_masses(values)
    else:
        present = ~np.isnan(values)
        distinct, inverse = np.unique(values[present], return_inverse=True)
        mass = masses_of_groups(inverse, weight[present], len(distinct))
    finite = np.isfinite(distinct)
    if not finite.all():
        ends = np.array([-_HIGHEST, _HIGHEST])[np.isin([-np.inf, np.inf], distinct)]
        n_bins = max(1, max_bins - len(ends))
        inner = _edges_between(distinct[finite], None if mass is None else mass[finite], n_bins)
        return np.unique(np.concatenate([ends, inner])) if len(distinct) > 1 else np.empty(0)
    return _edges_between(distinct, mass, max_bins)


def _sorted_masses(values: Floats) -> tuple[Floats, Floats | None]:
    """Sort values in place; return the distinct ones, and how often each occurs.

    NaN are left out.  The numbers are ``None`` if all of them are one.
    """
    values.sort()
    values = values[: len(values) - np.count_nonzero(np.isnan(values))]
    ends = np.flatnonzero(values[1:] != values[:-1])
    if len(ends) >= len(values) - 1:
        return values, None
    ends = np.append(ends, len(values) - 1)
    return values[ends], np.diff(ends, prepend=-1).astype(np.float64)


def _edges_between(distinct: Floats, mass: Floats | None, max_bins: int) -> Floats:
    """Compute the thresholds between finite values, ascending, by their weights, or ones."""
    if len(distinct) <= 1:
        return np.empty(0)
    cuts = _cuts(mass, len(distinct), max_bins)
    largest = max(abs(distinct[0]), abs(distinct[-1]))
    if are_close(distinct[cuts], distinct[cuts + 1], ROUNDING * largest).any():
        ends = ends_of_equals(distinct, mass)
        cuts = ends[_cuts(_mass_up_to(ends, mass), len(ends), max_bins)]
    low, high = distinct[cuts], distinct[cuts + 1]
    middle = low + (0.5 * high - 0.5 * low)
    # There is no number between adjacent floats; the threshold is then the lower one.
    return np.where((low <= middle) & (middle < high), middle, low)


def _mass_up_to(ends: NDArray[np.int64], mass: Floats | None) -> Floats:
    """Sum the weights of values up to each end, after the one before."""
    begins = np.append(0, ends[:-1] + 1)
    return (ends + 1.0 - begins) if mass is None else np.add.reduceat(mass, begins)


def _cuts(mass: Floats | None, n: int, max_bins: int) -> NDArray[np.int64]:
    """Find after which of ``n`` distinct values to cut, so that bins are as equal as possible."""
    if n <= max_bins:
        return np.arange(n - 1)
    return _even_cuts(n, max_bins) if mass is None else _quantile_cuts(mass, max_bins)


def _even_cuts(n: int, max_bins: int) -> NDArray[np.int64]:
    """:func:`_quantile_cuts` of more than ``max_bins`` values of equal weights."""
    share, part = n / max_bins, np.arange(1, max_bins)

    def part_of(value: NDArray[np.int64]) -> Floats:
        return np.floor((value + 0.5) / share)

    first = np.ceil(part * share - 0.5).astype(np.int64)  # of each part, but for rounding
    first += part_of(first) < part
    first -= part_of(first - 1) >= part
    return first - 1


def _quantile_cuts(mass: Floats, max_bins: int) -> NDArray[np.int64]:
    """Find the cuts between values of different weights.

    Values heavier than an even share get their own bins; the others share the remaining bins.
    """
    total = float(mass.sum())
    heavy = mass >= total / max_bins
    light = np.where(heavy, 0.0, mass)
    middle = np.cumsum(light) - 0.5 * light
    light_bins = max(1, max_bins - int(heavy.sum()))
    while True:
        share = max(float(light.sum()) / light_bins, np.finfo(float).tiny)
        part = np.floor(middle / share)
        cuts = np.flatnonzero((part[1:] != part[:-1]) | heavy[1:] | heavy[:-1])
        surplus = len(cuts) - (max_bins - 1)
        if surplus <= 0:
            return cuts
        if light_bins == 1:
            break
        # A heavy value between light ones splits their bin in two.
        light_bins = max(1, light_bins - surplus)
    position = np.cumsum(mass)[cuts]
    wanted = np.searchsorted(position, total * np.arange(1, max_bins) / max_bins)
    return cuts[np.unique(np.minimum(wanted, len(cuts) - 1))]
