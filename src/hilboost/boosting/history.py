"""Losses and metrics after each stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import is_finite, merge_sums, quotient
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.evaluate import loss_sums, mean_loss, mean_loss_and_gradients
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.stages_ahead import KnownLosses
from hilboost.boosting.state import TrainingState, Validation
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.core.metric import Metric
from hilboost.core.target import Target, TargetUnits
from hilboost.reductions.rows import of_all_rows, whole_target
from hilboost.reductions.sums import mass_of, total_of

Scored = tuple[Target, Floats]
"""A target, and ``raw`` (n, r) of its rows, predicted by one model."""


def mean_loss_of_parts(loss: Loss, parts: Sequence[Scored], team: ThreadTeam) -> float:
    """Compute the mean loss of rows that are scored by several models."""
    first, *others = [loss_sums(loss, target, raw, team) for target, raw in parts]
    for sums in others:
        merge_sums(first, sums)
    return quotient(first[0], first[1])


def metric_value(
    metric: Metric, loss: Loss, units: TargetUnits | None, parts: Sequence[Scored]
) -> float:
    """Compute a metric of rows that are scored by several models."""
    value = metric_if_defined(metric, loss, units, parts)
    if math.isnan(value):
        raise IncompatibleParts(
            f"the metric {metric.name!r} is not a finite number on these rows; use other rows, or "
            "another metric."
        )
    return value


def metric_if_defined(
    metric: Metric, loss: Loss, units: TargetUnits | None, parts: Sequence[Scored]
) -> float:
    """Compute a metric of rows that are scored by several models, or NaN where it is undefined."""
    sums = []
    for target, raw in parts:
        if not metric.divides_rows:
            target, raw = whole_target(target), of_all_rows(raw, target)
        rows = target
        if units is not None:
            loss, target = units.plain, Target(target.y * units.size, target.weight)
            raw = units.raw_in_own(raw)
        if metric.of_distributions:
            found = metric.parts_of_distribution(target, loss.distribution_of(raw))
        else:
            found = metric.parts(target, np.asarray(loss.inverse_link(raw)))
        rows = replace(rows, y=found.values[:, None], weight=found.weight)
        sums.append((total_of(found.values, rows), mass_of(rows)))
    (total, mass), *others = sums
    for more, and_mass in others:
        merge_sums(total[None], more[None])
        merge_sums(mass[None], and_mass[None])
    if not is_finite(total) or not mass[:-1].any():
        return math.nan
    return metric.of_mean(quotient(total, mass))


def loss_of_stages(config: BoostingConfig, target: Target, state: TrainingState) -> Loss:
    """Return the loss by which stages are compared, adapted to the start; all workers call it."""
    loss = config.metric or config.loss
    if not loss.adaptive:
        return loss
    return loss.adapted(target, target.starting_raw(state.members[0].initial_raw))


@dataclass(frozen=True)
class LossRecorder:
    """Appends losses and metrics to the history of a fit."""

    config: BoostingConfig
    target: Target
    state: TrainingState
    team: ThreadTeam
    validation: Validation | None  # the held-out rows that decide about early stopping
    others: Sequence[Validation]  # further validation sets
    loss: Loss  # by which stages are compared: the same for all stages

    def note(self, known: KnownLosses | None = None) -> None:
        """Note the mean losses after a stage; ``known`` were computed together with it."""
        if known is not None:
            train = known.train
        else:
            rows, members = self.state.current_rows(self.target, self.team.n_threads)
            train = [self._training_loss(rows, member) for member in members]
        self.state.train.append(train[0] if len(train) == 1 else float(np.mean(train)))
        if self.validation is not None:
            whole = [(self.validation.target, self.validation.raw)]
            self.state.validation.append(mean_loss(self.loss, *whole[0], self.team))
            self._note_metrics(whole, whole)
        elif self.state.folds is not None and known is not None:
            self.state.validation.append(known.held_out)
        elif self.state.folds is not None:
            self._note_out_of_fold(self.state.folds)
        for other in self.others:
            self._note_other(other)

    def _training_loss(self, target: Target, member: EnsembleMember) -> float:
        """Mean loss of a member; keep the gradients for the next stage if they result.

        If the loss couples rows, those held out from a member are left out of its mean loss, but
        not of its gradients; the rows of a rotation may change before the next stage.
        """
        config, state, loss = self.config, self.state, self.loss
        member.ahead, inside = None, member.inside
        apart = inside is not None and loss.couples_rows
        goes_on = state.rotation is None and len(state.train) < config.n_stages
        able = config.learner.capabilities
        curved = any(part.capabilities.fits_curvature for part in config.learner.parts)
        if apart or curved or not goes_on or loss is not config.loss or not loss.evaluates_both:
            return mean_loss(loss, target, member.raw, self.team, inside)
        memory = None if able.keeps_gradients else member.memory
        value, member.ahead = mean_loss_and_gradients(
            loss, target, member.raw, self.team, memory, inside, able.derives_hessian
        )
        return value

    def _note_other(self, other: Validation) -> None:
        """Note the loss and the metrics of a further validation set, in original units."""
        config, parts = self.config, [(other.target, other.raw)]
        value = mean_loss(self.loss, other.target, other.raw, self.team)
        value = value if config.units is None else float(config.units.loss_in_own(value))
        self._note(other.named("loss"), value)
        for metric in config.metrics:
            value = metric_if_defined(metric, config.loss, config.units, parts)
            self._note(other.named(metric.name), value)

    def _note_out_of_fold(self, folds: NDArray[np.int64]) -> None:
        """Note the loss and the metrics of the held-out rows of every fold."""
        loss, target, state, team = self.loss, self.target, self.state, self.team
        couples = {loss.couples_rows, *(metric.couples_rows for metric in self.config.metrics)}
        whole: list[Scored] = []
        by_fold: list[Scored] = []
        if couples == {True}:
            for k, held in enumerate(state.held_out):
                if not len(held):  # from the member of all rows
                    continue
                by_fold.append((target.part(held), state.raw_of(k, team.n_threads)[held]))
        else:
            out_of_fold = state.raw_of(0, team.n_threads).copy(order="F")
            for k, held in enumerate(state.held_out[1:], start=1):
                out_of_fold[held] = state.raw_of(k, team.n_threads)[held]
            if True in couples:
                judged = [held for held in state.held_out if len(held)]
                by_fold = [(target.part(held), out_of_fold[held]) for held in judged]
            held_by_some = (folds >= 0) & (folds < len(state.members))
            if any(not metric.couples_rows for metric in self.config.metrics):
                whole = [(target.rows(held_by_some), out_of_fold[held_by_some])]
        if loss.couples_rows:
            state.validation.append(mean_loss_of_parts(loss, by_fold, team))
        else:
            state.validation.append(mean_loss(loss, target, out_of_fold, team, held_by_some))
        self._note_metrics(whole, by_fold)

    def _note_metrics(self, whole: list[Scored], by_fold: list[Scored]) -> None:
        """Note the metrics of the held-out rows, all together or of each fold by itself."""
        config = self.config
        for metric in config.metrics:
            parts = by_fold if metric.couples_rows else whole
            self._note(metric.name, metric_if_defined(metric, config.loss, config.units, parts))

    def _note(self, name: str, value: float) -> None:
        self.state.metrics.setdefault(name, []).append(value)
