"""The end of the growth of trees beside a kernel machine that is far better."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

from hilboost.backends.threads import ThreadTeam
from hilboost.callbacks.time_budget import Pace
from hilboost.core.callback import Event
from hilboost.training.initial_state import InitialState
from hilboost.training.machine_time import in_time
from hilboost.training.mixture import FIRST_LOOK, KernelTrial
from hilboost.training.recipe import Recipe

_FEWEST_STAGES = 10
_PROGRESS = 8.0  # sum of learning rates before which trees are too poor to be left out
_TIME_OF_LOOK = 0.15  # share of a time budget
_SHARE_OF_KERNEL = 0.7  # of the time that is left then
_STAGES_IN_RESERVE = 1.2


class Watch:
    """Callback that ends the growth of trees that hardly gain anything beside a kernel machine.

    The kernel machine is fitted after a hundred stages, and only if it is far better than they
    are.  Later looks follow each time that the number of stages has doubled.

    Parameters
    ----------
    recipe : Recipe
        With a kernel part.
    initial : InitialState
    team : ThreadTeam
    """

    def __init__(self, recipe: Recipe, initial: InitialState, team: ThreadTeam) -> None:
        self._begin = partial(KernelTrial, recipe, initial, team)
        self._attempt: KernelTrial | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        return self.stops_after(event.stage)

    def stops_after(self, n_stages: int) -> bool:
        """Return whether to stop after a number of stages."""
        n_looks, rest = divmod(n_stages, FIRST_LOOK)
        if rest or n_looks.bit_count() != 1:
            return False
        return self.begun().needs_no_more(n_stages)

    def begun(self) -> KernelTrial:
        """Return the attempt, which begins with the present stages of the trees."""
        self._attempt = self._attempt or self._begin()
        return self._attempt


class TimedWatch:
    """The same for fits with a time budget.

    The kernel machine is fitted after some of the time or a hundred stages, with as many centers
    as there is time for, and the trees end in time for the other members' machines.

    Parameters
    ----------
    recipe : Recipe
        With a kernel part.
    initial : InitialState
    team : ThreadTeam
    began, ends : float
        ``time.monotonic()`` at the start of the fit and at the end of its budget.
    """

    def __init__(
        self, recipe: Recipe, initial: InitialState, team: ThreadTeam, began: float, ends: float
    ) -> None:
        self._recipe, self._initial, self._team = recipe, initial, team
        self._first, self._ends = began + _TIME_OF_LOOK * (ends - began), ends
        self._next: float = _FEWEST_STAGES
        self._pace = Pace()
        self._pace.resume()
        self._attempt: KernelTrial | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        n_stages, now = event.stage, time.monotonic()
        duration = self._pace.seconds_after(now)
        is_time = n_stages >= FIRST_LOOK or now >= self._first
        if self._attempt is None and n_stages >= self._next and is_time:
            self._begin(now)
        if self._attempt is None:
            return False
        if n_stages >= self._next:
            self._next = 2 * n_stages
            if n_stages * self._recipe.config.learning_rate < _PROGRESS:
                return False
            stops = self._attempt.needs_no_more(n_stages)
            self._pace.resume()
            return stops
        reserve = self._attempt.seconds_left
        if not reserve or now + reserve + _STAGES_IN_RESERVE * duration <= self._ends:
            return False  # the budget has a callback of its own
        stops = self._attempt.is_worth(int((self._ends - now) / max(duration, 1e-6)))
        self._pace.resume()
        return stops

    def _begin(self, now: float) -> None:
        learner = in_time(self._recipe, self._team.n_threads, _SHARE_OF_KERNEL * (self._ends - now))
        if learner is None:
            self._next = math.inf
            return
        recipe = replace(self._recipe, kernel_part=learner)
        self._attempt = KernelTrial(recipe, self._initial, self._team)
        self._attempt.look()
        self._next = max(self._next, _PROGRESS / self._recipe.config.learning_rate)
        self._pace.resume()

    def stops_after(self, n_stages: int) -> bool:
        """Return false: the looks of a resumed fit begin anew."""
        return False

    def begun(self) -> KernelTrial | None:
        """Return the attempt, if it has begun."""
        return self._attempt
