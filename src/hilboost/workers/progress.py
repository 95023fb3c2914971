"""Stages that are recorded while workers train, so that a new session continues from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from hilboost.boosting import BoostingConfig, EnsembleMember, TrainingState
from hilboost.core.base_model import Stage
from hilboost.core.callback import Event
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.checkpoints import check_columns, header_of
from hilboost.training.fingerprints import FitFingerprint
from hilboost.training.recipe import Continuation, Recipe


@dataclass(frozen=True)
class StageRecord:
    """A finished stage, in units of the fit."""

    number: int  # number of stages so far
    n_stages: int  # most stages of the fit
    # one for each member; empty if the fit cannot be continued from its stages
    stages: tuple[Stage, ...]
    initial_raw: tuple[Floats, ...]  # tuple of (r,) float64: of each member
    # losses from the initial one on, in the first record, and later the last one
    train: list[float]
    validation: list[float]  # likewise; empty without held-out rows
    metrics: dict[str, list[float]]  # likewise, by name
    resolved: ResolvedParameters | None
    # what a checkpoint contains beside its stages, if there is to be one
    header: dict[str, Any] | None

    @property
    def event(self) -> Event:
        """The event for callbacks."""
        held_out = self.validation[-1] if self.validation else None
        metrics = {name: values[-1] for name, values in self.metrics.items()}
        return Event(self.number, self.n_stages, self.train[-1], held_out, metrics)


class StageLog:
    """The finished stages of a fit, in the process that starts the sessions.

    ``state``: The stages so far, in units of the fit; without members before the first one.
    ``header``: Contents of a checkpoint of the fit besides its stages. ``n_stages``: Number of
    stages so far.
    """

    def __init__(self) -> None:
        self.state = TrainingState([])
        self.header: dict[str, Any] | None = None
        self.n_stages = 0
        self._resolved: ResolvedParameters | None = None

    @classmethod
    def of(cls, continuation: Continuation) -> Self:
        """Create it with the stages of a checkpoint."""
        log = cls()
        log.state, log._resolved = continuation.state, continuation.resolved
        log.n_stages = len(log.state.members[0].stages)
        return log

    def add(self, record: StageRecord) -> bool:
        """Add the record of the next stage; return whether it is the next one."""
        if record.number != self.n_stages + 1:
            return False
        state = self.state
        self.n_stages += 1
        self.header = self.header or record.header
        if record.number == 1:
            state.members = [EnsembleMember(start) for start in record.initial_raw]
            self._resolved = record.resolved
        for member, stage in zip(state.members, record.stages, strict=True):
            member.stages.append(stage)
        state.train += record.train
        state.validation += record.validation
        for name, values in record.metrics.items():
            state.metrics.setdefault(name, []).extend(values)
        return True

    def keep(self, n_stages: int) -> None:
        """Drop the stages after a number of them."""
        state, self.n_stages = self.state, n_stages
        for values in (state.train, state.validation, *state.metrics.values()):
            del values[n_stages + 1 :]
        for member in state.members:
            del member.stages[n_stages:]

    def continuation(self, seed: int) -> Continuation | None:
        """Return the fit with a copy of these stages; ``None`` without any."""
        if not self.state.members:
            return None
        members = [
            EnsembleMember(member.initial_raw, stages=list(member.stages))
            for member in self.state.members
        ]
        state = TrainingState(
            members,
            train=list(self.state.train),
            validation=list(self.state.validation),
            metrics={name: list(values) for name, values in self.state.metrics.items()},
        )
        return Continuation(state, seed, self._resolved, in_units=True)


class Progress:
    """Sends a record of each stage; takes the place of a checkpoint."""

    def __init__(
        self,
        send: Callable[[StageRecord], None] | None,  # ``None`` in workers that do not send
        # whether the fit is still wanted; asked after each stage, and the fit ends if it is not
        is_wanted: Callable[[], bool] | None = None,
        last: int | None = None,  # number of stages after which a callback has ended the fit
    ) -> None:
        self._send, self._is_wanted, self._last = send, is_wanted, last
        self._fingerprint: FitFingerprint | None = None
        self._read_from: tuple[Path, Continuation] | None = None

    def identify(
        self, fingerprint: FitFingerprint, path: Path | None, continuation: Continuation | None
    ) -> None:
        """Send what a checkpoint of the fit contains; its stages may come from a file."""
        self._fingerprint = fingerprint
        if path is not None and continuation is not None:
            self._read_from = path, continuation

    def check_learner(self, learner: Learner) -> None:
        """Accept any learner; a fit with a state beside its stages starts again."""

    def check_width(self, width: int) -> None:
        """Reject stages of a damaged file."""
        if self._read_from is not None:
            path, continuation = self._read_from
            check_columns(continuation, width, path)

    def writing(
        self, config: BoostingConfig, recipe: Recipe, state: TrainingState, n_columns: int
    ) -> BoostingConfig:
        """Add a callback that sends stages; add no stages to a complete fit."""
        stopping, send, is_wanted = config.stopping, self._send, self._is_wanted
        n_stages = config.n_stages if self._last is None else self._last
        if stopping is not None and stopping.should_stop(config.watched(state)):
            n_stages = len(state.members[0].stages)
        header = None
        if self._fingerprint is not None:
            header = header_of(self._fingerprint, recipe, len(state.members), n_columns)

        def sending(event: Event) -> None:
            if send is not None:
                send(_record(event, recipe, state, header))

        def ending(event: Event) -> bool:
            return is_wanted is not None and not is_wanted()

        callbacks = (*config.callbacks, sending, ending)
        return replace(config, n_stages=n_stages, callbacks=callbacks)


def _record(
    event: Event, recipe: Recipe, state: TrainingState, header: dict[str, Any] | None
) -> StageRecord:
    last = slice(None) if event.stage == 1 else slice(-1, None)
    # A fit cannot be continued from the stages of a kernel machine alone.
    members = state.members if recipe.config.learner.capabilities.resumable else []
    return StageRecord(
        event.stage,
        event.n_stages,
        tuple(member.stages[-1] for member in members),
        tuple(member.initial_raw for member in members),
        state.train[last],
        state.validation[last],
        {name: values[last] for name, values in state.metrics.items()},
        recipe.resolved,
        header,
    )
