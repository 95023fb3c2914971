"""Callbacks of the client, for the stages that worker 0 sends."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from queue import SimpleQueue
from typing import Any, Self

from hilboost.core.callback import Callback
from hilboost.workers.progress import StageLog, StageRecord

_GRACE = 10.0  # seconds within which the last records arrive after the model


class Listener(AbstractContextManager["Listener"]):
    """Adds records to the log, and calls the callbacks in the thread of ``fit``.

    ``ended_after``: Number of stages after which a callback has ended the fit.
    """

    def __init__(self, log: StageLog, callbacks: Sequence[Callback]) -> None:
        self.log, self._callbacks = log, callbacks
        self.ended_after: int | None = None
        self._records: SimpleQueue[StageRecord] = SimpleQueue()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for callback in self._callbacks:
            if isinstance(callback, AbstractContextManager):
                self._stack.enter_context(callback)
        return self

    def __exit__(self, *arguments: Any) -> None:
        self._stack.__exit__(*arguments)

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
