"""Snapshots of a fit: kept in memory or in a file, and taken up by the fit that continues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilboost.boosting import EnsembleMember, TrainingState
from hilboost.core.base_model import Stage
from hilboost.core.errors import InvalidData, InvalidModelFile, InvalidParameter
from hilboost.core.learner import Learner
from hilboost.learners.mixed import names_of
from hilboost.model.snapshot import FitSnapshot, KeptState, MemberSnapshot
from hilboost.persistence.container import DAMAGE
from hilboost.persistence.require import require
from hilboost.persistence.values import ValueReader, ValueWriter
from hilboost.training.fingerprints import digest, fingerprint, plain_value
from hilboost.training.recipe import Continuation, Recipe


def written(snapshots: Sequence[FitSnapshot], writer: ValueWriter) -> list[Any]:
    """Convert snapshots to JSON and arrays of a file."""
    return [
        writer.write(
            [one.n_stages, [[member.raw, member.learner] for member in one.members]], "a snapshot"
        )
        for one in snapshots
    ]


def digest_of(described: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Hash what :func:`written` returned, and its arrays: only a learner knows their meaning."""
    text = json.dumps(described)
    names = re.findall(r'"(value\.\d+)"', text)
    return digest([text.encode(), *(fingerprint(arrays[name]).encode() for name in names)])


def read(
    described: Any, reader: ValueReader, members: Sequence[EnsembleMember]
) -> tuple[FitSnapshot, ...]:
    """Read the snapshots of a file."""
    snapshots = []
    r = len(members[0].initial_raw)
    for n_stages, found in reader.read(described):
        require(type(n_stages) is int and 0 <= n_stages <= len(members[0].stages), "snapshots")
        require(len(found) == len(members), "snapshots")
        for raw, _ in found:
            require(isinstance(raw, np.ndarray) and raw.dtype == np.float64, "snapshots")
            require(raw.ndim == 2 and raw.shape[1] == r, "snapshots")
            require(bool(np.isfinite(raw).all()), "snapshots")
        snapshots.append(
            FitSnapshot(n_stages, tuple(MemberSnapshot(raw, own) for raw, own in found))
        )
    return tuple(snapshots)


def belongings(recipe: Recipe) -> Mapping[str, str]:
    """Hash what the state of a fit depends on: the learner, the loss, and the data."""
    target = recipe.data.target
    return {
        "learner": str(plain_value("learner", recipe.config.learner)),
        "loss": str(plain_value("loss", (recipe.config.loss, recipe.config.units))),
        "X": fingerprint(recipe.data.X),
        "y": fingerprint(target.y.astype(np.float64, copy=False)),
        "sample_weight": fingerprint(target.weight),
    }


def belongings_to_keep(recipe: Recipe) -> Mapping[str, str] | None:
    """Return :func:`belongings`, or ``None`` if the fit can be continued from its stages alone."""
    if recipe.config.learner.capabilities.resumable:
        return None
    try:
        return belongings(recipe)
    except InvalidParameter:
        if recipe.config.learner.capabilities.has_state:
            raise
        return None


def kept(state: TrainingState, belongs_to: Mapping[str, str] | None) -> KeptState | None:
    """Return the state after the stages that the model keeps, if there is a snapshot of it."""
    snapshot = state.snapshot_of(len(state.members[0].stages))
    return None if snapshot is None or belongs_to is None else KeptState(snapshot, belongs_to)


def snapshot_to_continue(recipe: Recipe, continuation: Continuation) -> FitSnapshot | None:
    """Return the snapshot that a continued fit starts from; ``None`` if stages are sufficient."""
    learner, state = recipe.config.learner, continuation.state
    n_stages = len(state.members[0].stages)
    if learner.capabilities.resumable or not n_stages:
        return None
    snapshot = state.snapshot_of(n_stages)
    if snapshot is None:
        if continuation.in_units:
            raise InvalidModelFile("the checkpoint is damaged: it does not contain its state.")
        if learner.capabilities.has_state:
            raise InvalidData(
                f"warm_start: {_described(learner)} cannot be continued from the stages alone, and "
                "the first fit did not keep its state; set warm_start=True before the first fit, "
                "or fit again with warm_start=False."
            )
        return None
    if continuation.belongs_to is None:
        return snapshot
    now = belongings(recipe)
    others = [name for name, text in continuation.belongs_to.items() if now[name] != text]
    if not others:
        return snapshot
    if learner.capabilities.has_state:
        raise InvalidData(
            f"warm_start: {_described(learner)} can only be continued with the learner, the loss "
            f"and the data of the first fit, but this fit has another {', '.join(others)}; pass "
            "the same, or set warm_start=False to start a new fit."
        )
    return None


def restore(learner: Learner, state: TrainingState, snapshot: FitSnapshot) -> None:
    """Give the prepared data of each member the state of the learner, and share its stages."""
    for member, own in zip(state.members, snapshot.members, strict=True):
        try:
            terms = [term for stage in member.stages for term in stage.terms]
            restored = iter(learner.restore(member.data, own.learner, terms))
            member.stages[:] = [
                Stage(tuple(next(restored) for _ in stage.terms)) for stage in member.stages
            ]
        except DAMAGE as error:
            raise InvalidModelFile(
                f"the state of the fit is damaged ({error}); start a new fit."
            ) from error


def _described(learner: Learner) -> str:
    return "a model of several learners" if names_of(learner) else "a kernel machine"
