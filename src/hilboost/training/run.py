"""A fit while it runs: its parts, its threads and its clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hilboost.backends.threads import ThreadTeam
from hilboost.backends.work_clock import working_seconds
from hilboost.training.initial_state import InitialState
from hilboost.training.recipe import Recipe

_SHARE_OF_FIT = 0.92  # of the budget; the rest is for predictions of the training rows


@dataclass(frozen=True)
class Clock:
    """The time since the start of a fit, without compilation, and what its budget leaves."""

    budget: float | None = None  # seconds
    began: float = field(default_factory=working_seconds)

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


@dataclass(frozen=True)
class FitRun:
    """State that the steps of a fit share, from the first trial run to the last stage."""

    recipe: Recipe
    initial: InitialState
    team: ThreadTeam
    clock: Clock
