"""Conversion of targets, models and losses between the units of a fit and the original ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hilboost.boosting.state import TrainingState
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target, TargetUnits
from hilboost.model import AdditiveModel


def in_units(units: TargetUnits, target: Target) -> Target:
    """Express the target in units of the fit."""
    offset = None if target.offset is None else target.offset / units.factor
    return replace(target, y=target.y / units.size, offset=offset)


def offset_in_own_units(units: TargetUnits | None, target: Target) -> Floats | None:
    """Offsets of a target in units of the fit, in the original units of the target."""
    if units is None or target.offset is None:
        return target.offset
    return target.offset * units.factor


def continued_in_units(
    units: TargetUnits | None, before: TargetUnits | None, state: TrainingState, start: Floats
) -> None:
    """Convert the stages so far, with losses in original units, to units of the fit, in place.

    Equal units leave every bit.  If a member started from the best constant ``start`` (r,), its
    initial prediction is restored exactly.
    """
    if units is not None:
        for losses in (state.train, state.validation):
            losses[:] = [(loss - units.constant) / units.value for loss in losses]
    if _are_equal(units, before):
        return
    for member in state.members:
        own = in_own_units(before, member.model())
        member.initial_raw, member.stages[:] = own.initial_raw, own.stages
        if units is None:
            continue
        plain = AdditiveModel(start, ())
        if np.array_equal(in_own_units(units, plain).initial_raw, member.initial_raw):
            member.initial_raw = start
        else:
            member.initial_raw = units.raw_in_fit(member.initial_raw)
        member.stages[:] = [_scaled(stage, 1 / units.factor) for stage in member.stages]


def _are_equal(one: TargetUnits | None, other: TargetUnits | None) -> bool:
    if one is None or other is None:
        return one is other
    same_kind = (one.shift is None) == (other.shift is None) and one.value == other.value
    return same_kind and np.array_equal(one.size, other.size)


def _scaled(stage: Stage, factor: Floats | float) -> Stage:
    return stage if np.ndim(factor) == 0 and factor == 1 else stage.scaled(factor)


def in_own_units(units: TargetUnits | None, model: AdditiveModel) -> AdditiveModel:
    """Convert the model so that it predicts the target in its original units."""
    if units is None:
        return model
    stages = tuple(_scaled(stage, units.factor) for stage in model.stages)
    return AdditiveModel(units.raw_in_own(model.initial_raw), stages)


def losses_in_own_units(units: TargetUnits | None, losses: Sequence[float]) -> Floats:
    """Convert mean losses to the original units of the target."""
    found = np.array(losses)
    return found if units is None else np.asarray(units.loss_in_own(found))
