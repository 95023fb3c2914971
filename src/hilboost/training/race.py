"""Selection between learners by short trial runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting import BoostingConfig, EarlyStopping, TrainingState, Validation, boost
from hilboost.core.base_model import Stage
from hilboost.core.target import Target
from hilboost.learners.mixed import in_trials
from hilboost.training.defaults import seconds_of_stage
from hilboost.training.initial_state import InitialState
from hilboost.training.machine_time import hasty
from hilboost.training.mixture import FIRST_LOOK, KernelTrial
from hilboost.training.recipe import Candidate, Recipe

_STAGES = 200
_FIRST_STAGES = 50
_RATE = 0.1
_FINALISTS = 2
_PATIENCE = 15
_LEADS = ((4, 0.02), (2, 0.01))  # in these parts of the stages, the lead that ends the runs
_FEW_ROWS = 1500  # on which a lead means little
_MANY_ROWS = 200_000  # of which two runs at a time would take much memory
_LONG_RACE = 2.0  # seconds
_VERY_LONG_RACE = 5.0  # with runs of these lengths; they are halved then


@dataclass
class Trial:
    """A short run of a candidate."""

    candidate: Candidate
    config: BoostingConfig
    state: TrainingState
    validation: Validation | None

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        config: BoostingConfig,
        initial: InitialState,
        in_place: bool = False,
    ) -> Trial:
        """Start a run with the first member, beside the state of the fit.

        ``in_place``, it overwrites the predictions of this member and of the held-out rows.
        """
        state, validation = initial.state, initial.validation
        first = state.members[0]
        learner, own = in_trials(candidate.learner, first.data)
        stages: list[Stage] = []
        raw = first.raw if in_place else first.raw.copy(order="F")
        member = replace(first, raw=raw, stages=stages, data=own)
        held = validation
        if held is not None and not in_place:
            held = replace(held, raw=held.raw.copy())
        rotation = state.rotation and state.rotation.first_member_afresh(stages)
        trial = TrainingState([member], state.folds, rotation)
        short = replace(
            config,
            learner=learner,
            n_stages=0,
            callbacks=(),
            own_callbacks=(),
            takes_snapshots=False,
        )
        return cls(candidate, short, trial, held)

    def becomes_start_of(self, initial: InitialState) -> None:
        """Begin the fit with the stages of this run, which have its learning rate."""
        state = initial.state
        state.members = self.state.members
        state.train, state.validation = self.state.train, self.state.validation
        state.seconds = self.state.seconds
        if initial.validation is not None and self.validation is not None:
            initial.validation.raw[:] = self.validation.raw

    @property
    def loss(self) -> float:
        """The lowest held-out loss so far, plus the margin."""
        losses = [loss for loss in self.config.watched(self.state) if math.isfinite(loss)]
        if not losses:
            return math.inf
        return min(losses) + self.candidate.margin * (losses[0] - min(losses))

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
        return self.n_stages == self.config.n_stages

    def run(self, n_stages: int, target: Target, team: ThreadTeam) -> None:
        """Continue to a number of stages, unless early stopping has ended the run."""
        if len(self.state.train) <= 1 or self.is_going_on:
            self.config = replace(self.config, n_stages=n_stages)
            boost(self.config, target, self.state, team, self.validation)


def settled_candidate(
    recipe: Recipe,
    initial: InitialState,
    team: ThreadTeam,
    kernels: ThreadTeam,
    is_observed: bool,
) -> Candidate | None:
    """Return settings that need no long trial runs, if a kernel machine is far better than trees.

    A small kernel machine is compared with the first stages of trees.  Beside a good one, trees
    need only few stages, and the weakest penalty lets them learn most.  Short runs take less time
    than finding out.  The stages of a single member remain, unless the fit ``is_observed``: what
    observes it must see every stage.  The kernel machine has threads of its own, ``kernels``.
    """
    part, resolved = recipe.kernel_part, recipe.resolved
    if part is None or resolved is None or seconds_of_trials(recipe) < _LONG_RACE:
        return None

    def preference(one: Candidate) -> tuple[bool, float, float]:
        own = one.resolved
        is_usual = own.max_leaf_nodes == resolved.max_leaf_nodes
        return is_usual, own.max_features, -own.l2_regularization

    found = max(recipe.candidates, key=preference)
    trial = Trial.of(found, recipe.config, initial)
    trial.run(min(recipe.config.n_stages, FIRST_LOOK), recipe.data.target, team)
    members = [*trial.state.members, *initial.state.members[1:]]
    shown = replace(initial, state=replace(initial.state, members=members))
    attempt = KernelTrial(replace(recipe, kernel_part=hasty(part)), shown, kernels)
    if not attempt.leads():
        return None
    is_single = len(initial.state.members) == 1 and not initial.others
    if is_single and trial.is_going_on and not is_observed:
        trial.becomes_start_of(initial)
    return found


def seconds_of_trials(recipe: Recipe) -> float:
    """Estimate the duration of trial runs of the usual lengths."""
    n_trees, n_candidates = recipe.n_outputs, len(recipe.candidates)
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
    return _n_stages(len(recipe.candidates), *_lengths(recipe))


def best_candidate(recipe: Recipe, initial: InitialState, team: ThreadTeam) -> Candidate:
    """Return the candidate with the lowest held-out loss in a short run.

    For example, the best number of columns per node depends less on the size of the table than on
    its content: a strong interaction among noise columns, or many redundant columns.  All runs use
    the same held-out part: the first fold, or the validation rows.  After a quarter of the stages,
    only the best two candidates continue (successive halving), until one of them leads by far.
    """
    config = recipe.config
    short = replace(
        config,
        learning_rate=_RATE,
        stopping=config.stopping and replace(config.stopping, patience=_PATIENCE),
    )
    first, most = (min(config.n_stages, length) for length in _lengths(recipe))
    target = recipe.data.target
    if len(recipe.candidates) <= _FINALISTS and target.n_rows > _MANY_ROWS:
        return _best_one_by_one(recipe, short, initial, team, most)
    found = [Trial.of(candidate, short, initial) for candidate in recipe.candidates]
    if len(found) > _FINALISTS:
        found = _in_order(found, first, target, team)[:_FINALISTS]
    for part, lead in _LEADS if target.n_rows >= _FEW_ROWS else ():
        best, second = _in_order(found, most // part, target, team)
        if second.loss - best.loss > lead * abs(best.loss):
            return best.candidate
    return _in_order(found, most, target, team)[0].candidate


def _best_one_by_one(
    recipe: Recipe,
    config: BoostingConfig,
    initial: InitialState,
    team: ThreadTeam,
    n_stages: int,
) -> Candidate:
    """Return the candidate with the lowest loss, from runs that use the same memory in turn."""
    first, target, losses = initial.state.members[0], recipe.data.target, []
    held = initial.validation
    for candidate in recipe.candidates:
        trial = Trial.of(candidate, config, initial, in_place=True)
        trial.run(n_stages, target, team)
        losses.append(trial.loss)
        if initial.state.rotation is None:
            first.raw[:] = target.starting_raw(first.initial_raw)
        if held is not None:
            held.raw[:] = held.target.starting_raw(first.initial_raw)
    return recipe.candidates[losses.index(min(losses))]


def _in_order(
    trials: Sequence[Trial], n_stages: int, target: Target, team: ThreadTeam
) -> list[Trial]:
    """Continue to a number of stages; the best one comes first."""
    for trial in trials:
        trial.run(n_stages, target, team)
    return sorted(trials, key=lambda trial: trial.loss)
