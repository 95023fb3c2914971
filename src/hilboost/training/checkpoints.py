"""Fits that are saved to a file while they run, and resumed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hilboost.boosting import BoostingConfig, TrainingState
from hilboost.callbacks import Checkpoint
from hilboost.callbacks.checkpoint import checkpoints_among
from hilboost.core.callback import Callback
from hilboost.core.errors import InvalidModelFile, InvalidParameter
from hilboost.core.learner import Learner
from hilboost.training.checkpoint_file import StoredFit, Writer, header_of
from hilboost.training.data import TrainingData
from hilboost.training.fingerprints import FitFingerprint
from hilboost.training.recipe import Continuation, Recipe


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
        names = learner.names or ("it",)
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
