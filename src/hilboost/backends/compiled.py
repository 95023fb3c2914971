"""The one way in which loops are compiled here.

Cached on disk, without the interpreter lock, and with NumPy's rules for division: a zero divisor
gives ``inf`` or ``nan`` and no exception, which threads that wait for each other could not survive.
A cache that cannot be written or read costs a warning and time, never the fit.

With ``NUMBA_DISABLE_JIT=1`` the same functions run as Python, by the same rules of arithmetic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, cached_property, wraps
from threading import Timer
from time import perf_counter
from typing import Any

import numpy as np
from numba import config
from numba.core import event
from numba.core.registry import CPUDispatcher

from hilboost.backends.code_files import CodeFiles, PartFiles
from hilboost.backends.numba_linker import PartCompiler
from hilboost.backends.work_clock import paused
from hilboost.core.discovery import without_collections

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


INTERPRETED = bool(config.DISABLE_JIT)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run as Python: integers wrap around, and a zero divisor raises nothing."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*arguments)

    run.py_func = function  # type: ignore[attr-defined]
    return run


class _Dispatcher(CPUDispatcher):
    """A function that one process at a time compiles."""

    def compile(self, sig: Any) -> Any:
        try:
            return super().compile(sig)
        except BaseException:
            self._cache.leave()
            raise


class _Part(_Dispatcher):
    """A function that only compiled functions call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        without_way_in = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=without_way_in, pipeline_class=PartCompiler)
        self._cache = PartFiles(function)


class _Entry(_Dispatcher):
    """A function that Python calls; compiled functions that name it call its part instead."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # The second wrapper, for calls from C, would be compiled for nothing.
        super().__init__(function, targetoptions={**options, "no_cfunc_wrapper": True})
        self._cache = CodeFiles(function)

    @cached_property
    def _part(self) -> _Part:
        return _Part(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_

    def compile(self, sig: Any) -> Any:
        with paused(), without_collections():
            return super().compile(sig)


def _decorator(
    make: Callable[[Callable[..., Any], dict[str, Any]], Any], **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    if INTERPRETED:
        return _interpreted
    watch_compilation()
    common = {"nopython": True, "nogil": True, "error_model": "numpy"}
    return lambda function: make(function, {**common, **options})


# Without Numba's runtime (NRT) no references to arrays are counted, which would cost an atomic
# addition for every array that is taken out of a record, contended where threads share the record.
_NO_REFERENCES = {"_nrt": False}

compiled = _decorator(_Entry, **_NO_REFERENCES)
"""For functions that Python calls, and that create no arrays."""

allocating = _decorator(_Entry)
"""For functions that create arrays; these must not call others that return some."""

inner = _decorator(_Part, **_NO_REFERENCES)
"""For functions that only compiled functions call, and that create no arrays."""

tiny = _decorator(_Part, **_NO_REFERENCES, inline="always")
"""For inner functions of a few statements, which become a part of those that call them."""
