"""Selection between settings of trees by short trial runs, in the time that there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig, EarlyStopping
from hilboost.boosting.loop import boost
from hilboost.boosting.member import GradientMemory
from hilboost.boosting.state import TrainingState, Validation
from hilboost.learners.mixed import in_trials
from hilboost.model.fit_facts import ResolvedParameters
from hilboost.training.defaults import seconds_of_stage
from hilboost.training.recipe import Candidate, Recipe
from hilboost.training.run import FitRun

_STAGES = 200
_FIRST_STAGES = 50
FIRST_LOOK = 100  # stages, after which the gain of a kernel machine may be obvious
_RATE = 0.1
_FINALISTS = 2
_PATIENCE = 15
_LEADS = ((4, 0.02), (2, 0.01))  # in these parts of the stages, the lead that ends the runs
_FEW_ROWS = 1500  # on which a lead means little
_MANY_ROWS = 200_000  # of which two runs at a time would take much memory
_LONG_RACE = 2.0  # seconds
_VERY_LONG_RACE = 5.0  # with runs of these lengths; they are halved then

_SHARE_OF_TREES = 0.5  # of a time budget, if the rest suffices for a kernel machine
_SHARE_OF_RACE = 0.25  # of the time of the trees
_SHARE_OF_PROBE = 0.1  # of the time of the trees, for a run that tells how many stages they need
_TIMED_STAGES = 4
_STEP_OF_PROBE = 10  # stages
_LARGEST_RATE = 0.3
_SMALLER_RATES = 1.3  # they need a larger sum of rates than the largest one, by this factor
_LEFT_OVER = 0.01  # of the decrease of the loss, after as many stages as are needed
_UNFINISHED = 3.0  # at most, times the stages of a probe that did not find the best one


@dataclass
class Trial:
    """A short run of a candidate with the first member, beside the state of the fit."""

    fit: FitRun
    candidate: Candidate
    config: BoostingConfig
    state: TrainingState
    validation: Validation | None
    is_apart: bool  # whether it may run beside others
    is_taken_back: bool = False

    @classmethod
    def of(
        cls,
        fit: FitRun,
        candidate: Candidate,
        config: BoostingConfig,
        in_place: bool = False,
        team: ThreadTeam | None = None,
    ) -> Trial:
        """Start a run; ``in_place``, it overwrites the predictions of member and held-out rows.

        Otherwise, it shares nothing that it changes.  Where members have one thread each, the run
        has a ``team``, by default that of the fit.
        """
        state, held = fit.initial.state, fit.initial.validation
        first = state.members[0]
        learner, own = in_trials(candidate.learner, first.data)
        team, on_threads = team or fit.team, learner.capabilities.on_threads
        is_apart = False
        if len(state.members) > 1 and on_threads is not None:
            own, is_apart = on_threads(own, team), team.n_threads == 1
        member = replace(first, stages=[], data=own)
        if not in_place:
            member.raw, member.memory = first.raw.copy(order="F"), GradientMemory()
            held = held and replace(held, raw=held.raw.copy())
        rotation = state.rotation and state.rotation.of_trial(member)
        trial = TrainingState([member], state.folds, rotation)
        short = replace(
            config,
            learner=learner,
            n_stages=0,
            callbacks=(),
            own_callbacks=(),
            takes_snapshots=False,
        )
        return cls(fit, candidate, short, trial, held, is_apart)

    @property
    def may_become_start(self) -> bool:
        """Whether a fit with these settings would begin with the stages of this run."""
        initial, recipe = self.fit.initial, self.fit.recipe
        state, config = initial.state, recipe.config
        is_single = len(state.members) == 1 and not initial.others and state.rotation is None
        is_same = self.config.learning_rate == config.learning_rate and not config.takes_snapshots
        is_passed = recipe.choices.kernel_part is not None and self.n_stages > FIRST_LOOK
        is_here = self.is_going_on and not (is_passed or self.is_taken_back)
        return is_single and is_same and is_here and len(config.learner.parts) == 1

    def becomes_start(self) -> None:
        """Begin the fit with the stages of this run."""
        initial, state = self.fit.initial, self.fit.initial.state
        state.members, state.metrics = self.state.members, self.state.metrics
        state.train, state.validation = self.state.train, self.state.validation
        state.seconds = self.state.seconds
        if initial.validation is not None and self.validation is not None:
            initial.validation.raw[:] = self.validation.raw

    def take_back(self) -> None:
        """Overwrite the predictions by those before the first stage."""
        member, target, held = self.state.members[0], self.fit.recipe.data.target, self.validation
        if self.state.rotation is None:
            member.raw[:] = target.starting_raw(member.initial_raw)
        if held is not None:
            held.raw[:] = held.target.starting_raw(member.initial_raw)
        self.is_taken_back = True

    def loss(self, n_stages: int) -> float:
        """The lowest held-out loss of the first stages, plus the margins."""
        watched = self.config.watched(self.state)[: n_stages + 1]
        losses = [loss for loss in watched if math.isfinite(loss)]
        if not losses:
            return math.inf
        least, candidate = min(losses), self.candidate
        margin = candidate.margin * (losses[0] - least) + candidate.margin_of_loss * abs(least)
        return least + margin

    @property
    def n_stages(self) -> int:
        """Number of stages so far."""
        return len(self.state.members[0].stages)

    @property
    def best_stage(self) -> int:
        """Number of stages with the lowest held-out loss."""
        return EarlyStopping.best_stage(self.config.watched(self.state))

    @property
    def is_going_on(self) -> bool:
        """Whether early stopping has not ended the run."""
        stopping = self.config.stopping
        is_over = stopping is not None and stopping.should_stop(self.config.watched(self.state))
        return self.n_stages == self.config.n_stages and not is_over

    def run(self, n_stages: int) -> None:
        """Continue to a number of stages, unless early stopping has ended the run."""
        is_longer = n_stages > self.n_stages
        if len(self.state.train) <= 1 or (self.is_going_on and is_longer):
            self.config = replace(self.config, n_stages=n_stages)
            target, team = self.fit.recipe.data.target, self.fit.team
            boost(self.config, target, self.state, team, self.validation)


def settled(run: FitRun, is_new: bool, is_observed: bool) -> Recipe:
    """Return the recipe that keeps the time budget, with the best of the candidates if ``is_new``.

    A fit with a single member begins with the stages of the best run, unless something must see
    every stage (``is_observed``).
    """
    if run.clock.budget is not None:
        run = replace(run, recipe=paced(run))
    if not is_new or not run.recipe.choices.candidates:
        return run.recipe
    look = first_look(run)
    if look is not None and leads_far(run, look):
        winner = look
    else:
        with run.initial.phases("comparing settings", partial(seconds_of_trials, run.recipe)):
            winner = best_trial(run, look)
    if winner.may_become_start and not is_observed:
        winner.becomes_start()
    elif winner.state.members[0].raw is run.initial.state.members[0].raw:
        winner.take_back()
    config = replace(run.recipe.config, learner=winner.candidate.learner)
    return replace(run.recipe, config=config, resolved=winner.candidate.resolved)


def first_look(run: FitRun) -> Trial | None:
    """Run the candidate that suits a good kernel machine, if comparing all of them takes long.

    Beside a kernel machine that is far better, trees need only few stages, and the weakest penalty
    lets them learn most.  Trees that draw few columns weigh all columns that the machine needs.
    """
    recipe, resolved = run.recipe, run.recipe.resolved
    is_long = seconds_of_trials(recipe) >= _LONG_RACE
    if recipe.choices.kernel_part is None or resolved is None or not is_long:
        return None

    def preference(one: Candidate) -> tuple[bool, float, float]:
        own = one.resolved
        is_usual = own.max_leaf_nodes == resolved.max_leaf_nodes
        return is_usual, -own.max_features, -own.l2_regularization

    trial = Trial.of(run, max(recipe.choices.candidates, key=preference), _short(recipe))
    trial.run(min(recipe.config.n_stages, _FIRST_STAGES))
    return trial


def leads_far(run: FitRun, look: Trial) -> bool:
    """Whether a small kernel machine is far better than the stages of a run."""
    part, initial = run.recipe.choices.kernel_part, run.initial
    if part is None:
        return False
    from hilboost.training.budget import hasty  # not for trees alone
    from hilboost.training.mixture import KernelTrial

    members = [*look.state.members, *initial.state.members[1:]]
    shown = replace(initial, state=replace(initial.state, members=members))
    return KernelTrial(replace(run, initial=shown), hasty(part)).leads


def _short(recipe: Recipe) -> BoostingConfig:
    """The configuration of trial runs, the best of which may begin the fit of a single member."""
    config = recipe.config
    if recipe.n_folds == 1 and recipe.choices.learning_rate:
        return config
    stopping = config.stopping and replace(config.stopping, patience=_PATIENCE)
    return replace(config, learning_rate=_RATE, stopping=stopping)


def seconds_of_trials(recipe: Recipe) -> float:
    """Estimate the duration of trial runs of the usual lengths."""
    n_trees, n_candidates = recipe.n_outputs, len(recipe.choices.candidates)
    per_stage = seconds_of_stage(len(recipe.data.X) * recipe.width * n_trees, n_trees)
    return _n_stages(n_candidates, _FIRST_STAGES, _STAGES) * per_stage


def _lengths(recipe: Recipe) -> tuple[int, int]:
    """Return the number of stages of the first runs, and of the last candidates' runs."""
    share = 1 if seconds_of_trials(recipe) < _VERY_LONG_RACE else 2
    return _FIRST_STAGES // share, _STAGES // share


def _n_stages(n_candidates: int, first: int, most: int) -> int:
    if n_candidates <= _FINALISTS:
        return n_candidates * most
    return n_candidates * first + _FINALISTS * (most - first)


def n_trial_stages(recipe: Recipe) -> int:
    """Return the maximum number of stages of all trial runs."""
    return _n_stages(len(recipe.choices.candidates), *_lengths(recipe))


def best_trial(run: FitRun, look: Trial | None = None) -> Trial:
    """Return the run of the candidate with the lowest held-out loss; ``look`` is one of them.

    For example, the best number of columns per node depends less on the size of the table than on
    its content: a strong interaction among noise columns, or many redundant columns.  All runs use
    the same held-out part: the first fold, or the validation rows.  After a quarter of the stages,
    only the best two candidates continue (successive halving), until one of them leads by far.
    """
    recipe, config = run.recipe, _short(run.recipe)
    candidates, n_rows = recipe.choices.candidates, recipe.data.target.n_rows
    first, most = (min(config.n_stages, length) for length in _lengths(recipe))
    if len(candidates) <= _FINALISTS and n_rows > _MANY_ROWS:
        return _best_one_by_one(run, config, most)
    # Stages of few trees leave threads to other runs.
    team = run.team if recipe.n_outputs >= run.team.n_threads else ThreadTeam(1)
    found = [
        look
        if look is not None and candidate is look.candidate
        else Trial.of(run, candidate, config, team=team)
        for candidate in candidates
    ]
    if len(found) > _FINALISTS:
        found = _in_order(found, first)[:_FINALISTS]
    for part, lead in _LEADS if n_rows >= _FEW_ROWS else ():
        n_stages = most // part
        best, second = _in_order(found, n_stages)
        if second.loss(n_stages) - best.loss(n_stages) > lead * abs(best.loss(n_stages)):
            return best
    return _in_order(found, most)[0]


def _best_one_by_one(run: FitRun, config: BoostingConfig, n_stages: int) -> Trial:
    """Return the run with the lowest loss, of runs that use the same memory in turn."""
    trials: list[Trial] = []
    for candidate in run.recipe.choices.candidates:
        if trials:
            trials[-1].take_back()
        trials.append(Trial.of(run, candidate, config, in_place=True))
        trials[-1].run(n_stages)
    return min(trials, key=lambda trial: trial.loss(n_stages))


def _in_order(trials: Sequence[Trial], n_stages: int) -> list[Trial]:
    """Continue to a number of stages; the best one comes first."""
    team = trials[0].fit.team if all(trial.is_apart for trial in trials) else ThreadTeam(1)
    team.map(lambda trial: trial.run(n_stages), trials)
    return sorted(trials, key=lambda trial: trial.loss(n_stages))


def paced(run: FitRun) -> Recipe:
    """Choose the learning rate by the number of stages that the time budget suffices for.

    Trial runs are left out if they would take too long.
    """
    recipe, clock = run.recipe, run.clock
    resolved, stopping = recipe.resolved, recipe.config.stopping
    if not recipe.config.learner.capabilities.resumable or stopping is None or resolved is None:
        return recipe
    part = recipe.choices.kernel_part
    if part is not None:
        from hilboost.training.budget import in_time  # not for trees alone

        part = in_time(part, run, (1 - _SHARE_OF_TREES) * clock.seconds_of_fit)
    share = 1.0 if part is None else _SHARE_OF_TREES
    probe, left = _Probe(run, resolved), clock.left(share)
    race = n_trial_stages(recipe) * probe.seconds_per_stage
    members = len(run.initial.state.members)
    per_stage = probe.seconds_per_stage * members
    if race <= _SHARE_OF_RACE * left and per_stage * recipe.config.n_stages <= left - race:
        return recipe
    progress = probe.progress(_SHARE_OF_PROBE * left)
    per_stage = probe.seconds_per_stage * members
    left = clock.left(share)
    needed = _SMALLER_RATES * progress / resolved.learning_rate + stopping.patience
    if race > max(_SHARE_OF_RACE * left, left - per_stage * needed):
        recipe = replace(recipe, choices=replace(recipe.choices, candidates=()))
        race = 0.0
    if not recipe.choices.learning_rate or per_stage * recipe.config.n_stages <= left - race:
        return recipe
    n_stages = max((left - race) / per_stage - stopping.patience, 1.0)
    return _with_rate(recipe, resolved, _SMALLER_RATES * progress / n_stages)


class _Probe:
    """A run of the first member with large steps, which tells how many stages there is time for."""

    def __init__(self, run: FitRun, resolved: ResolvedParameters) -> None:
        config = run.recipe.config
        stopping = config.stopping and replace(config.stopping, patience=_STEP_OF_PROBE)
        fast = replace(config, learning_rate=_LARGEST_RATE, stopping=stopping)
        self._trial = Trial.of(run, Candidate(config.learner, resolved), fast)
        self._trial.run(1 + _TIMED_STAGES)

    @property
    def seconds_per_stage(self) -> float:
        """Median duration of a stage, without the first one, which sets up its arrays."""
        return max(float(np.median(self._trial.state.seconds[1:])), 1e-6)

    def progress(self, seconds: float) -> float:
        """Return the sum of the rates of the stages that a fit needs, within some seconds."""
        trial, most = self._trial, int(seconds / self.seconds_per_stage)
        while trial.is_going_on and trial.n_stages < most:
            trial.run(min(trial.n_stages + _STEP_OF_PROBE, most))
        needed = self._expected() if trial.is_going_on else trial.best_stage
        return _LARGEST_RATE * max(needed, 1)

    def _expected(self) -> float:
        """Number of stages that the run would need, if its loss falls in a geometric sequence."""
        losses, n_stages = self._trial.config.watched(self._trial.state), self._trial.n_stages
        first, second = -np.diff([losses[0], losses[n_stages // 2], losses[n_stages]])
        if n_stages < 2 * _STEP_OF_PROBE or not 0 < second < first:
            return _UNFINISHED * n_stages
        halves = math.log(_LEFT_OVER) / math.log(second / first)
        return min(max(halves / 2, 1), _UNFINISHED) * n_stages


def _with_rate(recipe: Recipe, resolved: ResolvedParameters, rate: float) -> Recipe:
    """Set the learning rate, which is at least the usual one."""
    usual = resolved.learning_rate
    rate = min(max(_LARGEST_RATE, usual), max(usual, rate))
    candidates = tuple(
        replace(one, resolved=replace(one.resolved, learning_rate=rate))
        for one in recipe.choices.candidates
    )
    return replace(
        recipe,
        config=replace(recipe.config, learning_rate=rate),
        resolved=replace(resolved, learning_rate=rate),
        choices=replace(recipe.choices, candidates=candidates),
    )
