"""The time limit of a search."""

from __future__ import annotations

from hilboost.backends.work_clock import working_seconds

_SECONDS_OF_A_WIDE_SEARCH = 15.0


class Clock:
    """Measures how much of a time limit is left, without compilation; ``None`` is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._began = working_seconds()
        self._seconds = seconds

    @property
    def is_wide(self) -> bool:
        """Whether there is time for every family of kernels."""
        return self.allows(_SECONDS_OF_A_WIDE_SEARCH)

    def allows(self, seconds: float) -> bool:
        """Whether the limit is not below some seconds."""
        return self._seconds is None or self._seconds >= seconds

    def has(self, share: float) -> bool:
        """Whether this share of the time is left; always true without a limit."""
        if self._seconds is None:
            return True
        return working_seconds() - self._began < (1 - share) * self._seconds
