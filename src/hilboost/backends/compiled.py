"""The one way in which loops are compiled here.

Cached on disk, without the interpreter lock, and with NumPy's rules for division: a zero divisor
gives ``inf`` or ``nan`` and no exception, which a team of threads at a barrier could not survive.
A cache that cannot be written or read costs a warning and time, never the fit.

With ``NUMBA_DISABLE_JIT=1`` the same functions run as Python, by the same rules of arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numba import config
from numba.core.registry import CPUDispatcher

from hilboost.backends.code_files import CodeFiles, PartFiles
from hilboost.backends.compile_notice import watch_compilation
from hilboost.backends.numba_linker import PartCompiler
from hilboost.backends.work_clock import paused
from hilboost.core.discovery import without_collections

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
