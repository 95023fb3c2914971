"""The one way in which loops are compiled here.

Cached on disk, without the interpreter lock, and with NumPy's rules for division: a zero divisor
gives ``inf`` or ``nan`` and no exception, which a team of threads at a barrier could not survive.
A cache that cannot be written or read costs a warning and time, never the fit.

With ``NUMBA_DISABLE_JIT=1`` the same functions run as Python, by the same rules of arithmetic.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any

import numpy as np
from numba import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

from hilboost.backends.compile_notice import watch_compilation
from hilboost.backends.numba_linker import PartCompiler, PartFiles
from hilboost.backends.work_clock import paused
from hilboost.core.errors import CacheWarning

_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Warn once per process."""
    if _warned:
        return
    _warned.add(reason)
    warnings.warn(
        f"Compiled code cannot be cached ({reason}), so every process compiles it again, which "
        "takes about a minute. Set the environment variable NUMBA_CACHE_DIR to a folder that you "
        "can write to.",
        CacheWarning,
        stacklevel=2,
    )


class _NoCache(NullCache):
    """Warns when something is compiled, and not before."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _warn(self._reason)


@cache
def _stamp_of_all() -> tuple[float, int]:
    """Time of the last change, and total size, of all files with compiled functions."""
    package = Path(__file__).parents[1]
    folders = "backends", "engine/ops"
    found = [path.stat() for folder in folders for path in (package / folder).rglob("*.py")]
    return max((one.st_mtime for one in found), default=0.0), sum(one.st_size for one in found)


class _Cache(FunctionCache):
    """Compiles where an entry cannot be read, and goes on where one cannot be written.

    An entry is of the same age as all files with compiled functions: it contains those that the
    function calls, which may be in other files than the function itself.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _stamp_of_all()
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except OSError as error:
            _warn(str(error))
            return None
        except Exception:  # what a damaged pickle raises may be anything
            with suppress(OSError):
                self.flush()
            return None
        # Processes that compile at once may give two signatures one file.
        if found is not None and tuple(found.signature.args) != normalize_signature(sig)[0]:
            return None
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(str(error))


class _PartCache(_Cache):
    """Files of parts."""

    _impl_class = PartFiles


def _cache_of(function: Callable[..., Any], kind: type[_Cache]) -> FunctionCache | NullCache:
    try:
        return kind(function)
    except RuntimeError as error:  # Numba found no folder
        return _NoCache(str(error))


INTERPRETED = bool(config.DISABLE_JIT)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run as Python: integers wrap around, and a zero divisor raises nothing."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*arguments)

    run.py_func = function  # type: ignore[attr-defined]
    return run


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Compilation creates many objects that stay: collections would take an eighth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Cached(CPUDispatcher):
    """A function whose files are looked for when it is first compiled, and not on import."""

    _cache: Any
    _files: type[_Cache] = _Cache

    def compile(self, sig: Any) -> Any:
        if type(self._cache) is NullCache:
            self._cache = _cache_of(self.py_func, self._files)
        return super().compile(sig)


class _Part(_Cached):
    """A function that only compiled functions call."""

    _files = _PartCache

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        without_way_in = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=without_way_in, pipeline_class=PartCompiler)


class _Entry(_Cached):
    """A function that Python calls; compiled functions that name it call its part instead."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # The second wrapper, for calls from C, would be compiled for nothing.
        super().__init__(function, targetoptions={**options, "no_cfunc_wrapper": True})

    @cached_property
    def _part(self) -> _Part:
        return _Part(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_

    def compile(self, sig: Any) -> Any:
        with paused(), _without_garbage_collection():
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

reordered = _decorator(_Part, **_NO_REFERENCES, fastmath={"reassoc", "contract", "nsz"})
"""For short inner sums whose order the compiler may choose, so that they become vector code."""
