"""Metrics of the held-out rows after each stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hilboost.backends.exact_sums import is_finite, merge_sums, quotient
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import loss_sums
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.core.metric import Metric
from hilboost.core.target import Target
from hilboost.core.target_units import TargetUnits
from hilboost.reductions.rows import of_all_rows, whole_target
from hilboost.reductions.sums import mass_of, total_of

Scored = tuple[Target, Floats]
"""A target, and ``raw`` (n, r) of its rows, predicted by one model."""


def mean_loss_of_parts(loss: Loss, parts: Sequence[Scored], team: ThreadTeam) -> float:
    """Compute the mean loss of rows that are scored by several models."""
    first, *others = [loss_sums(loss, target, raw, team) for target, raw in parts]
    for sums in others:
        merge_sums(first, sums)
    return quotient(first[0], first[1])


def metric_value(
    metric: Metric, loss: Loss, units: TargetUnits | None, parts: Sequence[Scored]
) -> float:
    """Compute a metric of rows that are scored by several models."""
    value = metric_if_defined(metric, loss, units, parts)
    if math.isnan(value):
        raise IncompatibleParts(
            f"the metric {metric.name!r} is not a finite number on these rows; use other rows, or "
            "another metric."
        )
    return value


def metric_if_defined(
    metric: Metric, loss: Loss, units: TargetUnits | None, parts: Sequence[Scored]
) -> float:
    """Compute a metric of rows that are scored by several models, or NaN where it is undefined."""
    sums = []
    for target, raw in parts:
        if not metric.divides_rows:
            target, raw = whole_target(target), of_all_rows(raw, target)
        rows = target
        if units is not None:
            loss, target = units.plain, Target(target.y * units.size, target.weight)
            raw = units.raw_in_own(raw)
        if metric.of_distributions:
            found = metric.parts_of_distribution(target, loss.distribution_of(raw))
        else:
            found = metric.parts(target, np.asarray(loss.inverse_link(raw)))
        rows = replace(rows, y=found.values[:, None], weight=found.weight)
        sums.append((total_of(found.values, rows), mass_of(rows)))
    (total, mass), *others = sums
    for more, and_mass in others:
        merge_sums(total[None], more[None])
        merge_sums(mass[None], and_mass[None])
    if not is_finite(total) or not mass[:-1].any():
        return math.nan
    return metric.of_mean(quotient(total, mass))
