"""Stages that workers send: recorded for sessions that continue, and passed to callbacks."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Self

from hilboost.boosting.config import BoostingConfig
from hilboost.core.callback import Callback, Event, entered
from hilboost.training.continuation import Continuation
from hilboost.training.fingerprints import FitFingerprint


@dataclass(frozen=True)
class StageRecord:
    """A finished stage."""

    event: Event
    # what the stage has added to the fit; without members if its stages cannot continue it
    added: Continuation


class StageLog:
    """The finished stages of a fit, in the process that starts the sessions."""

    def __init__(self, fit: Continuation | None = None) -> None:
        self._fit = fit  # ``None`` before the first stage

    @property
    def n_stages(self) -> int:
        """Number of stages so far."""
        return 0 if self._fit is None else len(self._fit.state.train) - 1

    @property
    def fit(self) -> Continuation | None:
        """The fit with these stages; ``None`` if there are none from which it can continue."""
        return None if self._fit is None or not self._fit.state.members else self._fit

    def add(self, record: StageRecord) -> bool:
        """Add the record of the next stage; return whether it is the next one."""
        if record.event.stage != self.n_stages + 1:
            return False
        if self._fit is None:
            self._fit = record.added.since(0)
        else:
            self._fit.state.extend(record.added.state)
        return True

    def keep(self, n_stages: int) -> None:
        """Drop the stages after a number of them."""
        if self._fit is not None:
            self._fit.state.keep(n_stages)


@dataclass(frozen=True)
class Progress:
    """Sends a record of each stage; takes the place of a checkpoint."""

    send: Callable[[StageRecord], None] | None  # ``None`` in workers that do not send
    # whether the fit is still wanted; asked after each stage, and the fit ends if it is not
    is_wanted: Callable[[], bool] | None = None
    last: int | None = None  # number of stages after which a callback has ended the fit
    fingerprint: FitFingerprint | None = None  # for a checkpoint

    def keep(self, config: BoostingConfig, running: Continuation) -> BoostingConfig:
        """Add callbacks that send stages, and end the fit when it is no longer wanted."""
        running = replace(running, fingerprint=self.fingerprint)
        # A fit cannot be continued from the stages of a kernel machine alone.
        resumable = config.learner.capabilities.resumable

        def sending(event: Event) -> None:
            if self.send is not None:
                added = running.since(event.stage - 1)
                if not resumable:
                    added.state.members.clear()
                self.send(StageRecord(event, added))

        def ending(event: Event) -> bool:
            return self.is_wanted is not None and not self.is_wanted()

        n_stages = config.n_stages if self.last is None else min(config.n_stages, self.last)
        return replace(config, n_stages=n_stages, callbacks=(*config.callbacks, sending, ending))


_GRACE = 10.0  # seconds within which the last records arrive after the model


class Listener(AbstractContextManager["Listener"]):
    """Adds records to the log, and calls the callbacks in the thread of ``fit``.

    ``ended_after``: Number of stages after which a callback has ended the fit.
    """

    def __init__(self, log: StageLog, callbacks: Sequence[Callback]) -> None:
        self.log, self._callbacks = log, callbacks
        self.ended_after: int | None = None
        self._records: SimpleQueue[StageRecord] = SimpleQueue()
        self._entered = entered(callbacks)

    def __enter__(self) -> Self:
        self._entered.__enter__()
        return self

    def __exit__(self, *arguments: Any) -> None:
        self._entered.__exit__(*arguments)

    def hear(self, event: tuple[float, bytes]) -> None:
        """Take an event of the cluster, in any thread."""
        self._records.put(pickle.loads(event[1]))

    def work_off(self) -> None:
        """Call the callbacks for the stages that were heard of."""
        while self.ended_after is None and not self._records.empty():
            record = self._records.get()
            if self.log.add(record):
                asked = [callback(record.event) for callback in self._callbacks]
                if any(answer is True for answer in asked):
                    self.ended_after = record.event.stage

    def wait_for(self, losses: Any) -> None:
        """Wait for the records of all stages with known losses."""
        deadline = time.monotonic() + _GRACE
        self.work_off()
        while self.log.n_stages < len(losses) - 1 and time.monotonic() < deadline:
            if self.ended_after is not None:
                break
            time.sleep(0.01)
            self.work_off()
