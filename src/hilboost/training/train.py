"""The training function, which turns a recipe into a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.loop import HOPELESS_GROWTH, boost
from hilboost.boosting.offsets import range_of
from hilboost.boosting.state import TrainingState
from hilboost.boosting.units import in_own_units, losses_in_own_units
from hilboost.callbacks.progress_bar import Phases
from hilboost.core.callback import Callback, History
from hilboost.core.dtypes import Floats
from hilboost.core.errors import (
    FitWarning,
    IncompatibleParts,
    InvalidParameter,
    counted,
    warn_caller,
)
from hilboost.core.learner import Learner
from hilboost.core.target import Target
from hilboost.core.version import ROW_DRAWS
from hilboost.encoders.encoding import Encoding
from hilboost.model import AdditiveModel, mean_of
from hilboost.model.fitted import FittedModel
from hilboost.model.summary import summary
from hilboost.training.categories import placed
from hilboost.training.continuation import Continuation, restore
from hilboost.training.fingerprints import ingredients_of_state
from hilboost.training.initial_state import InitialState, begin
from hilboost.training.out_of_fold import calibrated
from hilboost.training.race import settled
from hilboost.training.recipe import Outcome, Recipe
from hilboost.training.run import Clock, FitRun, TimeBudget, TimedTeam

if TYPE_CHECKING:
    from hilboost.training.early_kernel_check import EarlyKernelCheck

_GROWTH = 0.1  # of the training loss, about which a fit warns
_STILL_FALLING = 0.01  # of the decrease of the held-out loss, about which a fit warns
_REMAINDER = 0.2  # of a function that stages shrink by their rate, about which a fit warns

Observer = Callable[[Callable[[], FittedModel]], None]
"""Called before the first stage, with a function that returns a model of the stages so far."""
Keeper = Callable[[BoostingConfig, Continuation], BoostingConfig]
"""Adds callbacks that keep the stages of a running fit, such as in a file."""


@dataclass(frozen=True)
class TrainingResult:
    """A fitted model, and the interrupt that ended its fit early, raised after saving it.

    ``out_of_fold`` (n, r) holds predictions of the training rows by members that did not learn from
    them, and ``folds`` (n,) the numbers of these members, if there are folds.
    """

    fitted: FittedModel
    interrupt: KeyboardInterrupt | None = None
    out_of_fold: Floats | None = None
    folds: NDArray[np.int64] | None = None

    def raise_interrupt(self) -> None:
        """Raise the interrupt, if any, after a warning about the stages that were kept."""
        if self.interrupt is None:
            return
        warn_caller(
            "the fit was interrupted; the estimator is fitted with "
            f"{counted(self.fitted.n_stages, 'stage')}.",
            FitWarning,
        )
        raise self.interrupt


def train(
    recipe: Recipe,
    n_threads: int = 1,  # maximum number of threads.  The model does not depend on it.
    callbacks: Sequence[Callback] = (),
    continuation: Continuation | None = None,  # earlier fit to continue
    keep: Keeper | None = None,  # adds a callback that keeps the stages while the fit runs
    observer: Observer | None = None,
    # the same for what shares the rows of a single member; ``None`` for ``n_threads``
    n_threads_of_rows: int | None = None,
) -> TrainingResult:
    """Train the model that the recipe specifies."""
    clock = Clock(recipe.time_budget)
    phases, offset_range = Phases.of(callbacks), range_of(recipe.data.target)
    initial = begin(recipe, continuation, n_threads)
    initial = replace(initial, phases=phases, offset_range=offset_range)
    state = initial.state
    if recipe.data.has_one_class:
        return _without_stages(recipe, callbacks, initial, n_threads)
    with TimedTeam(n_threads) as team, array_api.one_blas_thread(), initial.phases.entered():
        with initial.phases("preparing"):
            _prepare(recipe, initial, n_threads_of_rows or n_threads)
            data = state.members[0].data
        try:
            initial = _with_prepared_held_out(recipe, initial)
            if initial.snapshot is not None:
                restore(recipe.config.learner, state, initial.snapshot)
            run = FitRun(recipe, initial, team, clock)
            is_observed = bool(callbacks) or keep is not None or observer is not None
            run = replace(run, recipe=settled(run, continuation is None, is_observed))
            recipe, check = run.recipe, _early_kernel_check(run)
            config, timer = _observed(run, callbacks, check)
            if _is_complete(config, check, continuation, state):
                config = replace(config, n_stages=state.n_stages)
            belongs_to = ingredients_of_state(recipe) if config.takes_snapshots else None
            config = replace(config, takes_snapshots=belongs_to is not None)
            if keep is not None:
                config = keep(config, Continuation.running(recipe, state))
            if observer is not None:
                observer(lambda: _fitted(recipe, initial, _outcome(recipe, config, None, state)))
            _boost_until_interrupted(config, recipe.data.target, initial, team)
        finally:
            _close(recipe.config.learner, state)
        ended = state.is_stopped or state.interrupt is not None
        outcome = recipe.finish(_outcome(recipe, config, data, state))
        _keep_best(config, outcome.state)
        _check_growth(recipe, outcome.state)
        still_falls = _still_falls(config, outcome.state)
        if check is not None and not ended:
            outcome = check.completed(outcome)
        fitted = replace(_fitted(recipe, initial, outcome), cut_short=_cut_short(timer, check))
        _check_time(recipe, fitted, still_falls)
        initial.phases.show(summary(fitted))
    state = outcome.state
    fitted, raw = calibrated(fitted, initial, recipe, n_threads)
    kept = None if belongs_to is None else state.snapshot_of(state.n_stages)
    kept = None if kept is None else replace(kept, belongs_to=belongs_to)
    return TrainingResult(replace(fitted, kept=kept), state.interrupt, raw, initial.state.folds)


def _without_stages(
    recipe: Recipe, callbacks: Sequence[Callback], initial: InitialState, n_threads: int
) -> TrainingResult:
    """Return the model of targets that leave nothing to learn: the best constant."""
    config = replace(recipe.config, callbacks=callbacks, n_stages=0, takes_snapshots=False)
    with ThreadTeam(n_threads) as team:
        boost(config, recipe.data.target, initial.state, team)
    outcome = recipe.finish(_outcome(recipe, config, None, initial.state))
    return TrainingResult(_fitted(recipe, initial, outcome))


def _early_kernel_check(run: FitRun) -> EarlyKernelCheck | None:
    """Return the callback for a fit that may get a kernel machine."""
    learner = run.recipe.choices.kernel_part
    if learner is None:
        return None
    from hilboost.training.early_kernel_check import EarlyKernelCheck  # not for trees alone

    return EarlyKernelCheck(run, learner)


def _is_complete(
    config: BoostingConfig,
    check: EarlyKernelCheck | None,
    continuation: Continuation | None,
    state: TrainingState,
) -> bool:
    """Whether the fit to continue has stopped by itself."""
    if check is not None and check.stops_at(state.n_stages):
        return True
    if continuation is None or not continuation.in_units:
        return False
    if config.stopping is not None and config.stopping.should_stop(config.watched(state)):
        return True
    return all(config.learner.converged(member.data) for member in state.members)


def _observed(
    run: FitRun, callbacks: Sequence[Callback], check: EarlyKernelCheck | None
) -> tuple[BoostingConfig, TimeBudget | None]:
    """Add the callbacks, and what ends the fit in time or beside a better kernel machine."""
    config, clock, timer = run.recipe.config, run.clock, None
    if clock.budget is not None:
        at_once = config.learner.capabilities.resumable
        timer = TimeBudget(clock.began, clock.seconds_of_fit if at_once else clock.budget)
    own = tuple(one for one in (timer, check) if one is not None)
    return replace(config, callbacks=callbacks, own_callbacks=own), timer


def _prepare(recipe: Recipe, initial: InitialState, n_threads: int) -> None:
    """Prepare the learner's data for all members, once if they have the same inputs."""
    first, target = initial.inputs[0], recipe.data.target
    weight, share, seed = target.weight, target.share or recipe.config.division, recipe.config.seed
    learner = recipe.config.learner
    among = learner.capabilities.prepare_among_workers
    if recipe.n_folds > 1:
        n_threads = 1

    def prepared(X: Floats) -> Any:
        if share is not None and among is not None:
            return among(learner, X, weight, seed, n_threads, share)
        return learner.prepare(X, weight, seed, n_threads)

    if all(X is first for X in initial.inputs):
        n_members = len(initial.inputs)
        found = list(learner.for_members(prepared(first), n_members, recipe.choose_penalty))
    else:
        each = (learner.for_members(prepared(X), 1, recipe.choose_penalty) for X in initial.inputs)
        found = [data for (data,) in each]
    for member, data in zip(initial.state.members, found, strict=True):
        member.data = data
    if initial.state.rotation is not None:
        initial.state.rotation.divide(initial.state.members)


def _with_prepared_held_out(recipe: Recipe, initial: InitialState) -> InitialState:
    """Prepare held-out rows that remain rows of a larger table, where the learner can."""
    held, division = initial.validation, recipe.config.learner.capabilities.row_division
    if held is None or division is None or not recipe.data.held_in_place:
        return initial
    prepared = division.prepared_like(initial.state.members[0].data, held.X)
    return replace(initial, validation=replace(held, division=division, data=prepared))


def _close(learner: Learner, state: TrainingState) -> None:
    for data in {id(member.data): member.data for member in state.members}.values():
        learner.close(data)
    for member in state.members:
        member.data = None


def _boost_until_interrupted(
    config: BoostingConfig, target: Target, initial: InitialState, team: ThreadTeam
) -> None:
    """Boost, and defer an interrupt if it would discard existing stages."""
    state = initial.state
    if any(part.capabilities.penalizes for part in config.learner.parts):
        initial.phases.show("tuning the first stage")
    try:
        boost(config, target, state, team, initial.validation, initial.others)
    except KeyboardInterrupt as interrupt:
        if not state.members[0].stages:
            raise
        state.interrupt = interrupt


def _check_growth(recipe: Recipe, state: TrainingState) -> None:
    """Reject stages that made the training loss grow, or warn, unless early stopping chose some."""
    growth, chosen = state.growth, recipe.config.stopping is not None and state.members[0].stages
    if growth <= _GROWTH or chosen or state.interrupt is not None:
        return
    first, last = losses_in_own_units(recipe.config.units, [state.train[0], state.train[-1]])
    message = (
        f"the training loss had grown from {first:.4g} to {last:.4g} after stage "
        f"{len(state.train) - 1} with learning_rate={recipe.config.learning_rate:g}; set a smaller "
        "learning_rate, or correct the gradients of the loss if it is your own."
    )
    if growth > HOPELESS_GROWTH and recipe.config.stopping is None:
        raise InvalidParameter(message)
    warn_caller(message, FitWarning)


def _cut_short(timer: TimeBudget | None, check: EarlyKernelCheck | None) -> tuple[str, ...]:
    """Say what the time budget did not suffice for."""
    stages = (timer is not None and timer.is_used_up) or (check is not None and check.ends_in_time)
    kernel = check is not None and check.lacked_time
    return ("stages",) * stages + ("kernel",) * kernel


def _still_falls(config: BoostingConfig, state: TrainingState) -> bool:
    """Whether the last quarter of the stages decreased the held-out loss by more than its share."""
    losses = config.watched(state) if config.stopping is not None else []
    if len(losses) < 2:
        return False
    last = losses[len(losses) - 1 - len(losses) // 4] - min(losses)
    return last > _STILL_FALLING * (losses[0] - min(losses))


def _check_time(recipe: Recipe, fitted: FittedModel, still_falls: bool) -> None:
    """Warn about an unfinished model that the time budget ended, without a kernel machine."""
    if "stages" not in fitted.cut_short or fitted.mixes_kernels:
        return
    n_stages, rate = fitted.n_stages, recipe.config.learning_rate
    if still_falls or (1 - rate) ** n_stages > _REMAINDER:
        warn_caller(
            f"time_budget={recipe.time_budget:g} ended the fit after {counted(n_stages, 'stage')} "
            f"with learning_rate={rate:.2g}, too few for a good model; set a larger time_budget.",
            FitWarning,
        )


def _outcome(recipe: Recipe, config: BoostingConfig, data: Any, state: TrainingState) -> Outcome:
    return Outcome(config.loss, config.learner, data, recipe.data, recipe.initial_raw, state)


def _keep_best(config: BoostingConfig, state: TrainingState) -> None:
    """Drop the stages after the best one, or some after it, if early stopping is used."""
    watched = config.watched(state)
    if config.stopping is None or not watched:
        return
    if all(map(math.isnan, watched)):
        raise IncompatibleParts(
            f"the metric {config.metrics[0].name!r} is not a finite number at any of the stages 0 "
            f"to {len(watched) - 1}, so that early stopping cannot choose one; use other rows, or "
            "another metric."
        )
    kept = config.stopping.kept_stages(watched)
    for member in state.members:
        del member.stages[kept:]


def _fitted(recipe: Recipe, initial: InitialState, outcome: Outcome) -> FittedModel:
    """Create the record of the stages so far."""
    state, data, units = outcome.state, recipe.data, recipe.config.units
    members = [member.model() for member in state.members]
    in_own = [in_own_units(units, member) for member in members]
    # Several steps on nested machines become one stage.
    timed = len(state.seconds) == len(state.train) - 1
    summary = outcome.kernel_machine
    if summary is not None:
        summary = summary.first(len(members[0].stages))
    return FittedModel(
        model=_model(in_own, initial.encoding, recipe.last_is_model),
        loss=(outcome.loss if units is None else units.plain).of_complete_targets,
        learner=outcome.learner,
        schema=data.schema,
        codec=data.codec,
        seed=recipe.config.seed,
        history=History(
            losses_in_own_units(units, state.train),
            losses_in_own_units(units, state.validation) if state.validation else None,
            np.array(state.seconds) if timed else None,
            {name: np.array(values) for name, values in state.metrics.items()},
        ),
        members=tuple(members),
        last_is_model=recipe.last_is_model,
        units=units,
        encoding=initial.encoding,
        resolved=state.resolved(recipe.resolved),
        kernel_machine=summary,
        parts=outcome.parts,
        beside_offsets=data.target.offset is not None,
        offset_range=initial.offset_range,
        row_draws=ROW_DRAWS,
    )


def _model(members: list[AdditiveModel], encoding: Encoding | None, last: bool) -> AdditiveModel:
    """Average the members, each of which reads its own encoded columns; or return the last one."""
    if encoding is not None:
        members = [placed(encoding, k, model) for k, model in enumerate(members)]
    return members[-1] if last else mean_of(members)
