"""Functional gradient descent on ``F : inputs -> H`` (Friedman 2001, Algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import add_stage, gradients, mean_loss
from hilboost.boosting.sampling import RowSampling, Turn
from hilboost.boosting.stopping import EarlyStopping
from hilboost.core.base_model import Stage
from hilboost.core.callback import Callback, Event
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.rule import Rule, State
from hilboost.core.target import Target
from hilboost.model import AdditiveModel
from hilboost.model.snapshot import FitSnapshot, MemberSnapshot


@dataclass(frozen=True)
class BoostingConfig:
    """The components of a fit and its stopping criteria.

    If ``units`` is given, the loss, targets and stages are expressed in them until the fit ends.
    ``metric`` is the loss by which stages are compared, if it is another one.  With
    ``takes_snapshots``, the state contains what its stages do not determine.
    """

    loss: Loss
    learner: Learner
    rules: Sequence[Rule]
    n_stages: int
    sampling: RowSampling
    stopping: EarlyStopping | None
    callbacks: Sequence[Callback]
    seed: int
    units: TargetUnits | None = None
    metric: Loss | None = None
    takes_snapshots: bool = False


@dataclass(frozen=True)
class Validation:
    """Held-out inputs (n, d), their target, and ``raw`` (n, r) so far."""

    X: Floats
    target: Target
    raw: Floats


@dataclass
class EnsembleMember:
    """An additive model during training, and its training rows.

    Attributes
    ----------
    initial_raw : (r,) float64
    rows : (m,) uint32 or None
        ``None`` means all rows.
    stages : list of Stage
    raw : (n, r) float64
        For all rows of the table, including those held out from the member.  Stored column by
        column (Fortran order): a stage updates whole columns, and sums over classes vectorize.
    data : object or None
        Result of ``config.learner.prepare``, if each member has its own inputs.
    """

    initial_raw: Floats
    rows: NDArray[np.uint32] | None = None
    stages: list[Stage] = field(default_factory=list)
    raw: Floats = field(default_factory=lambda: np.empty((0, 0)))
    data: Any = None

    def model(self) -> AdditiveModel:
        """The additive model of the stages so far."""
        return AdditiveModel(self.initial_raw, tuple(self.stages))

    @cached_property
    def inside(self) -> NDArray[np.bool_] | None:
        """Mask of the member's training rows, (n,), or ``None`` for all."""
        if self.rows is None:
            return None
        mask = np.zeros(len(self.raw), dtype=bool)
        mask[self.rows] = True
        return mask

    @cached_property
    def outside(self) -> NDArray[np.uint32] | None:
        """The other rows, ascending, or ``None`` where there are none."""
        return None if self.inside is None else np.flatnonzero(~self.inside).astype(np.uint32)


@dataclass
class TrainingState:
    """The state of a fit: everything needed to continue it.

    Attributes
    ----------
    members : list of EnsembleMember
        One member, or one for each fold; the model is their mean.
    folds : (n,) int64 or None
        For each row, the member from which it is held out; a trial may omit the last members.
    train, validation : list of float
        Mean losses, beginning with that of the initial prediction.
    seconds : list of float
        Duration of each stage; NaN for stages of an earlier fit.
    interrupt : KeyboardInterrupt or None
        The interrupt that ended the fit early, to be raised once the stages so far are saved.
    snapshots : tuple of FitSnapshot
        That of the last stage, after that of the best stage if it is another one.
    """

    members: list[EnsembleMember]
    folds: NDArray[np.int64] | None = None
    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    interrupt: KeyboardInterrupt | None = None
    snapshots: tuple[FitSnapshot, ...] = ()

    def snapshot_of(self, n_stages: int) -> FitSnapshot | None:
        """Return the snapshot after a number of stages, if there is one."""
        return next((found for found in self.snapshots if found.n_stages == n_stages), None)

    @contextmanager
    def in_whole_stages(self) -> Iterator[None]:
        """Keep only complete stages if the block is interrupted; ``raw`` may be ahead of them."""
        try:
            yield
        except KeyboardInterrupt:
            noted = [losses for losses in (self.train, self.validation) if losses]
            n_stages = max(0, min((len(losses) for losses in noted), default=0) - 1)
            if self.snapshots:
                n_stages = min(n_stages, self.snapshots[-1].n_stages)
            for losses in noted:
                del losses[n_stages + 1 :]
            del self.seconds[n_stages:]
            for member in self.members:
                del member.stages[n_stages:]
            raise


def boost(
    config: BoostingConfig,
    data: Any,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    validation: Validation | None = None,
) -> None:
    """Add stages to every member until the stopping criteria of the config are met.

    Parameters
    ----------
    config : BoostingConfig
    data : object
        Result of ``config.learner.prepare``, for members without their own data.
    target : Target
    state : TrainingState
        Modified in place.
    team : ThreadTeam
        Trains several members in parallel; with a single member, threads share its rows.
    validation : Validation or None

    Notes
    -----
    The random numbers of a stage depend only on (seed, stage, member), so a fit in two parts gives
    the same model as an uninterrupted one, and members may be fitted in any order.  After a
    ``KeyboardInterrupt``, the state contains the stages completed before it.
    """
    with ExitStack() as stack:
        for callback in config.callbacks:
            if isinstance(callback, AbstractContextManager):
                stack.enter_context(callback)
        stack.enter_context(state.in_whole_stages())
        _add_stages(config, data, target, state, team, validation)


def _add_stages(
    config: BoostingConfig,
    data: Any,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    validation: Validation | None,
) -> None:
    side_by_side = len(state.members) > 1
    inner = ThreadTeam(1) if side_by_side else team
    if not state.train:
        _note_losses(config, target, state, team, validation)
    if not state.snapshots:
        _take_snapshot(config, data, state)
    so_far = len(state.train) - 1
    state.seconds += [math.nan] * (so_far - len(state.seconds))
    for number in range(so_far, config.n_stages):
        began = time.perf_counter()

        def step(member: int, number: int = number) -> None:
            turn = Turn(config.seed, number, member)
            advance(config, data, target, state.members[member], turn, inner)

        team.map(step, range(len(state.members)))
        if validation is not None:
            add_held_out(validation, state.members[0].stages[-1], team.n_threads)
        _note_losses(config, target, state, team, validation)
        _take_snapshot(config, data, state)
        state.seconds.append(time.perf_counter() - began)
        if _ends(config, data, state):
            break


def add_held_out(validation: Validation, stage: Stage, n_threads: int) -> None:
    """Add the outputs of a stage to ``raw`` of the held-out rows."""
    for term in stage.terms:
        type(term.model).sum_of([term]).add_to(validation.raw, validation.X, n_threads)


def _take_snapshot(config: BoostingConfig, data: Any, state: TrainingState) -> None:
    """Keep the state after the last stage, and after the best one; cost O(n r) for each member."""
    if not config.takes_snapshots:
        return
    n_stages = best = len(state.train) - 1
    if config.stopping is not None and state.validation:
        best = config.stopping.best_stage(state.validation)
    members = tuple(
        MemberSnapshot(
            member.raw.copy(order="K"),
            config.learner.snapshot(data if member.data is None else member.data),
        )
        for member in state.members
    )
    found = (*state.snapshots, FitSnapshot(n_stages, members))
    state.snapshots = tuple(one for one in found if one.n_stages in (best, n_stages))


def advance(
    config: BoostingConfig,
    data: Any,
    target: Target,
    member: EnsembleMember,
    turn: Turn,
    team: ThreadTeam,
) -> None:
    """Fit one stage of one member: gradients, base models, rules, update."""
    data = data if member.data is None else member.data
    loss = _loss_now(config.loss, target, member)
    now = _gradients(config, loss, target, member, team)
    sample = config.sampling.draw(target, member.rows, turn, team)
    if member.rows is not None:
        sample = replace(sample, apart=member.outside)
    fitted: tuple[FittedTerm, ...] = tuple(config.learner.fit(data, now, sample, turn.generator()))
    stage = Stage(tuple(f.term for f in fitted))
    context = State(loss, target, member.raw, fitted, sample)
    for rule in config.rules:
        stage = rule(stage, context)
    add_stage(member.raw, stage, fitted, team)
    config.learner.stage_added(data, stage, fitted)
    member.stages.append(stage)


def _gradients(
    config: BoostingConfig, loss: Loss, target: Target, member: EnsembleMember, team: ThreadTeam
) -> Gradients:
    """Gradients of the loss, of a loss close to it with a useful hessian, or both."""
    curves = [part.fits_curvature for part in config.learner.parts]
    if not any(curves):
        return gradients(loss, target, member.raw, team)
    curved = _with_curvature(loss, target, member)
    now = gradients(curved, target, member.raw, team)
    if all(curves) or curved is loss:
        return now
    return replace(gradients(loss, target, member.raw, team), smooth=now)


def _loss_now(loss: Loss, target: Target, member: EnsembleMember) -> Loss:
    if not loss.adaptive:
        return loss
    if member.rows is None:
        return loss.adapted(target, member.raw)
    return loss.adapted(target.rows(member.rows), member.raw[member.rows])


def _with_curvature(loss: Loss, target: Target, member: EnsembleMember) -> Loss:
    if member.rows is None:
        return loss.with_curvature(target, member.raw)
    return loss.with_curvature(target.rows(member.rows), member.raw[member.rows])


def _loss_at_start(loss: Loss, target: Target, member: EnsembleMember) -> Loss:
    """Return the loss by which stages are compared; it is the same for all stages."""
    if not loss.adaptive:
        return loss
    return loss.adapted(target, np.broadcast_to(member.initial_raw, member.raw.shape))


def _note_losses(
    config: BoostingConfig,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    validation: Validation | None,
) -> None:
    """Append the mean training loss and, if there are held-out rows, the validation loss."""
    members = state.members
    loss = _loss_at_start(config.metric or config.loss, target, members[0])
    train = [mean_loss(loss, target, member.raw, team, member.inside) for member in members]
    state.train.append(float(np.mean(train)))
    if validation is not None:
        state.validation.append(mean_loss(loss, validation.target, validation.raw, team))
    elif state.folds is not None:
        out_of_fold = members[0].raw.copy(order="F")
        for k, member in enumerate(members):
            held = state.folds == k
            out_of_fold[held] = member.raw[held]
        held_by_some = state.folds < len(members)
        state.validation.append(mean_loss(loss, target, out_of_fold, team, held_by_some))


def _ends(config: BoostingConfig, data: Any, state: TrainingState) -> bool:
    held_out = state.validation[-1] if state.validation else None
    event = Event(len(state.train) - 1, config.n_stages, state.train[-1], held_out)
    asked = [callback(event) for callback in config.callbacks]
    learner_data = [data if member.data is None else member.data for member in state.members]
    if any(answer is True for answer in asked) or all(map(config.learner.converged, learner_data)):
        return True
    return config.stopping is not None and config.stopping.should_stop(state.validation)
