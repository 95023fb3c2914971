"""Stop a fit when its time budget is used up."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hilboost.core.callback import Event


@dataclass
class TimeBudget:
    """Stop a fit if the remaining time does not suffice for another stage.

    Parameters
    ----------
    began : float
        ``time.monotonic()`` at the start of the fit.
    seconds : float
    """

    began: float
    seconds: float
    _last: float | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        now = time.monotonic()
        # The first stage also sets up the linear system, so later stages are faster.
        duration = 0.0 if self._last is None else now - self._last
        self._last = now
        return now - self.began + 1.2 * duration > 0.98 * self.seconds
