"""Recipes of distributions around a location that is learned first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hilboost.core.dtypes import Floats
from hilboost.training.data import TrainingData
from hilboost.training.recipe import LocationFirst, Recipe


def location_first(
    make: Callable[..., Recipe],  # creates the recipe of a fit to tabular data
    parameters: Mapping[str, Any],
    data: TrainingData,  # in the original units, without rows that are held out
    recipe: Recipe,  # that of a single fit
    seed: int,
) -> LocationFirst | None:
    """Return recipes of two fits, if the loss has a location and the fit has members.

    An encoding of categories belongs to one fit, and so does a time budget.
    """
    units = recipe.config.units
    possible = (
        recipe.n_folds > 1
        and recipe.encoder is None
        and recipe.time_budget is None
        and not parameters["warm_start"]
        and data.target.offset is None
    )
    if units is None or units.location is None or not possible:
        return None
    plain, (loss, transformed) = units.plain, units.location

    def around(offset: Floats) -> Recipe:
        target = replace(data.target, offset=offset)
        second = make(parameters, plain, replace(data, target=target), seed, None)
        return replace(second, location_first=None)

    of_location = data.with_targets(lambda target: target.with_y(transformed(target.y)))
    given = {**parameters, "eval_metric": None, "early_stopping": True}
    location = partial(make, given, loss, of_location, seed, None)
    return LocationFirst(location, around, recipe.n_outputs)
