"""Functional gradient descent on ``F : inputs -> H`` (Friedman 2001, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from hilboost.backends.random_bits import Purpose
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.work_clock import working_seconds
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.evaluate import add_stage, gradients
from hilboost.boosting.history import LossRecorder, loss_of_stages
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.sampling import StageKey
from hilboost.boosting.stages_ahead import StagesAhead
from hilboost.boosting.state import TrainingState, Validation
from hilboost.core.base_model import Stage
from hilboost.core.callback import Event, entered
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.row_sample import RowSample
from hilboost.core.rule import State
from hilboost.core.target import Target
from hilboost.model.fit_facts import FitSnapshot
from hilboost.reductions.sums import on_any_worker

HOPELESS_GROWTH = 1000.0
"""Growth of the training loss that ends a fit."""


def boost(
    config: BoostingConfig,
    target: Target,
    state: TrainingState,  # modified in place
    # trains several members in parallel; with a single member, threads share its rows
    team: ThreadTeam,
    validation: Validation | None = None,  # the held-out rows that decide about early stopping
    others: Sequence[Validation] = (),  # further validation sets, whose loss and metrics are noted
) -> None:
    """Add stages to every member until the stopping criteria of the config are met.

    The random numbers of a stage depend only on (seed, stage, member), so a fit in two parts gives
    the same model as an uninterrupted one, and members may be fitted in any order.  After a
    ``KeyboardInterrupt``, the state contains the stages completed before it.
    """
    with entered(config.callbacks), state.in_whole_stages():
        loss = loss_of_stages(config, target, state)
        _add_stages(LossRecorder(config, target, state, team, validation, others, loss))


def _add_stages(record: LossRecorder) -> None:
    config, target, state, team = record.config, record.target, record.state, record.team
    held_out = [one for one in (record.validation, *record.others) if one is not None]
    if not state.train:
        record.note()
    if not state.snapshots:
        _take_snapshot(config, state)
    so_far = len(state.train) - 1
    state.seconds += [math.nan] * (so_far - len(state.seconds))
    if state.rotation is not None:
        state.rotation.resume(record.loss, state.train, team)
    ahead = StagesAhead.of(config, target, state, team)
    try:
        for number in range(so_far, config.n_stages):
            began = working_seconds()
            known = ahead.take(number)
            if known is None:
                _fit_stage(config, target, state, number, team)
            for held in held_out:
                add_held_out(held, state.members[0].stages[-1], team.n_threads)
            record.note(known)
            _take_snapshot(config, state)
            state.seconds.append(ahead.seconds(working_seconds() - began))
            if _ends(config, target, state):
                break
    finally:
        ahead.close()


def _fit_stage(
    config: BoostingConfig, target: Target, state: TrainingState, number: int, team: ThreadTeam
) -> None:
    """Fit one stage of every member, to the rows whose turn it is."""
    # Members that exchange sums with other workers do so in turn.
    side_by_side = len(state.members) > 1 and not target.is_divided
    outer, inner = (team, ThreadTeam(1)) if side_by_side else (ThreadTeam(1), team)
    rotation = state.rotation
    if rotation is not None:
        rotation.begin_stage(number, state.train[number], team)
    rows, members = state.current_rows(target, team.n_threads)

    def step(member: int) -> None:
        turn = StageKey(config.seed, number, member)
        advance(config, rows, members[member], turn, inner)

    outer.map(step, range(len(members)))
    if rotation is not None:
        rotation.end_stage(number, team)


def add_held_out(validation: Validation, stage: Stage, n_threads: int) -> None:
    """Add the outputs of a stage to ``raw`` of the held-out rows."""
    if validation.division is not None:
        validation.division.add_outputs(validation.data, stage.terms, validation.raw, n_threads)
        return
    for kind, terms in groupby(stage.terms, lambda term: type(term.model)):
        kind.sum_of(list(terms)).add_to(validation.raw, validation.X, n_threads)


def _take_snapshot(config: BoostingConfig, state: TrainingState) -> None:
    """Keep the state after the last stage, and after the best one; cost O(n r) for each member."""
    if not config.takes_snapshots:
        return
    n_stages = best = len(state.train) - 1
    if config.stopping is not None and state.validation:
        best = config.stopping.kept_stages(config.watched(state))
    raw = tuple(member.raw.copy(order="K") for member in state.members)
    learners = tuple(config.learner.snapshot(member.data) for member in state.members)
    found = (*state.snapshots, FitSnapshot(n_stages, raw, learners))
    state.snapshots = tuple(one for one in found if one.n_stages in (best, n_stages))


def advance(
    config: BoostingConfig, target: Target, member: EnsembleMember, turn: StageKey, team: ThreadTeam
) -> None:
    """Fit one stage of one member: gradients, base models, rules, update."""
    sample = config.sampling.draw(target, member.rows, turn, team)
    target = member.visible(target, config.loss)
    loss = config.loss
    if loss.adaptive:
        learned, raw = member.learned(target)
        loss = loss.adapted(learned, raw)
    loss = loss.drawn(turn.key(Purpose.LOSS))
    now = _gradients(config, loss, target, member, team)
    apart = None if member.rows is None else member.outside
    sample = RowSample(
        sample.rows, sample.weight, apart, turn.stage, config.rate, target.dependence
    )
    fitted: tuple[FittedTerm, ...] = tuple(
        config.learner.fit(member.data, now, sample, turn.generator())
    )
    stage = Stage(tuple(f.term for f in fitted))
    context = State(loss, target, member.raw, fitted, sample)
    for rule in config.steps:
        stage = rule(stage, context)
    add_stage(member.raw, stage, fitted, team)
    config.learner.stage_added(member.data, stage)
    member.stages.append(stage)


def _gradients(
    config: BoostingConfig, loss: Loss, target: Target, member: EnsembleMember, team: ThreadTeam
) -> Gradients:
    """Gradients of the loss, of a loss close to it with a useful hessian, or both."""
    ahead, member.ahead = member.ahead, None
    if ahead is not None and loss is config.loss:
        return ahead
    curves = [part.capabilities.fits_curvature for part in config.learner.parts]
    if not any(curves):
        memory = None if config.learner.capabilities.keeps_gradients else member.memory
        return gradients(loss, target, member.raw, team, memory)
    learned, raw = member.learned(target)
    curved = loss.with_curvature(learned, raw)
    now = gradients(curved, target, member.raw, team)
    if all(curves) or curved is loss:
        return now
    return replace(gradients(loss, target, member.raw, team), smooth=now)


def _ends(config: BoostingConfig, target: Target, state: TrainingState) -> bool:
    held_out = state.validation[-1] if state.validation else None
    metrics = {name: values[-1] for name, values in state.metrics.items()}
    event = Event(len(state.train) - 1, config.n_stages, state.train[-1], held_out, metrics)
    share = target.share or config.division
    asked = [callback(event) for callback in config.callbacks]
    state.is_stopped = on_any_worker(any(answer is True for answer in asked), share)
    ended = bool(config.own_callbacks) and on_any_worker(
        any(callback(event) for callback in config.own_callbacks), share
    )
    converged = all(config.learner.converged(member.data) for member in state.members)
    if state.is_stopped or ended or converged:
        return True
    if state.growth > HOPELESS_GROWTH:
        return True
    return config.stopping is not None and config.stopping.should_stop(config.watched(state))
