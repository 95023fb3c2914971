"""The state of a fit before its first new stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting.loop import add_held_out
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.offsets import starting_constant
from hilboost.boosting.rotation import Rotation
from hilboost.boosting.state import TrainingState, Validation
from hilboost.boosting.units import continued_in_units, in_units
from hilboost.callbacks.progress_bar import Phases
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidModelFile, InvalidParameter, counted
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.encoders.encoding import Encoding
from hilboost.losses.masked import with_missing_targets
from hilboost.model import AdditiveModel
from hilboost.model.codecs import TargetCodec
from hilboost.model.fit_facts import FitSnapshot
from hilboost.tables.bounds import as_bounds, bounds_refused
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData, ValidationSet
from hilboost.training.recipe import Recipe
from hilboost.validation.weights import errors_in_rows


@dataclass(frozen=True)
class InitialState:
    """Ensemble members and held-out rows before the first new stage."""

    state: TrainingState
    validation: Validation | None
    # list of (n, …) arrays: the inputs of every member, often one shared array
    inputs: list[Floats]
    encoding: Encoding | None  # maps category codes to these inputs
    snapshot: FitSnapshot | None = None  # what the learner continues from, besides the stages
    others: tuple[Validation, ...] = ()  # further validation sets
    phases: Phases = field(default_factory=Phases)  # announces what the fit does between its stages
    offset_range: tuple[float, float] | None = None  # of the rows of all workers


def loss_of_rows(loss: Loss, codec: TargetCodec, targets: Iterable[Target]) -> Loss:
    """Return the loss for targets, some of which may hold bounds."""
    if not any(codec.has_bounds(target) for target in targets):
        return loss
    if not loss.has_distribution:
        raise bounds_refused(type(loss).__name__)
    from hilboost.losses.bounded import BoundedLoss  # of few targets

    return BoundedLoss(loss)


def check_rows(loss: Loss, codec: TargetCodec, target: Target) -> None:
    """Let the loss check each row of positive weight, while rows have the numbers of the user."""
    found = loss_of_rows(loss, codec, [target])
    check_weighted_rows(found, target.y if found is loss else as_bounds(target.y), target.weight)


def check_weighted_rows(loss: Loss, y: Floats, weight: Floats | None) -> None:
    """Let the loss check each row of positive weight; messages have its number among all rows."""
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    with errors_in_rows(rows):
        loss.check_rows(y[rows])


def _with_bounds(loss: Loss, data: TrainingData) -> tuple[Loss, TrainingData]:
    """Return the loss and the data of targets, all with bounds if some hold bounds."""
    targets = [data.target, *(one.target for one in data.validation)]
    found = loss_of_rows(loss, data.codec, targets)
    if found is not loss:
        data = data.with_targets(lambda target: target.with_y(as_bounds(target.y)))
    return found, data


def _checked_loss(loss: Loss, data: TrainingData) -> Loss:
    """Check the targets and return the loss, masked where some targets are missing."""
    held_out = [one.target for one in data.validation]
    loss = with_missing_targets(loss, [data.target, *held_out])
    loss.check(data.target)
    if data.target.positions is not None and not loss.corrects_positions:
        raise InvalidData(
            f"positions is not supported by {type(loss).__name__}; use a built-in loss of "
            "rankings, such as loss='lambdarank', or omit positions."
        )
    if held_out:
        # Check together with the training target: all held-out counts may be zero.
        y = np.concatenate([*(one.y for one in held_out), data.target.y])
        loss.check(Target(y, share=data.target.share))
    return loss


@dataclass(frozen=True)
class Start:
    """Loss, data and best constant at the start of a fit, in units of the fit."""

    loss: Loss
    data: TrainingData
    units: TargetUnits | None
    initial_raw: Floats


def start_of(
    loss: Loss,
    data: TrainingData,
    uses_units: bool = True,  # whether the fit is independent of the scale of the target
    continuation: Continuation | None = None,  # its stages are converted to the units in place
) -> Start:
    """Return the loss for these targets, if it accepts them, and its best constant."""
    loss, data = _with_bounds(loss, data)
    loss = _checked_loss(loss, data)
    if uses_units and loss.takes_integer_codes:  # in fewer bytes
        data = data.with_targets(lambda target: target.with_y(data.codec.compact(target.y)))
    units = loss.units(data.target)  # rejects targets that no unit can bring into range
    if units is not None and uses_units:
        loss, data = units.loss, data.with_targets(partial(in_units, units))
    initial_raw = starting_constant(loss, data.target)
    if continuation is not None and not continuation.in_units:
        continued_in_units(units, continuation.units, continuation.state, initial_raw)
    return Start(loss, data, units if uses_units else None, initial_raw)


def begin(recipe: Recipe, continuation: Continuation | None, n_threads: int) -> InitialState:
    """Create members and held-out rows with their ``raw``; check that a continued fit matches."""
    folds, rows = _fold_rows(recipe)
    state, snapshot = _state_so_far(recipe, continuation, len(rows))
    state.folds = folds
    encoding, inputs = _encoded(recipe, rows)
    before = None if continuation is None else continuation.encoding
    if before is not None and not before.equals(encoding):
        # Existing stages must never be evaluated on other columns.
        raise InvalidData(
            "warm_start with target encoding requires the same rows and the same target_encoding "
            "as the first fit; set warm_start=False to start a new fit."
        )
    for member, own in zip(state.members, rows, strict=True):
        member.rows = own
    able, target = recipe.config.learner.capabilities, recipe.data.target
    if recipe.rotation.at_start > 1 and able.row_division is not None:
        state.rotation = Rotation.of(
            recipe.rotation, target, inputs, state.members, able.row_division, n_threads
        )
    else:
        kept = [None] * len(rows) if snapshot is None else snapshot.raw
        for member, X, so_far in zip(state.members, inputs, kept, strict=True):
            raw = _raw_of(member, X, target, so_far, n_threads)
            member.raw = np.asarray(raw, order=able.layout)
    scored = [
        _scored(one, state.members[0].model(), encoding, snapshot is not None, n_threads)
        for one in recipe.data.validation
    ]
    validation = scored.pop(0) if scored else None
    return InitialState(state, validation, inputs, encoding, snapshot, tuple(scored))


def _state_so_far(
    recipe: Recipe, continuation: Continuation | None, n_members: int
) -> tuple[TrainingState, FitSnapshot | None]:
    """The stages of an earlier fit, if there is one, and the snapshot to continue from."""
    if continuation is None:
        return TrainingState([EnsembleMember(recipe.initial_raw) for _ in range(n_members)]), None
    state = continuation.state
    if continuation.n_columns not in (None, recipe.width):
        raise InvalidModelFile(
            "the checkpoint is damaged: it uses columns that the data do not have."
        )
    _check_continued(recipe, state, n_members)
    if recipe.data.held_out is None and n_members == 1:
        state.validation.clear()
        state.metrics.clear()
    snapshot = continuation.snapshot_for(recipe)
    state.snapshots = () if snapshot is None else state.snapshots
    return state, snapshot


def _raw_of(
    member: EnsembleMember, X: Floats, target: Target, kept: Floats | None, n_threads: int
) -> Floats:
    """The predictions of the stages so far, from the snapshot if there is one."""
    if kept is None:
        return target.with_offset(member.model().predict_raw(X, n_threads))
    if len(kept) != len(X):
        raise InvalidModelFile("the state of the fit is damaged; start a new fit.")
    return kept.copy(order="K")


def _scored(
    rows: ValidationSet,
    model: AdditiveModel,
    encoding: Encoding | None,
    by_stages: bool,  # add up the stages one by one, as the loop does
    n_threads: int,
) -> Validation:
    """Return held-out rows with the predictions of the stages so far."""
    X, target = rows.X if encoding is None else encoding.encode(rows.X), rows.target
    if not by_stages:
        raw = target.with_offset(model.predict_raw(X, n_threads))
        return Validation(X, target, raw, rows.name)
    start = target.starting_raw(model.initial_raw).copy()
    validation = Validation(X, target, start, rows.name)
    for stage in model.stages:
        add_held_out(validation, stage, n_threads)
    return validation


def _fold_rows(recipe: Recipe) -> tuple[NDArray[np.int64] | None, list[NDArray[np.uint32] | None]]:
    """Assign held-out rows to members, others to -1, and find the training rows of each member."""
    if not recipe.splits:
        return None, [None]
    folds = np.full(len(recipe.data.target.y), -1, dtype=np.int64)
    for k, split in enumerate(recipe.splits):
        folds[split.held] = k
    return folds, [split.learned.astype(np.uint32) for split in recipe.splits]


def _encoded(
    recipe: Recipe, rows: Sequence[NDArray[np.uint32] | None]
) -> tuple[Encoding | None, list[Floats]]:
    if recipe.encoder is None:
        return None, [recipe.data.X] * len(rows)
    return recipe.encoder.learn(recipe.data.X, recipe.data.target, rows, recipe.config.seed)


def _measures(recipe: Recipe) -> set[str]:
    """Names of the metrics, and of losses and metrics of further validation sets."""
    names = [metric.name for metric in recipe.config.metrics]
    further = recipe.data.validation[1:]
    others = (f"{one.name}: {name}" for one in further for name in ["loss", *names])
    return {*names, *others}


def _check_continued(recipe: Recipe, state: TrainingState, n_members: int) -> None:
    members, n_outputs = state.members, recipe.n_outputs
    if len(members[0].initial_raw) != n_outputs or len(members) != n_members:
        raise InvalidData(
            f"warm_start: the model has {len(members)} x {len(members[0].initial_raw)} outputs, "
            f"but this fit has {n_members} x {n_outputs}; set warm_start=False to start a new fit."
        )
    is_judged = recipe.data.held_out is not None or n_members > 1
    if is_judged and set(state.metrics) != _measures(recipe):
        raise InvalidData(
            "warm_start: the existing stages were fitted with another eval_metric or other "
            "validation sets; pass the same ones, or set warm_start=False."
        )
    if is_judged and len(state.validation) != len(state.train):
        raise InvalidData(
            "warm_start: the existing stages were fitted without held-out rows, so early stopping "
            "cannot choose the best stage; set early_stopping=False and omit X_val, or set "
            "warm_start=False."
        )
    so_far = state.n_stages
    n_stages = recipe.config.n_stages
    if so_far > n_stages:
        raise InvalidParameter(
            f"n_estimators={n_stages} is less than the {counted(so_far, 'stage')} already fitted; "
            f"with warm_start=True, it must be at least {so_far}."
        )
