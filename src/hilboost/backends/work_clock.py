"""The time that fits work: a clock that stands still while code is compiled or loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter


class WorkClock:
    """Counts seconds without its pauses, which may overlap."""

    def __init__(self) -> None:
        self._lock, self._n_pauses = Lock(), 0
        # The length of the past pauses, and the start of the present one: replaced together,
        # because other threads read them.
        self._pauses: tuple[float, float | None] = 0.0, None

    def seconds(self) -> float:
        """Seconds since some point in time, without pauses."""
        past, began = self._pauses
        return (perf_counter() if began is None else began) - past

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still during a block."""
        with self._lock:
            self._n_pauses += 1
            if self._n_pauses == 1:
                self._pauses = self._pauses[0], perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._n_pauses -= 1
                if self._n_pauses == 0:
                    self._pauses = perf_counter() - self.seconds(), None


_CLOCK = WorkClock()
working_seconds, paused = _CLOCK.seconds, _CLOCK.paused
