"""The state from which a fit continues: in memory, from other processes, or in a checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.state import TrainingState
from hilboost.core.base_model import Stage
from hilboost.core.errors import InvalidData, InvalidModelFile
from hilboost.core.learner import Learner
from hilboost.core.plain_values import are_finite
from hilboost.core.target import TargetUnits
from hilboost.core.version import ROW_DRAWS
from hilboost.encoders.encoding import Encoding
from hilboost.model import AdditiveModel
from hilboost.model.fit_facts import FitSnapshot, ResolvedParameters
from hilboost.model.fitted import FittedModel
from hilboost.persistence.require import DAMAGE, Arrays, require
from hilboost.training.fingerprints import FitFingerprint, digest, fingerprint, ingredients
from hilboost.training.recipe import Recipe

if TYPE_CHECKING:  # only checkpoints are files
    from hilboost.persistence.values import ValueReader, ValueWriter


@dataclass(frozen=True)
class Continuation:
    """A fit to continue."""

    state: TrainingState  # with the stages so far
    seed: int
    # values of the automatic parameters at the start of the fit
    resolved: ResolvedParameters | None = None
    encoding: Encoding | None = None  # encoding of category columns for the stages so far
    # whether the stages so far are in units of the fit, as in a checkpoint
    in_units: bool = False
    units: TargetUnits | None = None  # otherwise, the units of the stages so far
    kernel_stages: str | None = None  # name of the stages of a kernel machine
    n_columns: int | None = None  # number of input columns of a member, if the stages were stored
    fingerprint: FitFingerprint | None = None  # identity of the fit, if it has a checkpoint

    @classmethod
    def of(cls, fitted: FittedModel) -> Self:
        """The fit of a model that was not read from a file."""
        assert fitted.members is not None
        assert fitted.history is not None
        history = fitted.history.first(fitted.n_stages)
        has_draws = history.validation is not None or fitted.encoding is not None
        if has_draws and fitted.row_draws != ROW_DRAWS:
            raise InvalidData(
                "warm_start: the model was fitted by another build of hilboost, which draws other "
                "rows at random, so that its stages may have been fitted to rows that would now be "
                "held out; set warm_start=False to start a new fit."
            )
        state = TrainingState(
            [EnsembleMember(one.initial_raw, stages=list(one.stages)) for one in fitted.members],
            train=list(history.train),
            validation=[] if history.validation is None else list(history.validation),
            metrics={name: list(values) for name, values in history.metrics.items()},
            snapshots=() if fitted.kept is None else (fitted.kept,),
        )
        return cls(state, fitted.seed, fitted.resolved, fitted.encoding, units=fitted.units)

    @classmethod
    def running(cls, recipe: Recipe, state: TrainingState) -> Self:
        """A running fit, which changes ``state``."""
        from hilboost.persistence.fitted import stages_to_file  # imports all output spaces

        return cls(
            state,
            recipe.config.seed,
            recipe.resolved,
            in_units=True,
            kernel_stages=stages_to_file(recipe.config.learner).get("stages"),
            n_columns=recipe.width,
        )

    def since(self, n_stages: int) -> Self:
        """Copy what the stages after a number of them have added; all if it is 0."""
        return replace(self, state=self.state.since(n_stages))

    @property
    def model(self) -> AdditiveModel:
        """The stages of all members in one model, one member after the other."""
        members = self.state.members
        stages = tuple(stage for member in members for stage in member.stages)
        return AdditiveModel(members[0].initial_raw, stages)

    def to_dict(self, writer: ValueWriter) -> dict[str, Any]:
        """Convert everything but the model to plain values, and arrays of the writer."""
        from hilboost.persistence.fitted import resolved_to_file  # imports all output spaces

        assert self.fingerprint is not None
        state, resolved = self.state, self.state.resolved(self.resolved)
        snapshots = [
            writer.write(
                [one.n_stages, [list(pair) for pair in zip(one.raw, one.learners, strict=True)]],
                "a snapshot",
            )
            for one in state.snapshots
        ]
        return {
            **self.fingerprint.to_dict(),
            "seed": self.seed,
            "chosen": None if resolved is None else resolved_to_file(resolved),
            **({} if self.kernel_stages is None else {"stages": self.kernel_stages}),
            "n_members": len(state.members),
            "n_features_in": self.n_columns,
            "train": state.train,
            "validation": state.validation,
            "metrics": state.metrics,
            "snapshots": snapshots,
            "digest": _digest_of(snapshots, writer.arrays),
        }

    @classmethod
    def from_dict(cls, header: dict[str, Any], arrays: Arrays, model: AdditiveModel) -> Self:
        """Read and check what :meth:`to_dict` wrote; raises errors of damaged files."""
        from hilboost.persistence import fitted  # imports all output spaces
        from hilboost.persistence.values import ValueReader

        members = _members(model, header["n_members"])
        n_stages = len(members[0].stages)
        require(type(header["seed"]) is int and header["seed"] >= 0, "seed")
        history = fitted.read_history(header | {"validation": header["validation"] or None})
        require(len(history.train) == n_stages + 1, "train")
        require(header["digest"] == _digest_of(header["snapshots"], arrays), "the state")
        state = TrainingState(
            members,
            train=history.train.tolist(),
            validation=[] if history.validation is None else history.validation.tolist(),
            metrics={name: values.tolist() for name, values in history.metrics.items()},
            snapshots=_snapshots(header["snapshots"], ValueReader(arrays), members),
        )
        chosen = header["chosen"]
        return cls(
            state,
            header["seed"],
            None if chosen is None else fitted.resolved_from_file(chosen),
            in_units=True,
            kernel_stages=fitted.stages_from_file(header),
            n_columns=header["n_features_in"],
            fingerprint=FitFingerprint.from_dict(header),
        )

    def snapshot_for(self, recipe: Recipe) -> FitSnapshot | None:
        """Return the snapshot that the fit starts from; ``None`` if its stages are sufficient."""
        capabilities = recipe.config.learner.capabilities
        if capabilities.resumable or not self.state.n_stages:
            return None
        snapshot = self.state.snapshot_of(self.state.n_stages)
        if snapshot is None and self.in_units:
            raise InvalidModelFile("the checkpoint is damaged: it does not contain its state.")
        others: list[str] = []
        if snapshot is not None and snapshot.belongs_to is not None:
            then, now = snapshot.belongs_to, ingredients(recipe)
            others = [name for name in {**then, **now} if then.get(name) != now.get(name)]
        if snapshot is not None and not others:
            return snapshot
        if not capabilities.has_state:
            return None
        kind = "a model of several learners" if capabilities.learner_names else "a kernel machine"
        if snapshot is None:
            raise InvalidData(
                f"warm_start: {kind} cannot be continued from the stages alone, and the first fit "
                "did not keep its state; set warm_start=True before the first fit, or fit again "
                "with warm_start=False."
            )
        raise InvalidData(
            f"warm_start: {kind} can only be continued with the learner, the loss and the data of "
            f"the first fit, but this fit has another {', '.join(others)}; pass the same, or set "
            "warm_start=False to start a new fit."
        )


def restore(learner: Learner, state: TrainingState, snapshot: FitSnapshot) -> None:
    """Give the prepared data of each member the state of the learner, and share its stages."""
    for member, own in zip(state.members, snapshot.learners, strict=True):
        try:
            terms = [term for stage in member.stages for term in stage.terms]
            restored = iter(learner.restore(member.data, own, terms))
            member.stages[:] = [
                Stage(tuple(next(restored) for _ in stage.terms)) for stage in member.stages
            ]
        except DAMAGE as error:
            raise InvalidModelFile(
                f"the state of the fit is damaged ({error}); start a new fit."
            ) from error


def _members(model: AdditiveModel, n_members: int) -> list[EnsembleMember]:
    """Split a model into members: the inverse of :attr:`Continuation.model`."""
    require(type(n_members) is int and n_members >= 1, "n_members")
    n_stages, rest = divmod(len(model.stages), n_members)
    require(rest == 0, "n_members")
    stages = iter(model.stages)
    return [
        EnsembleMember(model.initial_raw, stages=list(islice(stages, n_stages)))
        for _ in range(n_members)
    ]


def _snapshots(
    described: object, reader: ValueReader, members: Sequence[EnsembleMember]
) -> tuple[FitSnapshot, ...]:
    """Read the snapshots of a file."""
    snapshots = []
    for n_stages, pairs in reader.read(described):
        require(type(n_stages) is int and 0 <= n_stages <= len(members[0].stages), "snapshots")
        require(len(pairs) == len(members), "snapshots")
        raw = tuple(one for one, _ in pairs)
        shape = members[0].initial_raw.shape
        require(are_finite((one, (*np.shape(one)[:1], *shape)) for one in raw), "snapshots")
        snapshots.append(FitSnapshot(n_stages, raw, tuple(learner for _, learner in pairs)))
    return tuple(snapshots)


def _digest_of(described: object, arrays: Mapping[str, np.ndarray]) -> str:
    """Hash snapshots in a file and their arrays: only a learner knows their meaning."""
    text = json.dumps(described)
    names = re.findall(r'"(value\.\d+)"', text)
    return digest([text.encode(), *(fingerprint(arrays[name]).encode() for name in names)])
