"""Distributions around a location that a fit of its own learns first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import mean_loss
from hilboost.boosting.units import in_own_units, losses_in_own_units
from hilboost.core.base_model import Stage
from hilboost.core.callback import Callback, History
from hilboost.core.dtypes import Floats
from hilboost.core.target import TargetUnits
from hilboost.model import AdditiveModel, mean_of
from hilboost.model.fitted import FittedModel
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.out_of_fold import with_levels_of_mean
from hilboost.training.recipe import LocationFirst, Recipe
from hilboost.training.train import Keeper, Observer, TrainingResult, train


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
    # The members of both fits are joined, so that they have the same folds.
    given = {**parameters, "eval_metric": None, "early_stopping": True, "cv_folds": recipe.n_folds}
    location = partial(make, given, loss, of_location, seed, None)
    return LocationFirst(location, around, recipe.n_outputs)


def train_in_turn(
    recipe: Recipe,
    n_threads: int,
    callbacks: Sequence[Callback],
    continuation: Continuation | None,
    keep: Keeper | None,
    observer: Observer | None,
    n_threads_of_rows: int,
) -> TrainingResult:
    """Train the model of a recipe, first the location of a distribution if the recipe says so."""
    found = None
    if recipe.location_first is not None and continuation is None and keep is None:
        found = _around_location(recipe, n_threads, callbacks, n_threads_of_rows)
    if found is None:
        found = train(recipe, n_threads, callbacks, continuation, keep, observer, n_threads_of_rows)
    fitted = with_levels_of_mean(found.fitted, found.folds, recipe, n_threads)
    return replace(found, fitted=fitted)


def _around_location(
    recipe: Recipe, n_threads: int, callbacks: Sequence[Callback], n_threads_of_rows: int
) -> TrainingResult | None:
    """Fit the location, and the distribution around predictions of the location out of fold.

    ``None`` if this predicts held-out rows no better than the best constant.
    """
    fits, config = recipe.location_first, recipe.config
    assert fits is not None
    located = train(fits.location(), n_threads, n_threads_of_rows=n_threads_of_rows)
    assert located.out_of_fold is not None
    second = fits.distribution(fits.offsets(located.out_of_fold))
    around = train(second, n_threads, callbacks, n_threads_of_rows=n_threads_of_rows)
    target = recipe.data.target
    with ThreadTeam(n_threads) as team:
        start = mean_loss(config.loss, target, target.starting_raw(recipe.initial_raw), team)
    constant = float(losses_in_own_units(config.units, [start])[0])
    if not is_better(around.fitted, constant):
        return None
    return replace(around, fitted=joined(located.fitted, around.fitted, constant))


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
        # In units of the second fit; the factor of their outputs is that of the first one.
        own = in_own_units(located.units, first).stages
        stages = [stage.scaled(1 / _factor(units)) for stage in own]
        n_trees = len(stages) - located.mixes_kernels
        start = second.initial_raw.copy()
        start[0] += in_own_units(located.units, first).initial_raw[0] / _factor(units)
        later = second.stages
        if located.mixes_kernels:
            terms = (tuple(replace(term, learner=0) for term in stage.terms) for stage in later)
            later = tuple(map(Stage, terms))
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
