"""Fits that are saved to a file while they run, and resumed from it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hilboost.boosting.config import BoostingConfig
from hilboost.callbacks import Checkpoint
from hilboost.core.callback import Event
from hilboost.core.errors import (
    FitError,
    FitWarning,
    InvalidData,
    InvalidModelFile,
    InvalidParameter,
    warn_caller,
)
from hilboost.core.learner import Learner
from hilboost.persistence import container as files
from hilboost.persistence.require import DAMAGE
from hilboost.persistence.values import ValueWriter
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.fingerprints import FitFingerprint
from hilboost.training.train import Keeper

_log = logging.getLogger("hilboost")
_KIND = "checkpoint"


def read(checkpoint: Checkpoint, fingerprint: FitFingerprint) -> Continuation | None:
    """Read the fit with this fingerprint from a file, if there is one and it is to be used."""
    path = checkpoint.file
    if not checkpoint.resume or not path.exists():
        return None
    model, header, arrays = files.read(path)
    if header.get("kind") != _KIND:
        raise InvalidModelFile(
            f"{path} is a model, not a checkpoint; use another path, or set resume=False, which "
            "replaces the file."
        )
    try:
        fingerprint.check(path, FitFingerprint.from_dict(header))
        found = Continuation.from_dict(header, arrays, model)
    except (InvalidData, InvalidParameter, InvalidModelFile):
        raise
    except DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error
    _log.info("Resumed at stage %d from the checkpoint %s.", found.state.n_stages, path)
    return found


def check_learner(learner: Learner) -> None:
    """Reject learners whose fits files cannot store."""
    if learner.capabilities.in_checkpoints:
        return
    names = learner.capabilities.learner_names or ("it",)
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


def resumed(
    checkpoint: Checkpoint, parameters: dict[str, Any], data: TrainingData, seed: int
) -> tuple[Continuation | None, Keeper]:
    """Return the fit in the file, if it is used, and what lets a fit write the file."""
    fingerprint = FitFingerprint.of(parameters, data, seed)

    def keep(config: BoostingConfig, running: Continuation) -> BoostingConfig:
        running = replace(running, fingerprint=fingerprint)
        writer = Writer(checkpoint, lambda: running)
        callbacks = tuple(writer if one is checkpoint else one for one in config.callbacks)
        takes_snapshots = not config.learner.capabilities.resumable
        return replace(config, callbacks=callbacks, takes_snapshots=takes_snapshots)

    return read(checkpoint, fingerprint), keep


class Writer(AbstractContextManager["Writer"]):
    """Callback that saves the state of a fit at intervals, and when it ends or is interrupted."""

    def __init__(self, checkpoint: Checkpoint, fit: Callable[[], Continuation | None]) -> None:
        self._checkpoint, self._fit = checkpoint, fit
        self._written = 0
        self._tried = 0
        self._when = 0.0
        self._cost = 0.0
        self._has_warned = False

    @property
    def _n_stages(self) -> int:
        fit = self._fit()
        return 0 if fit is None else fit.state.n_stages

    def __enter__(self) -> Self:
        """Begin after a number of stages, which the file has if there are any."""
        _remove_leftovers(self._checkpoint.file)
        self._written = self._tried = self._n_stages
        self._when = time.monotonic()
        return self

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
        # The stages before too many workers were lost are worth keeping.
        ended = kind is None or issubclass(kind, KeyboardInterrupt | FitError)
        if ended and self._n_stages != self._written:
            self._write()

    def _write(self) -> None:
        fit, began = self._fit(), time.monotonic()
        assert fit is not None
        self._tried, writer = fit.state.n_stages, ValueWriter()
        header = {"kind": _KIND, **fit.to_dict(writer)}
        try:
            files.write(self._checkpoint.file, fit.model, header, writer=writer)
            self._written = self._tried
        except OSError as error:
            self._warn(error)
        self._when = time.monotonic()
        self._cost = self._when - began

    def _warn(self, error: OSError) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warn_caller(
            f"the checkpoint {self._checkpoint.file} could not be written "
            f"({str(error).rstrip('.')}) after stage {self._tried}; the fit continues and tries "
            f"again, and a checkpoint of stage {self._written} remains if it exists. Free space on "
            "the disk, or check the path.",
            FitWarning,
        )


def _remove_leftovers(path: Path) -> None:
    """Remove incomplete files of processes that were killed while writing."""
    final = path.resolve()
    ours = re.compile(rf"\.[0-9a-f]{{12}}-{re.escape(final.name)}")
    for other in final.parent.iterdir():
        if ours.fullmatch(other.name):
            other.unlink(missing_ok=True)
