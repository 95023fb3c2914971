"""Compilation of everything in advance, side by side on all cores."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from typing import NamedTuple

from joblib import cpu_count
from numba.core import event

from hilboost.backends.code_files import CodeFiles, try_to_write
from hilboost.cli.warmup_uses import USES
from hilboost.core.errors import CacheWarning


class _WouldCompile(BaseException):
    """Ends a use whose code is not there; nothing between here and there may handle it."""


class _Compilations(event.Listener):
    """Counts compilations, or refuses the first."""

    def __init__(self, refused: bool) -> None:
        self.count = 0
        self._refused = refused

    def on_start(self, event: object) -> None:
        """Count a function; before the first, see whether its code can be kept."""
        self.count += 1
        if self._refused:
            raise _WouldCompile
        if self.count == 1:
            try_to_write()

    def on_end(self, event: object) -> None:
        """Do nothing."""


class UseOfCode(NamedTuple):
    """How many functions one of ``USES`` compiled, or would, and ``CodeFiles.lower_levels``."""

    n_compiled: int
    lower_levels: frozenset[str]


def run_use(name: str, check: bool = False, for_host: bool = False) -> UseOfCode:
    """Run one of ``USES``; ``check`` compiles nothing, ``for_host`` ignores code for levels."""
    log = logging.getLogger("hilboost")
    level, CodeFiles.accepts_levels = log.level, not for_host
    CodeFiles.lower_levels.clear()
    log.setLevel(logging.ERROR)  # no line about compiling
    listener = _Compilations(check)
    try:
        with (
            warnings.catch_warnings(),
            event.install_listener("numba:compile", listener),
            suppress(_WouldCompile),
        ):
            warnings.simplefilter("ignore")  # these fits are too small to be good
            warnings.simplefilter("error", CacheWarning)
            USES[name]()
    finally:
        log.setLevel(level)
        CodeFiles.accepts_levels = True
    return UseOfCode(listener.count, frozenset(CodeFiles.lower_levels))


def run_uses(
    names: Iterable[str] = USES, check: bool = False, for_host: bool = False
) -> Iterator[tuple[str, UseOfCode]]:
    """Run uses in as many processes as there are cores; yield each with its code."""
    pool = ProcessPoolExecutor(cpu_count(), get_context("spawn"))
    try:
        running = {pool.submit(run_use, name, check, for_host): name for name in names}
        for done in as_completed(running):
            yield running[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)
