"""Progress bar over boosting rounds on stderr, shown only on a terminal."""

from dataclasses import dataclass
from typing import Self

from rich.console import Console

from hilboost.callbacks.progress_bar import losses_of, stage_bar
from hilboost.core.callback import Callback, Event


class StageProgress:
    """One progress bar over the rounds of one or more fits."""

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

    def __exit__(self, *error: object) -> None:
        if not self._progress.disable:
            self._progress.stop()

    def callback(self, description: str) -> Callback:
        """Make a callback for one fit that advances the bar by one round per stage."""
        self._progress.update(self._task, description=description)
        return _FitProgress(self, description)

    def after_stage(self, event: Event) -> None:
        """Advance the bar by one round."""
        if self._total is None:
            self._progress.update(self._task, total=event.n_stages)
        self._progress.update(self._task, advance=1, loss=losses_of(event))

    def describe(self, description: str) -> None:
        """Set the text next to the bar."""
        self._progress.update(self._task, description=description, loss="")

    def advance(self, rounds: int) -> None:
        """Advance the bar for work that does not report its rounds."""
        self._progress.update(self._task, advance=rounds)


@dataclass(frozen=True)
class _FitProgress:
    """Callback of one fit, which also names what the fit does between its stages."""

    bar: StageProgress
    description: str

    def __call__(self, event: Event) -> None:
        self.bar.describe(self.description)
        self.bar.after_stage(event)

    def show_phase(self, text: str) -> None:
        self.bar.describe(f"{self.description}: {text}" if text else self.description)
