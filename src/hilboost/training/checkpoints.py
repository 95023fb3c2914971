"""Fits that are saved to a file while they run, and resumed from it.

A checkpoint is a model file of format 1.  The stages of the members of an ensemble follow one
another.  The header identifies the fit by its data, parameters and version, and contains what the
stages do not determine (:mod:`~hilboost.training.snapshots`).
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
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
from hilboost.model import AdditiveModel
from hilboost.model.resolved import ResolvedParameters
from hilboost.persistence import container as files
from hilboost.persistence.fitted import stages_from_file, stages_to_file
from hilboost.persistence.values import ValueReader, ValueWriter
from hilboost.training.data import TrainingData
from hilboost.training.fingerprints import digest, fingerprint, plain_value
from hilboost.training.recipe import Continuation, Recipe
from hilboost.training.snapshots import read, written

_KIND = "checkpoint"
# These do not change the model, or are represented by the seed.
_WITHOUT_EFFECT = ("n_jobs", "verbose", "warm_start", "random_state")
_WAYS_OUT = (
    "To resume, repeat the original fit. To start a new fit, use another path, or set "
    "resume=False, which replaces the file."
)


def checkpoint_among(callbacks: Sequence[Callback]) -> Checkpoint | None:
    """Return the checkpoint among the callbacks, if there is one."""
    found = checkpoints_among(callbacks)
    if len(found) > 1:
        raise InvalidParameter(f"Pass at most one Checkpoint; got {len(found)}.")
    return found[0] if found else None


@dataclass(frozen=True)
class FitFingerprint:
    """The identity of a fit: two fits with the same fingerprint result in the same model.

    Attributes
    ----------
    parameters : dict of str to plain values
        Values that are not plain are represented by their type and hash.
    data : dict of str to str
        Shape, dtype and hash of every array; ``"none"`` for arrays that were not given.
    seed : int or None
        ``None`` if no seed was given, so that any seed matches.
    """

    parameters: dict[str, Any]
    data: dict[str, str]
    seed: int | None

    @classmethod
    def of(cls, parameters: dict[str, Any], data: TrainingData, seed: int) -> FitFingerprint:
        """Compute the fingerprint of an estimator's parameters and validated data."""
        held_X, held = data.held_out or (None, None)
        arrays: dict[str, Any] = {
            "X": data.X,
            "y": data.target.y,
            "sample_weight": data.target.weight,
            "groups": data.target.groups,
            "X_val": held_X,
            "y_val": None if held is None else held.y,
            "sample_weight_val": None if held is None else held.weight,
            "groups_val": None if held is None else held.groups,
        }
        levels = data.schema.levels
        kept = {name: value for name, value in parameters.items() if name not in _WITHOUT_EFFECT}
        return cls(
            {name: plain_value(name, value) for name, value in kept.items()},
            {name: fingerprint(array) for name, array in arrays.items()}
            | {"levels": digest([repr(levels).encode()]) if levels else "none"},
            None if parameters["random_state"] is None else seed,
        )

    def check(self, path: Path, header: dict[str, Any]) -> None:
        """Reject the file of another fit and name the differences."""
        if header["version"] != __version__:
            raise InvalidModelFile(
                f"{path} was written by hilboost {header['version']}, and version {__version__} "
                f"may round differently. {_WAYS_OUT}"
            )
        if header.get("row_draws", 1) != ROW_DRAWS:
            raise InvalidModelFile(
                f"{path} was written by another build of hilboost {__version__}, which draws other "
                f"rows at random. {_WAYS_OUT}"
            )
        theirs = header["parameters"]
        for name in sorted(theirs.keys() | self.parameters.keys()):
            old, new = theirs.get(name), self.parameters.get(name)
            if old != new:
                raise InvalidParameter(
                    f"{path} is the checkpoint of a fit with {name}={old!r}, but this fit has "
                    f"{name}={new!r}. "
                    f"{_WAYS_OUT}"
                )
        if self.seed is not None and self.seed != header["seed"]:
            raise InvalidParameter(
                f"{path} is the checkpoint of a fit with a different random_state. {_WAYS_OUT}"
            )
        others = [
            name for name, text in self.data.items() if header["data"].get(name, "none") != text
        ]
        if others:
            raise InvalidData(
                f"{path} is the checkpoint of a fit to different data ({', '.join(others)}). "
                f"{_WAYS_OUT}"
            )


class StageKeeper(Protocol):
    """What keeps the stages of a fit while it runs, such as a file."""

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
    """A fit that is saved to a file while it runs.

    Attributes
    ----------
    checkpoint : Checkpoint
    fingerprint : FitFingerprint
    continuation : Continuation or None
        The content of the file, if it is used.
    """

    checkpoint: Checkpoint
    fingerprint: FitFingerprint
    continuation: Continuation | None

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, parameters: dict[str, Any], data: TrainingData, seed: int
    ) -> Resumable:
        """Create it for a fit with these parameters and data; read the file if there is one.

        Raises
        ------
        InvalidData, InvalidParameter
            The file belongs to another fit.
        InvalidModelFile
            The file is damaged, of another version, or not a checkpoint.
        """
        fingerprint = FitFingerprint.of(parameters, data, seed)
        return cls(checkpoint, fingerprint, resume(checkpoint, fingerprint))

    def check_learner(self, learner: Learner) -> None:
        """Reject learners whose fits files cannot store.

        Raises
        ------
        InvalidParameter
        """
        if learner.in_checkpoints:
            return
        names = learner.names or ("it",)
        pairs = zip(names, learner.parts, strict=True)
        refused = [
            "the learner" if name == "it" else f"the learner {name!r}"
            for name, part in pairs
            if not part.in_checkpoints
        ]
        raise InvalidParameter(
            f"Checkpoint is not supported by {' and '.join(refused)}, because files cannot store "
            "its base models, its kernel, or the state that it needs to continue; use another "
            "learner or kernel, or remove Checkpoint from callbacks."
        )

    def check_width(self, width: int) -> None:
        """Reject stages that refer to columns of a wider table; no later check would find them.

        Raises
        ------
        InvalidModelFile
        """
        if self.continuation is None:
            return
        for member in self.continuation.state.members:
            for term in (term for stage in member.stages for term in stage.terms):
                if not term.model.has_shape(width, len(term.coefficient)):
                    raise InvalidModelFile(
                        f"{self.checkpoint.file} is damaged: it uses columns that the data do "
                        "not have."
                    )

    def writing(
        self, config: BoostingConfig, recipe: Recipe, state: TrainingState, n_columns: int
    ) -> BoostingConfig:
        """Replace the checkpoint in the configuration by a writer.

        No stages are added if the fit in the file was complete.
        """
        writer = Writer(self, recipe, state, n_columns)
        callbacks = tuple(writer if c is self.checkpoint else c for c in config.callbacks)
        is_complete = self.continuation is not None and _is_complete(config, state)
        return replace(
            config,
            callbacks=callbacks,
            n_stages=len(state.members[0].stages) if is_complete else config.n_stages,
            takes_snapshots=not config.learner.resumable,
        )


def _is_complete(config: BoostingConfig, state: TrainingState) -> bool:
    """Whether the fit has stopped by itself."""
    if config.stopping is not None and config.stopping.should_stop(config.watched(state)):
        return True
    return all(config.learner.converged(member.data) for member in state.members)


def resume(checkpoint: Checkpoint, fingerprint: FitFingerprint) -> Continuation | None:
    """Read a checkpoint if there is one and it is to be used.

    Raises
    ------
    InvalidData, InvalidParameter
        The file belongs to another fit.
    InvalidModelFile
        The file is damaged, of another version, or not a checkpoint.
    """
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
        fingerprint.check(path, header)
        train, validation = ([float(x) for x in header[name]] for name in ("train", "validation"))
        members = _apart(model, int(header["n_members"]))
        n_stages = len(members[0].stages)
        if len(train) != n_stages + 1 or len(validation) not in (0, len(train)):
            raise ValueError("the number of losses is inconsistent")
        snapshots = read(header["snapshots"], ValueReader(arrays), members)
        metrics = {name: [float(x) for x in v] for name, v in header.get("metrics", {}).items()}
        if any(len(values) != len(train) for values in metrics.values()):
            raise ValueError("the number of metrics is inconsistent")
        state = TrainingState(
            members, train=train, validation=validation, metrics=metrics, snapshots=snapshots
        )
        chosen, stages = header["chosen"], stages_from_file(header)
        resolved = None if chosen is None else ResolvedParameters(**chosen)
        return Continuation(state, int(header["seed"]), resolved, in_units=True, stages=stages)
    except (InvalidData, InvalidParameter, InvalidModelFile):
        raise
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


class Writer(AbstractContextManager["Writer"]):
    """Callback that saves the state of a fit at intervals, and when it ends or is interrupted."""

    def __init__(
        self, resumable: Resumable, recipe: Recipe, state: TrainingState, n_features: int
    ) -> None:
        self._checkpoint, self._state = resumable.checkpoint, state
        self._header: dict[str, Any] = {
            "kind": _KIND,
            "version": __version__,
            "row_draws": ROW_DRAWS,
            "parameters": resumable.fingerprint.parameters,
            "data": resumable.fingerprint.data,
            "seed": recipe.seed,
            "chosen": _chosen(recipe.resolved),
            **stages_to_file(recipe.learner),
            "n_members": len(state.members),
            "n_features_in": n_features,
        }
        self._written = 0
        self._tried = 0
        self._when = 0.0
        self._cost = 0.0
        self._has_warned = False

    def __enter__(self) -> Self:
        _remove_leftovers(self._checkpoint.file)
        self._written = self._tried = len(self._state.members[0].stages)
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
        ended = kind is None or issubclass(kind, KeyboardInterrupt)
        if ended and len(self._state.members[0].stages) != self._written:
            self._write()

    def _write(self) -> None:
        state, began = self._state, time.monotonic()
        self._tried = len(state.members[0].stages)
        if state.shard_counts:
            self._header["chosen"]["n_shards"] = state.shard_counts[self._tried]
        writer = ValueWriter()
        header = self._header | {
            "train": state.train,
            "validation": state.validation,
            "metrics": state.metrics,
            "snapshots": written(state.snapshots, writer),
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
            f"the checkpoint {self._checkpoint.file} could not be written ({error}) after stage "
            f"{self._tried}; the fit continues and tries again, and a checkpoint of stage "
            f"{self._written} remains if it exists. Free space on the disk, or check the path.",
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


def _chosen(resolved: ResolvedParameters | None) -> dict[str, Any] | None:
    if resolved is None:
        return None
    return {name: plain_value(name, value) for name, value in asdict(resolved).items()}


def _in_one(members: Sequence[EnsembleMember]) -> AdditiveModel:
    """Put the stages of all members into one model, one member after the other."""
    stages = tuple(stage for member in members for stage in member.stages)
    return AdditiveModel(members[0].initial_raw, stages)


def _apart(model: AdditiveModel, n_members: int) -> list[EnsembleMember]:
    """Split the model into members: the inverse of :func:`_in_one`."""
    n_stages, rest = divmod(len(model.stages), n_members)
    if rest:
        raise ValueError("the number of stages is inconsistent")
    return [
        EnsembleMember(
            model.initial_raw, stages=list(model.stages[k * n_stages : (k + 1) * n_stages])
        )
        for k in range(n_members)
    ]
