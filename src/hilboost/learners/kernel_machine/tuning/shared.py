"""One choice of kernel and λ for all members of an ensemble."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

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
