"""Metrics of the held-out rows after each stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilboost.backends.exact_sums import is_finite, mass_of, merge_sums, quotient, sum_of
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import loss_sums
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.metric import Metric
from hilboost.core.target import Target

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
    """Compute a metric of rows that are scored by several models.

    Raises
    ------
    IncompatibleParts
        A value is not a finite number.
    """
    sums = []
    for target, raw in parts:
        if units is not None:
            loss, target = units.plain, Target(target.y * units.size, target.weight)
            raw = raw * units.factor if units.shift is None else raw + units.shift
        found = metric.parts(target, np.asarray(loss.inverse_link(raw)))
        sums.append((sum_of(found.values, found.weight), mass_of(found.weight, len(found.values))))
    (total, mass), *others = sums
    for more, and_mass in others:
        merge_sums(total[None], more[None])
        merge_sums(mass[None], and_mass[None])
    if not is_finite(total) or not mass[:-1].any():
        raise IncompatibleParts(
            f"the metric {metric.name!r} is not a finite number on the held-out rows; use other "
            "held-out rows, or another eval_metric."
        )
    return metric.of_mean(quotient(total, mass))
