"""Losses and metrics after each stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.evaluate import mean_loss, mean_loss_and_gradients
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.scores import Scored, mean_loss_of_parts, metric_if_defined
from hilboost.boosting.stages_ahead import KnownLosses
from hilboost.boosting.state import TrainingState, Validation
from hilboost.core.loss import Loss
from hilboost.core.target import Target


def note_losses(
    config: BoostingConfig,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    validation: Validation | None,
    known: KnownLosses | None = None,
) -> None:
    """Append the mean training loss and, if there are held-out rows, the validation loss.

    In a rotation, the training loss is that of the rows from which the next stage will learn.
    ``known`` are losses that were computed together with the stage.
    """
    members, rows = state.members, target
    loss = loss_at_start(config.metric or config.loss, target, members[0])
    if state.rotation is not None:
        turn = state.rotation.current(team.n_threads)
        members, rows = turn.members, turn.target
    if known is not None:
        train = known.train
    else:
        train = [_training_loss(config, state, loss, rows, member, team) for member in members]
    state.train.append(train[0] if len(train) == 1 else float(np.mean(train)))
    if validation is not None:
        whole = [(validation.target, validation.raw)]
        state.validation.append(mean_loss(loss, validation.target, validation.raw, team))
        _note_metrics(config, state, whole, whole)
    elif state.folds is not None and known is not None:
        state.validation.append(known.held_out)
    elif state.folds is not None:
        _note_out_of_fold(config, loss, target, state, team)


def _training_loss(
    config: BoostingConfig,
    state: TrainingState,
    loss: Loss,
    target: Target,
    member: EnsembleMember,
    team: ThreadTeam,
) -> float:
    """Compute the mean loss of a member, and keep the gradients for the next stage if they result.

    If the loss couples rows, those held out from a member are left out of its mean loss, but not of
    its gradients; the rows of a rotation may change before the next stage.
    """
    member.ahead, inside = None, member.inside
    apart = inside is not None and loss.couples_rows
    goes_on = state.rotation is None and len(state.train) < config.n_stages
    able = config.learner.capabilities
    curved = any(part.capabilities.fits_curvature for part in config.learner.parts)
    if apart or curved or not goes_on or loss is not config.loss or not loss.evaluates_both:
        return mean_loss(loss, target, member.raw, team, inside)
    memory = None if able.keeps_gradients else member.memory
    value, member.ahead = mean_loss_and_gradients(
        loss, target, member.raw, team, memory, inside, able.derives_hessian
    )
    return value


def note_others(
    config: BoostingConfig,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    others: Sequence[Validation],
) -> None:
    """Append the loss and the metrics of further validation sets, in original units."""
    loss = loss_at_start(config.metric or config.loss, target, state.members[0])
    size = 1.0 if config.units is None else config.units.value
    for other in others:
        value = size * mean_loss(loss, other.target, other.raw, team)
        state.metrics.setdefault(other.named("loss"), []).append(value)
        for metric in config.metrics:
            parts = [(other.target, other.raw)]
            value = metric_if_defined(metric, config.loss, config.units, parts)
            state.metrics.setdefault(other.named(metric.name), []).append(value)


def _note_out_of_fold(
    config: BoostingConfig, loss: Loss, target: Target, state: TrainingState, team: ThreadTeam
) -> None:
    """Append the loss and the metrics of the held-out rows of every fold."""
    folds = state.folds
    assert folds is not None
    couples = {loss.couples_rows, *(metric.couples_rows for metric in config.metrics)}
    whole: list[Scored] = []
    by_fold: list[Scored] = []
    if couples == {True}:
        for k, held in enumerate(state.held_out):
            by_fold.append((target.part(held), state.raw_of(k, team.n_threads)[held]))
    else:
        out_of_fold = state.raw_of(0, team.n_threads).copy(order="F")
        for k, held in enumerate(state.held_out[1:], start=1):
            out_of_fold[held] = state.raw_of(k, team.n_threads)[held]
        if True in couples:
            by_fold = [(target.part(held), out_of_fold[held]) for held in state.held_out]
        held_by_some = folds < len(state.members)
        if any(not metric.couples_rows for metric in config.metrics):
            whole = [(target.rows(held_by_some), out_of_fold[held_by_some])]
    if loss.couples_rows:
        state.validation.append(mean_loss_of_parts(loss, by_fold, team))
    else:
        state.validation.append(mean_loss(loss, target, out_of_fold, team, held_by_some))
    _note_metrics(config, state, whole, by_fold)


def _note_metrics(
    config: BoostingConfig, state: TrainingState, whole: list[Scored], by_fold: list[Scored]
) -> None:
    """Append the metrics of the held-out rows, all together or of each fold by itself."""
    for metric in config.metrics:
        parts = by_fold if metric.couples_rows else whole
        value = metric_if_defined(metric, config.loss, config.units, parts)
        state.metrics.setdefault(metric.name, []).append(value)


def loss_at_start(loss: Loss, target: Target, member: EnsembleMember) -> Loss:
    """Return the loss by which stages are compared; it is the same for all stages."""
    if not loss.adaptive:
        return loss
    return loss.adapted(target, target.starting_raw(member.initial_raw))
