"""Adaptation of a fit of trees to its time budget."""

from __future__ import annotations

import time
from dataclasses import replace

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting import BoostingConfig
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.begin import InitialState
from hilboost.training.machine_time import in_time
from hilboost.training.race import Trial, n_trial_stages
from hilboost.training.recipe import Candidate, Recipe

SHARE_OF_FIT = 0.92  # of the budget; the rest is for predictions of the training rows
_SHARE_OF_TREES = 0.6  # if the rest suffices for a kernel machine
_SHARE_OF_RACE = 0.25  # of the time of the trees
_TIMED_STAGES = 4
_ENOUGH_STAGES = 600  # at the usual learning rate
_LARGEST_RATE = 0.3


def paced(
    recipe: Recipe, config: BoostingConfig, initial: InitialState, team: ThreadTeam, began: float
) -> Recipe:
    """Choose the learning rate by the number of stages that the time suffices for.

    Trial runs are left out if they would take too long.

    Parameters
    ----------
    recipe : Recipe
        With a time budget.
    config : BoostingConfig
    initial : InitialState
        The members have their data.
    team : ThreadTeam
    began : float
        ``time.monotonic()`` at the start of the fit.

    Returns
    -------
    Recipe
        Its time budget is what the stages may take.
    """
    assert recipe.time_budget is not None
    if not recipe.learner.resumable:
        return recipe
    whole = SHARE_OF_FIT * recipe.time_budget
    beside = in_time(recipe, team.n_threads, (1 - _SHARE_OF_TREES) * whole)
    recipe = replace(recipe, time_budget=whole)
    resolved = recipe.resolved
    if recipe.stopping is None or resolved is None:
        return recipe
    per_stage = _seconds_per_stage(recipe, resolved, config, initial, team)
    members = len(initial.state.members)
    race = n_trial_stages(recipe) * per_stage / members
    of_trees = whole if beside is None else _SHARE_OF_TREES * whole
    left = began + of_trees - time.monotonic()
    if race > _SHARE_OF_RACE * left:
        recipe, race = replace(recipe, candidates=()), 0.0
    return _with_rate(recipe, resolved, (left - race) / per_stage)


def _seconds_per_stage(
    recipe: Recipe,
    resolved: ResolvedParameters,
    config: BoostingConfig,
    initial: InitialState,
    team: ThreadTeam,
) -> float:
    """Measure a few stages of the first member."""
    candidate = Candidate(recipe.learner, resolved)
    trial = Trial.of(candidate, config, initial)
    target = recipe.data.target
    trial.run(1, target, team)  # the first stage sets up its arrays
    before = time.monotonic()
    trial.run(1 + _TIMED_STAGES, target, team)
    seconds = max(time.monotonic() - before, 1e-6) / _TIMED_STAGES
    return seconds * len(initial.state.members)


def _with_rate(recipe: Recipe, resolved: ResolvedParameters, n_stages: float) -> Recipe:
    usual = resolved.learning_rate
    if not recipe.chooses_rate or n_stages >= _ENOUGH_STAGES:
        return recipe
    rate = min(max(_LARGEST_RATE, usual), usual * _ENOUGH_STAGES / max(n_stages, 1.0))
    resolved = replace(resolved, learning_rate=rate)
    candidates = tuple(
        replace(one, resolved=replace(one.resolved, learning_rate=rate))
        for one in recipe.candidates
    )
    return replace(recipe, learning_rate=rate, resolved=resolved, candidates=candidates)
