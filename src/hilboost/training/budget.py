"""Adaptation of a fit of trees to its time budget."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.initial_state import InitialState
from hilboost.training.machine_time import in_time
from hilboost.training.race import Trial, n_trial_stages
from hilboost.training.recipe import Candidate, Recipe

SHARE_OF_FIT = 0.92  # of the budget; the rest is for predictions of the training rows
_SHARE_OF_TREES = 0.5  # if the rest suffices for a kernel machine
_SHARE_OF_RACE = 0.25  # of the time of the trees
_SHARE_OF_PROBE = 0.1  # of the time of the trees, for a run that tells how many stages they need
_TIMED_STAGES = 4
_STEP_OF_PROBE = 10  # stages
_LARGEST_RATE = 0.3
_SMALLER_RATES = 1.3  # they need a larger sum of rates than the largest one, by this factor
_UNFINISHED = 3.0  # times the stages of a probe that did not find the best one


def paced(
    recipe: Recipe,  # with a time budget
    initial: InitialState,  # the members have their data
    team: ThreadTeam,
    n_kernel_threads: int,  # of the kernel machine
    began: float,  # ``time.monotonic()`` at the start of the fit
) -> Recipe:  # its time budget is what the stages may take
    """Choose the learning rate by the number of stages that the time suffices for.

    Trial runs are left out if they would take too long.
    """
    assert recipe.time_budget is not None
    if not recipe.config.learner.capabilities.resumable:
        return recipe
    whole = SHARE_OF_FIT * recipe.time_budget
    beside = in_time(recipe, n_kernel_threads, (1 - _SHARE_OF_TREES) * whole)
    recipe = replace(recipe, time_budget=whole)
    resolved = recipe.resolved
    if recipe.config.stopping is None or resolved is None:
        return recipe
    probe = _Probe(recipe, resolved, initial, team)
    ends = began + (whole if beside is None else _SHARE_OF_TREES * whole)
    left = ends - time.monotonic()
    race = n_trial_stages(recipe) * probe.seconds_per_stage
    members = len(initial.state.members)
    per_stage = probe.seconds_per_stage * members
    if race <= _SHARE_OF_RACE * left and per_stage * recipe.config.n_stages <= left - race:
        return recipe
    progress, patience = probe.progress(_SHARE_OF_PROBE * left), recipe.config.stopping.patience
    per_stage = probe.seconds_per_stage * members
    left = ends - time.monotonic()
    needed = _SMALLER_RATES * progress / resolved.learning_rate + patience
    if race > max(_SHARE_OF_RACE * left, left - per_stage * needed):
        recipe, race = replace(recipe, candidates=()), 0.0
    if not recipe.chooses_rate or per_stage * recipe.config.n_stages <= left - race:
        return recipe
    n_stages = max((left - race) / per_stage - patience, 1.0)
    return _with_rate(recipe, resolved, _SMALLER_RATES * progress / n_stages)


class _Probe:
    """A run of the first member with large steps, which tells how many stages there is time for."""

    def __init__(
        self,
        recipe: Recipe,
        resolved: ResolvedParameters,
        initial: InitialState,
        team: ThreadTeam,
    ) -> None:
        config = recipe.config
        assert config.stopping is not None
        stopping = replace(config.stopping, patience=_STEP_OF_PROBE)
        fast = replace(config, learning_rate=_LARGEST_RATE, stopping=stopping)
        self._trial = Trial.of(Candidate(config.learner, resolved), fast, initial)
        self._target, self._team = recipe.data.target, team
        self._trial.run(1 + _TIMED_STAGES, self._target, team)

    @property
    def seconds_per_stage(self) -> float:
        """Median duration of a stage, without the first one, which sets up its arrays."""
        return max(float(np.median(self._trial.state.seconds[1:])), 1e-6)

    def progress(self, seconds: float) -> float:
        """Return the sum of the rates of the stages that a fit needs, within some seconds."""
        trial, most = self._trial, int(seconds / self.seconds_per_stage)
        while trial.is_going_on and trial.n_stages < most:
            trial.run(min(trial.n_stages + _STEP_OF_PROBE, most), self._target, self._team)
        needed = _UNFINISHED * trial.n_stages if trial.is_going_on else trial.best_stage
        return _LARGEST_RATE * max(needed, 1)


def _with_rate(recipe: Recipe, resolved: ResolvedParameters, rate: float) -> Recipe:
    """Set the learning rate, which is at least the usual one."""
    usual = resolved.learning_rate
    rate = min(max(_LARGEST_RATE, usual), max(usual, rate))
    resolved = replace(resolved, learning_rate=rate)
    candidates = tuple(
        replace(one, resolved=replace(one.resolved, learning_rate=rate))
        for one in recipe.candidates
    )
    config = replace(recipe.config, learning_rate=rate)
    return replace(recipe, config=config, resolved=resolved, candidates=candidates)
