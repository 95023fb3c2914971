"""One choice of kernel and λ for all members of an ensemble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, Generic, Self, TypeVar

from hilboost.backends.threads import ThreadTeam
from hilboost.learners.kernel_machine.tuning.choose import PenaltyChoice
from hilboost.learners.kernel_machine.workspace import Workspace

Found = TypeVar("Found")


class SharedChoice(Generic[Found]):
    """The kernel and λ of all members of an ensemble.

    The choice depends on the first gradients of all rows, which are the same for all members.  The
    result is therefore the same whichever member comes first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: Found | None = None

    def settled(self, choose: Callable[[], Found]) -> Found:  # kernel or kernels, and λ
        """Return the choice of the first member that asks.

        ``choose``: makes the choice.
        """
        with self._lock:
            if self._found is None:
                self._found = choose()
            return self._found


class MemberState:
    """The state of a member of an ensemble, which has the rows and the choice of all members."""

    workspace: Workspace
    choose_penalty: PenaltyChoice | None = None
    shared: SharedChoice[Any] | None = None

    def for_members(self, n_members: int, choose_penalty: PenaltyChoice | None) -> list[Self]:
        """Return the states of all members before the first stage; the first keeps the threads."""
        shared: SharedChoice[Any] | None = SharedChoice() if n_members > 1 else None
        states = []
        for k in range(n_members):
            team = self.workspace.team if k == 0 else ThreadTeam(self.workspace.team.n_threads)
            state = type(self)(replace(self.workspace, team=team))  # type: ignore[call-arg]
            state.choose_penalty, state.shared = choose_penalty, shared
            states.append(state)
        return states
