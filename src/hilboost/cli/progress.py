"""Progress bar over boosting rounds, on stderr and only on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console

from hilboost.callbacks.progress_bar import losses_of, stage_bar
from hilboost.core.callback import Callback, Event

__all__ = ["StageProgress"]


class StageProgress:
    """One bar over the rounds of one or many fits.

    Parameters
    ----------
    description : str
        First text beside the bar.
    total : int, optional
        Rounds of all fits together; without it, the bar takes the number the first fit plans.
    console : rich.console.Console, optional
        Where the bar goes; stderr if not given.
    """

    def __init__(
        self, description: str, total: int | None = None, console: Console | None = None
    ) -> None:
        self._progress = stage_bar(console, transient=True)
        self._total = total
        self._task = self._progress.add_task(description, total=total, loss="")

    def __enter__(self) -> Self:
        if not self._progress.disable:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._progress.disable:
            self._progress.stop()

    def callback(self, description: str) -> Callback:
        """Make a callback for one fit, which moves the bar by one round at a time."""

        def after_stage(event: Event) -> None:
            if self._total is None:
                self._progress.update(self._task, total=event.n_stages)
            self._progress.update(self._task, advance=1, loss=losses_of(event))

        self._progress.update(self._task, description=description)
        return after_stage

    def describe(self, description: str) -> None:
        """Say what runs now."""
        self._progress.update(self._task, description=description, loss="")

    def advance(self, rounds: int) -> None:
        """Move the bar for work that reports no rounds of its own."""
        self._progress.update(self._task, advance=rounds)
