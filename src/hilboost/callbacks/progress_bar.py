"""Progress bar over the stages of a fit, for terminals and notebooks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hilboost.core.callback import Event
from hilboost.core.packages import required

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Show the number of stages, the losses and the elapsed time on stderr.

    The bar is disabled if the output is not a terminal, for instance in a log file or a pipe.  In
    a notebook, it requires the package ipywidgets.

    Parameters
    ----------
    description : str, default="fitting"
        Text next to the bar.
    console : rich.console.Console, optional
        Console for the bar; stderr by default.

    Raises
    ------
    MissingPackage
        The package rich is not installed.
    """

    def __init__(self, description: str = "fitting", console: Console | None = None) -> None:
        required("rich", "ProgressBar")
        self._description = description
        self._console = console
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        self._bar = stage_bar(self._console, transient=False)
        if not self._bar.disable:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Some versions of rich print an empty line when a disabled bar stops.
        if self._bar is not None and not self._bar.disable:
            self._bar.stop()
        self._bar = None

    def __call__(self, event: Event) -> None:
        """Advance the bar to this stage."""
        bar = self._bar
        if bar is None:
            return
        if not bar.tasks:
            bar.add_task(self._description, total=event.n_stages, loss="")
        bar.update(bar.task_ids[0], completed=event.stage, loss=losses_of(event))


def stage_bar(console: Console | None, transient: bool) -> Progress:
    """Make a bar with text, stages, losses, and time; disabled if the output is not a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    console = console or Console(stderr=True)
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        console=console,
        transient=transient,
        disable=not (console.is_terminal or in_notebook),
    )


def losses_of(event: Event) -> str:
    """Format the losses of a stage."""
    text = f"train {event.train_loss:.4g}"
    if event.validation_loss is not None:
        text += f", held-out {event.validation_loss:.4g}"
    return text
