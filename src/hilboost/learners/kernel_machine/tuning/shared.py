"""One choice of kernel and λ for all members of an ensemble."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from hilboost.learners.kernel_machine.tuning.choose import Choice


class SharedChoice:
    """The kernel and λ of all members of an ensemble.

    The choice depends on the first gradients of all rows, which are the same for all members.  The
    result is therefore the same whichever member comes first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: Choice | None = None

    def settled(self, choose: Callable[[], Choice]) -> Choice:
        """Return the choice of the first member that asks.

        Parameters
        ----------
        choose : callable
            Makes the choice.

        Returns
        -------
        Choice
        """
        with self._lock:
            if self._found is None:
                self._found = choose()
            return self._found
