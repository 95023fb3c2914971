"""A fit while it runs: its parts, its threads, its clock and its time budget."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

from hilboost.backends.threads import ThreadTeam
from hilboost.backends.work_clock import working_seconds
from hilboost.core.callback import Event
from hilboost.training.initial_state import InitialState
from hilboost.training.recipe import Recipe

_SHARE_OF_FIT = 0.92  # of the budget; the rest is for predictions of the training rows


@dataclass(frozen=True)
class Clock:
    """The time since the start of a fit, without compilation, and what its budget leaves."""

    budget: float | None = None  # seconds
    began: float = field(default_factory=working_seconds)
    began_to_work: float = field(default_factory=thread_time)  # of this thread

    @property
    def seconds_of_fit(self) -> float:
        """The part of the budget for stages and kernel machines."""
        return math.inf if self.budget is None else _SHARE_OF_FIT * self.budget

    def passed(self) -> float:
        """Seconds since the start of the fit."""
        return working_seconds() - self.began

    def left(self, share: float = 1.0) -> float:
        """Seconds until a share of the time of the fit has passed."""
        return share * self.seconds_of_fit - self.passed()

    @property
    def contention(self) -> float:
        """How much longer work takes because other processes use the cores; at least 1."""
        return max(1.0, self.passed() / max(thread_time() - self.began_to_work, 1e-3))

    @property
    def end(self) -> float:
        """The time of the clock ``working_seconds`` at which the budget is used up."""
        return math.inf if self.budget is None else self.began + self.budget


class OutOfTime(Exception):
    """The end of the time that :meth:`TimedTeam.until` grants; not an error."""


class TimedTeam(ThreadTeam):
    """Threads that begin no task after a given time."""

    _end = math.inf

    @contextmanager
    def until(self, end: float) -> Iterator[None]:
        """Raise :class:`OutOfTime` where a task would begin later, by ``working_seconds``."""
        self._end = end
        try:
            yield
        finally:
            self._end = math.inf

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], per_thread: int = 1
    ) -> list[Any]:
        """Results of ``function`` for every task, in the tasks' order."""
        end = self._end

        def in_time(task: object) -> Any:
            if working_seconds() > end:
                raise OutOfTime
            return function(task)

        return super().map(function if math.isinf(end) else in_time, tasks, per_thread)


@dataclass(frozen=True)
class FitRun:
    """State that the steps of a fit share, from the first trial run to the last stage."""

    recipe: Recipe
    initial: InitialState
    team: TimedTeam
    clock: Clock


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
