"""Compilation of everything in advance, side by side on all cores."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context

from joblib import cpu_count
from numba.core import event

from hilboost.cli.progress import StageProgress
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
        """Count a function."""
        self.count += 1
        if self._refused:
            raise _WouldCompile

    def on_end(self, event: object) -> None:
        """Do nothing."""


def run_use(name: str, check: bool = False) -> int:
    """Run one of ``USES``; return how many functions it compiled, or ``check`` would."""
    logging.getLogger("hilboost").setLevel(logging.ERROR)  # no line about compiling
    listener = _Compilations(check)
    with (
        warnings.catch_warnings(),
        event.install_listener("numba:compile", listener),
        suppress(_WouldCompile),
    ):
        warnings.simplefilter("ignore")  # these fits are too small to be good
        warnings.simplefilter("error", CacheWarning)
        USES[name]()
    return listener.count


def run_uses(
    progress: StageProgress, names: Iterable[str] = USES, check: bool = False
) -> Iterator[tuple[str, int]]:
    """Run uses in as many processes as there are cores; yield each with its compilations."""
    waiting = list(names)
    progress.describe(f"compiling: {waiting[0]}")
    pool = ProcessPoolExecutor(min(cpu_count(), len(waiting)), get_context("spawn"))
    try:
        running = {pool.submit(run_use, name, check): name for name in waiting}
        for done in as_completed(running):
            name = running[done]
            waiting.remove(name)
            progress.advance(1)
            progress.describe(f"compiling: {(waiting or [name])[0]}")
            yield name, done.result()
    finally:
        pool.shutdown(cancel_futures=True)
