"""Distributions around a location that a fit of its own learns first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hilboost.boosting.units import in_own_units
from hilboost.core.base_model import Stage
from hilboost.core.callback import History
from hilboost.core.dtypes import Floats
from hilboost.core.loss import TargetUnits
from hilboost.model import AdditiveModel, mean_of
from hilboost.model.fitted import FittedModel

if TYPE_CHECKING:
    from hilboost.training.recipe import Recipe


@dataclass(frozen=True)
class LocationFirst:
    """Two fits in place of one: that of the location, and that of the distribution around it.

    The residuals of rows that a model has learned from are too small to tell a scale.  The second
    fit therefore has, as offsets, predictions of the location by members of the first one that did
    not learn from the row.
    """

    location: Callable[[], Recipe]  # the recipe of the first fit
    distribution: Callable[[Floats], Recipe]  # that of the second one, from offsets (n, r)
    n_outputs: int

    def offsets(self, out_of_fold: Floats) -> Floats:
        """Offsets of all outputs, (n, r): the location is the first one."""
        return np.pad(out_of_fold, ((0, 0), (0, self.n_outputs - 1)))


def is_better(around: FittedModel, constant: float) -> bool:
    """Whether held-out rows have a lower loss than with the best constant."""
    losses = None if around.history is None else around.history.validation
    return losses is not None and bool(np.nanmin(losses) < constant)


def joined(located: FittedModel, around: FittedModel, constant: float) -> FittedModel:
    """Return the model of both fits: a kernel machine of the location stays the last stage.

    ``constant``: the loss of the best constant.
    """
    units, members = around.units, []
    assert units is not None
    assert located.members is not None
    assert around.members is not None
    for first, second in zip(located.members, around.members, strict=True):
        stages = [_of_location(stage, units) for stage in in_own_units(located.units, first).stages]
        n_trees = len(stages) - located.mixes_kernels
        start = second.initial_raw.copy()
        start[0] += in_own_units(located.units, first).initial_raw[0] / _factor(units)
        later = second.stages
        if located.mixes_kernels:
            later = tuple(_by_first_learner(stage) for stage in later)
        members.append(AdditiveModel(start, (*stages[:n_trees], *later, *stages[n_trees:])))
    return replace(
        around,
        model=mean_of([in_own_units(units, member) for member in members]),
        members=tuple(members),
        learner=located.learner if located.mixes_kernels else around.learner,
        parts=located.parts,
        history=_history(located, around, constant),
        beside_offsets=located.beside_offsets,
        offset_range=located.offset_range,
    )


def _factor(units: TargetUnits) -> float:
    return float(np.ravel(units.factor)[0])


def _of_location(stage: Stage, units: TargetUnits) -> Stage:
    """A stage in units of the second fit; the factor of its outputs is that of the first one."""
    return stage.scaled(1 / _factor(units))


def _by_first_learner(stage: Stage) -> Stage:
    return Stage(tuple(replace(term, learner=0) for term in stage.terms))


def _history(located: FittedModel, around: FittedModel, constant: float) -> History | None:
    """History of the second fit, after the loss of the best constant at stages of the location."""
    if around.history is None or located.history is None:
        return None
    own, n = around.history, located.n_stages

    def padded(values: Floats, before: float) -> Floats:
        return np.concatenate([np.full(n, before), values])

    seconds = None
    if own.seconds is not None and located.history.seconds is not None:
        seconds = np.concatenate([located.history.seconds[:n], own.seconds])
    metrics: Mapping[str, Floats] = {k: padded(one, np.nan) for k, one in own.metrics.items()}
    validation = None if own.validation is None else padded(own.validation, constant)
    return History(padded(own.train, constant), validation, seconds, metrics)
