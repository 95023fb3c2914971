"""Functional gradient descent on ``F : inputs -> H`` (Friedman 2001, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilboost.backends.team import Team
from hilboost.boosting.evaluate import add_stage, gradients, mean_loss
from hilboost.boosting.sampling import RowSampling
from hilboost.boosting.stopping import EarlyStopping
from hilboost.core.contracts import AdaptiveLoss, Callback, Learner, Loss, Rule, State
from hilboost.core.records import Event, Floats, Gradients, Stage, Target


@dataclass(frozen=True)
class Plan:
    """What is exchangeable, and how long to go on."""

    loss: Loss
    learner: Learner
    rules: Sequence[Rule]
    n_stages: int
    sampling: RowSampling = RowSampling()
    stopping: EarlyStopping | None = None
    callbacks: Sequence[Callback] = ()
    seed: int = 0


@dataclass(frozen=True)
class Validation:
    """Held-out inputs (n, d), their target, and ``raw`` (n, r) so far."""

    X: Floats
    target: Target
    raw: Floats


@dataclass
class Progress:
    """Where a fit stands: everything that a continued fit needs.

    ``raw`` (n, r) belongs to the loop.  ``train`` and ``validation`` begin with the start value's
    loss.
    """

    raw: Floats
    stages: list[Stage] = field(default_factory=list)
    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


def boost(
    plan: Plan,
    data: Any,
    target: Target,
    progress: Progress,
    team: Team,
    validation: Validation | None = None,
) -> Progress:
    """Add stages to ``progress`` until the plan is fulfilled.

    Parameters
    ----------
    plan : Plan
    data : what ``plan.learner.prepare`` returned
    target : Target
    progress : Progress, changed in place
    team : Team
    validation : Validation or None

    Notes
    -----
    A stage's randomness comes from ``(seed, stage)`` alone: a fit in two halves equals one in one go.
    """
    reuse: Gradients | None = None
    for number in range(len(progress.stages), plan.n_stages):
        rng = np.random.default_rng((plan.seed, number))
        loss = plan.loss
        if isinstance(loss, AdaptiveLoss):
            loss = loss.adapted(target, progress.raw)
        reuse = gradients(loss, target, progress.raw, team, reuse)
        sample = plan.sampling.draw(target, rng)
        fitted = tuple(plan.learner.fit(data, reuse, sample, rng))
        stage = Stage(tuple(f.part for f in fitted), np.ones(progress.raw.shape[1]))
        state = State(loss, target, progress.raw, fitted, sample)
        for rule in plan.rules:
            stage = rule(stage, state)
        add_stage(progress.raw, stage, fitted, team)
        progress.stages.append(stage)
        progress.train.append(mean_loss(loss, target, progress.raw, team))
        if validation is not None:
            for part in stage.parts:
                coefficient = stage.coefficient[part.columns]
                addend = type(part.model).sum_of([part.model], [coefficient], [part.columns])
                addend.add_to(validation.raw, validation.X, team.n_threads)
            progress.validation.append(mean_loss(loss, validation.target, validation.raw, team))
        if _ends(plan, progress):
            break
    return progress


def _ends(plan: Plan, progress: Progress) -> bool:
    held_out = progress.validation[-1] if progress.validation else None
    event = Event(len(progress.stages), plan.n_stages, progress.train[-1], held_out)
    asked = [callback(event) for callback in plan.callbacks]
    if any(answer is True for answer in asked):
        return True
    return plan.stopping is not None and plan.stopping.should_stop(progress.validation)
