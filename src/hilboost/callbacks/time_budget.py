"""Stop a fit when its time budget is used up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hilboost.backends.work_clock import working_seconds
from hilboost.core.callback import Event

_RECENT = 5


@dataclass
class Pace:
    """The duration of the next stage, estimated by the last durations.

    It is the second longest of the last five: a stage that took longer than all others may have
    been interrupted by another process.
    """

    _last: float | None = None
    _durations: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def seconds_after(self, now: float) -> float:
        """Note the end of a stage, and return the estimate; 0 after the first one."""
        # The first stage also sets up its arrays, so later stages are faster.
        if self._last is not None:
            self._durations.append(now - self._last)
        self._last = now
        longest = sorted(self._durations)
        return longest[-2] if len(longest) > 1 else sum(longest)

    def resume(self) -> None:
        """Continue after something else than a stage."""
        self._last = working_seconds()


@dataclass
class TimeBudget:
    """Stop a fit if the remaining time does not suffice for another stage."""

    began: float  # ``working_seconds()`` at the start of the fit
    seconds: float
    is_used_up: bool = False
    _pace: Pace = field(default_factory=Pace)

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        now = working_seconds()
        duration = self._pace.seconds_after(now)
        expected = now - self.began + 1.2 * duration
        self.is_used_up = expected > 0.98 * self.seconds and event.stage < event.n_stages
        return self.is_used_up
