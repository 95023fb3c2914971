"""The end of the growth of trees beside a kernel machine that is far better."""

from __future__ import annotations

import math

from hilboost.backends.work_clock import working_seconds
from hilboost.core.callback import Event
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.training.budget import in_time
from hilboost.training.mixture import KernelTrial
from hilboost.training.race import FIRST_LOOK
from hilboost.training.recipe import Outcome
from hilboost.training.run import FitRun, OutOfTime, Pace

_FEWEST_STAGES = 10
_PROGRESS = 8.0  # sum of learning rates before which trees are too poor to be left out
_TIME_OF_LOOK = 0.3  # share of a time budget
_SHARE_OF_KERNEL = 0.7  # of the time that is left then
_STAGES_IN_RESERVE = 1.2


class EarlyKernelCheck:
    """Callback that ends the growth of trees that hardly gain anything beside a kernel machine.

    The kernel machine is fitted after a hundred stages, and only if it is far better than they
    are.  Later looks follow each time that the number of stages has doubled.

    With a time budget, it is fitted after some of the time or a hundred stages, with as many
    centers as there is time for, and the trees end in time for the other members' machines.
    """

    def __init__(self, run: FitRun, learner: MetricKernelLearner) -> None:
        self._run, self._learner, self._has_budget = run, learner, run.clock.budget is not None
        self._trial: KernelTrial | None = None
        self.ends_in_time = False  # whether trees stopped growing for the others' machines
        # whether there was no time for a machine, or only for a smaller one
        self._is_cut = self._gave_up = False
        self._next: float = _FEWEST_STAGES
        self._pace = Pace()
        self._pace.resume()

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        if not self._has_budget:
            return self.stops_at(event.stage)
        try:
            return self._stops_in_time(event.stage)
        except OutOfTime:
            self._give_up()
            return False

    def stops_at(self, n_stages: int) -> bool:
        """Whether a look at these stages ends a fit without a budget, a resumed one, too."""
        n_looks, rest = divmod(n_stages, FIRST_LOOK)
        if self._has_budget or rest or n_looks.bit_count() != 1:
            return False
        trial = self.trial()
        return trial is not None and trial.needs_no_more(n_stages)

    def _stops_in_time(self, n_stages: int) -> bool:
        """The same within the budget, which has a callback of its own."""
        clock, duration = self._run.clock, self._pace.seconds_after(working_seconds())
        is_time = n_stages >= FIRST_LOOK or clock.left(_TIME_OF_LOOK) <= 0
        if self._trial is None and is_time and n_stages >= self._next:
            self._begin(_SHARE_OF_KERNEL * clock.left())
        if self._trial is None:
            return False
        rate, left = self._run.recipe.config.learning_rate, clock.left()
        if n_stages >= self._next:
            self._next = 2 * n_stages
            stops = n_stages * rate >= _PROGRESS and self._trial.needs_no_more(n_stages)
        else:
            reserve = self._trial.seconds_left
            if not reserve or reserve + _STAGES_IN_RESERVE * duration <= left:
                return False
            stops = self._trial.is_worth(int(left / max(duration, 1e-6)))
            self.ends_in_time = stops
        self._pace.resume()
        return stops

    def _begin(self, seconds: float) -> None:
        self._trial = self._new_trial(seconds)
        if self._trial is None:
            self._next = math.inf
            return
        end, self._trial.end = self._trial.end, working_seconds() + seconds
        self._trial.look()
        self._trial.end = end
        self._next = max(self._next, _PROGRESS / self._run.recipe.config.learning_rate)
        self._pace.resume()

    def _give_up(self) -> None:
        self._trial, self._next, self._is_cut, self._gave_up = None, math.inf, True, True
        self._pace.resume()

    @property
    def lacked_time(self) -> bool:
        """Whether the budget left no room for the whole kernel machine."""
        return self._is_cut or (self._trial is not None and self._trial.lacked_time)

    def completed(self, outcome: Outcome) -> Outcome:
        """Let all trees enter the trial, unless there is too little time for one."""
        if self._trial is None and not self._gave_up:
            self._trial = self._new_trial(self._run.clock.left())
        try:
            return outcome if self._trial is None else self._trial.result(outcome)
        except OutOfTime:
            self._give_up()
            return outcome

    def trial(self) -> KernelTrial | None:
        """The trial of the kernel machine, without a budget."""
        self._trial = self._trial or self._new_trial(math.inf)
        return self._trial

    def _new_trial(self, seconds: float) -> KernelTrial | None:
        learner = in_time(self._learner, self._run, seconds)
        self._is_cut = learner != self._learner
        return None if learner is None else KernelTrial(self._run, learner)
