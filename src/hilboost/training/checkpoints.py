"""Fits that are saved to a file while they run, and resumed from it."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hilboost.boosting import BoostingConfig, EnsembleMember, TrainingState
from hilboost.callbacks import Checkpoint
from hilboost.callbacks.checkpoint import checkpoints_among
from hilboost.core.callback import Callback, Event
from hilboost.core.errors import FitWarning, InvalidData, InvalidModelFile, InvalidParameter
from hilboost.core.learner import Learner
from hilboost.core.version import ROW_DRAWS, __version__
from hilboost.learners.mixed import names_of
from hilboost.model import AdditiveModel
from hilboost.persistence import container as files
from hilboost.persistence.require import require
from hilboost.persistence.values import ValueReader, ValueWriter
from hilboost.training.data import TrainingData
from hilboost.training.fingerprints import FitFingerprint
from hilboost.training.recipe import Continuation, Recipe
from hilboost.training.snapshots import digest_of, read, written

_KIND = "checkpoint"


@dataclass(frozen=True)
class StoredFit:
    """The content of a checkpoint."""

    path: Path
    model: AdditiveModel  # the stages of all members
    header: dict[str, Any]
    arrays: dict[str, Any]

    @classmethod
    def read(cls, checkpoint: Checkpoint) -> StoredFit | None:
        """Read a checkpoint if there is one and it is to be used."""
        path = checkpoint.file
        if not checkpoint.resume or not path.exists():
            return None
        model, header, arrays = files.read(path)
        if header.get("kind") != _KIND:
            raise InvalidModelFile(
                f"{path} is a model, not a checkpoint; use another path, or set resume=False, "
                "which replaces the file."
            )
        return cls(path, model, header, arrays)

    def continuation(self, fingerprint: FitFingerprint) -> Continuation:
        """Return the fit to continue, if it is that of the fingerprint."""
        try:
            fingerprint.check(self.path, self.header)
            return self._continuation()
        except (InvalidData, InvalidParameter, InvalidModelFile):
            raise
        except files.DAMAGE as error:
            raise InvalidModelFile(f"{self.path} is damaged: {error}") from error

    def _continuation(self) -> Continuation:
        from hilboost.persistence import fitted  # imports all output spaces

        header = self.header
        require(type(header["seed"]) is int and header["seed"] >= 0, "seed")
        members = _apart(self.model, header["n_members"])
        n_stages = len(members[0].stages)
        history = fitted.read_history(header | {"validation": header["validation"] or None})
        require(len(history.train) == n_stages + 1, "train")
        require(header["digest"] == digest_of(header["snapshots"], self.arrays), "the state")
        validation = history.validation
        state = TrainingState(
            members,
            train=history.train.tolist(),
            validation=[] if validation is None else validation.tolist(),
            metrics={name: values.tolist() for name, values in history.metrics.items()},
            snapshots=read(header["snapshots"], ValueReader(self.arrays), members),
        )
        chosen, stages = header["chosen"], fitted.stages_from_file(header)
        resolved = None if chosen is None else fitted.resolved_from_file(chosen)
        return Continuation(state, header["seed"], resolved, in_units=True, stages=stages)


def header_of(
    fingerprint: FitFingerprint, recipe: Recipe, n_members: int, n_features: int
) -> dict[str, Any]:
    """Return what the header of a checkpoint contains from the first stage to the last."""
    from hilboost.persistence import fitted  # imports all output spaces

    resolved = recipe.resolved
    return {
        "kind": _KIND,
        "version": __version__,
        "row_draws": ROW_DRAWS,
        "parameters": fingerprint.parameters,
        "data": fingerprint.data,
        "seed": recipe.config.seed,
        "chosen": None if resolved is None else fitted.resolved_to_file(resolved),
        **fitted.stages_to_file(recipe.config.learner),
        "n_members": n_members,
        "n_features_in": n_features,
    }


class Writer(AbstractContextManager["Writer"]):
    """Callback that saves the state of a fit at intervals, and when it ends or is interrupted."""

    def __init__(
        self, checkpoint: Checkpoint, header: dict[str, Any], state: TrainingState
    ) -> None:
        self._checkpoint, self._header, self._state = checkpoint, header, state
        self._written = 0
        self._tried = 0
        self._when = 0.0
        self._cost = 0.0
        self._has_warned = False

    def __enter__(self) -> Self:
        self.begin(len(self._state.members[0].stages))
        return self

    def begin(self, n_stages: int) -> None:
        """Begin after a number of stages, which the file has if there are any."""
        _remove_leftovers(self._checkpoint.file)
        self._written = self._tried = n_stages
        self._when = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Save if a save is due."""
        seconds = time.monotonic() - self._when
        if self._checkpoint.is_due(event.stage - self._tried, seconds, self._cost):
            self._write()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ended = kind is None or issubclass(kind, KeyboardInterrupt)
        if ended and len(self._state.members[0].stages) != self._written:
            self._write()

    def _write(self) -> None:
        state, began = self._state, time.monotonic()
        self._tried = len(state.members[0].stages)
        if state.rotation is not None:
            self._header["chosen"]["n_shards"] = state.rotation.counts[self._tried]
        writer = ValueWriter()
        snapshots = written(state.snapshots, writer)
        header = self._header | {
            "train": state.train,
            "validation": state.validation,
            "metrics": state.metrics,
            "snapshots": snapshots,
            "digest": digest_of(snapshots, writer.arrays),
        }
        try:
            files.write(self._checkpoint.file, _in_one(state.members), header, writer=writer)
            self._written = self._tried
        except OSError as error:
            self._warn(error)
        self._when = time.monotonic()
        self._cost = self._when - began

    def _warn(self, error: OSError) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"the checkpoint {self._checkpoint.file} could not be written "
            f"({str(error).rstrip('.')}) after stage {self._tried}; the fit continues and tries "
            f"again, and a checkpoint of stage {self._written} remains if it exists. Free space on "
            "the disk, or check the path.",
            FitWarning,
            stacklevel=2,
        )


def _remove_leftovers(path: Path) -> None:
    """Remove incomplete files of processes that were killed while writing."""
    final = path.resolve()
    ours = re.compile(rf"\.[0-9a-f]{{12}}-{re.escape(final.name)}")
    for other in final.parent.iterdir():
        if ours.fullmatch(other.name):
            other.unlink(missing_ok=True)


def _in_one(members: Sequence[EnsembleMember]) -> AdditiveModel:
    """Put the stages of all members into one model, one member after the other."""
    stages = tuple(stage for member in members for stage in member.stages)
    return AdditiveModel(members[0].initial_raw, stages)


def _apart(model: AdditiveModel, n_members: int) -> list[EnsembleMember]:
    """Split the model into members: the inverse of :func:`_in_one`."""
    require(type(n_members) is int and n_members >= 1, "n_members")
    n_stages, rest = divmod(len(model.stages), n_members)
    require(rest == 0, "n_members")
    return [
        EnsembleMember(
            model.initial_raw, stages=list(model.stages[k * n_stages : (k + 1) * n_stages])
        )
        for k in range(n_members)
    ]


def checkpoint_among(callbacks: Sequence[Callback]) -> Checkpoint | None:
    """Return the checkpoint among the callbacks, if there is one."""
    found = checkpoints_among(callbacks)
    if len(found) > 1:
        raise InvalidParameter(f"Pass at most one Checkpoint; got {len(found)}.")
    return found[0] if found else None


class StageKeeper(Protocol):
    """Keeper of the stages of a running fit, such as a file."""

    def check_learner(self, learner: Learner) -> None:
        """Reject learners whose stages cannot be kept."""

    def check_width(self, width: int) -> None:
        """Reject stages that refer to columns of a wider table."""

    def writing(
        self, config: BoostingConfig, recipe: Recipe, state: TrainingState, n_columns: int
    ) -> BoostingConfig:
        """Return the configuration with a callback that keeps the stages."""


@dataclass(frozen=True)
class Resumable:
    """A fit that is saved to a file while it runs."""

    checkpoint: Checkpoint
    fingerprint: FitFingerprint
    continuation: Continuation | None  # the content of the file, if it is used

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, parameters: dict[str, Any], data: TrainingData, seed: int
    ) -> Resumable:
        """Create it for a fit with these parameters and data; read the file if there is one."""
        fingerprint = FitFingerprint.of(parameters, data, seed)
        stored = StoredFit.read(checkpoint)
        continuation = None if stored is None else stored.continuation(fingerprint)
        return cls(checkpoint, fingerprint, continuation)

    def check_learner(self, learner: Learner) -> None:
        """Reject learners whose fits files cannot store."""
        if learner.capabilities.in_checkpoints:
            return
        names = names_of(learner) or ("it",)
        pairs = zip(names, learner.parts, strict=True)
        refused = [
            "the learner" if name == "it" else f"the learner {name!r}"
            for name, part in pairs
            if not part.capabilities.in_checkpoints
        ]
        raise InvalidParameter(
            f"Checkpoint is not supported by {' and '.join(refused)}, because files cannot store "
            "its base models, its kernel, or the state that it needs to continue; use another "
            "learner or kernel, or remove Checkpoint from callbacks."
        )

    def check_width(self, width: int) -> None:
        """Reject stages that refer to columns of a wider table; no later check would find them."""
        if self.continuation is not None:
            check_columns(self.continuation, width, self.checkpoint.file)

    def writing(
        self, config: BoostingConfig, recipe: Recipe, state: TrainingState, n_columns: int
    ) -> BoostingConfig:
        """Replace the checkpoint in the configuration by a writer.

        No stages are added if the fit in the file was complete.
        """
        header = header_of(self.fingerprint, recipe, len(state.members), n_columns)
        writer = Writer(self.checkpoint, header, state)
        callbacks = tuple(writer if c is self.checkpoint else c for c in config.callbacks)
        is_complete = self.continuation is not None and _is_complete(config, state)
        return replace(
            config,
            callbacks=callbacks,
            n_stages=len(state.members[0].stages) if is_complete else config.n_stages,
            takes_snapshots=not config.learner.capabilities.resumable,
        )


def _is_complete(config: BoostingConfig, state: TrainingState) -> bool:
    """Whether the fit has stopped by itself."""
    if config.stopping is not None and config.stopping.should_stop(config.watched(state)):
        return True
    return all(config.learner.converged(member.data) for member in state.members)


def check_columns(continuation: Continuation, width: int, path: Path) -> None:
    """Reject stages of a file that refer to columns of a wider table."""
    for member in continuation.state.members:
        for term in (term for stage in member.stages for term in stage.terms):
            if not term.model.has_shape(width, len(term.coefficient)):
                raise InvalidModelFile(
                    f"{path} is damaged: it uses columns that the data do not have."
                )
