"""One line in the log when compiling takes longer than a second: a first fit is not silent."""

from __future__ import annotations

import logging
from functools import cache
from threading import Timer
from time import perf_counter
from typing import Any

from numba.core import event

_PATIENCE = 1.0  # seconds
_MESSAGE = (
    "hilboost: compiling what this kind of fit needs, once for this machine; other kinds compile "
    "more when first used, and 'hilboost warmup' compiles everything in advance."
)


class CompileNotice(event.Listener):
    """Logs a line when compiling has taken longer than the patience.

    Parameters
    ----------
    patience : float
        Seconds, of all compilations together.
    """

    def __init__(self, patience: float) -> None:
        self.left = patience
        self._depth = 0  # a function that is compiled may start to compile others
        self._began = 0.0
        self._timer: Timer | None = None
        self._said = False

    def on_start(self, event: Any) -> None:
        """Start to count at the outermost function."""
        if self._said or not _is_ours(event):
            return
        self._depth += 1
        if self._depth == 1:
            self._began = perf_counter()
            self._timer = Timer(self.left, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Stop to count at the outermost function."""
        if self._timer is None or not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0:
            self._timer.cancel()
            self._timer = None
            self.left = max(0.0, self.left - (perf_counter() - self._began))

    def _say(self) -> None:
        self._said = True
        logging.getLogger("hilboost").warning(_MESSAGE)


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("hilboost.")


@cache
def watch_compilation() -> None:
    """Log a line, once per process, when the package's own loops take long to compile."""
    event.register("numba:compile", CompileNotice(_PATIENCE))
