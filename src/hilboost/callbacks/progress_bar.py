"""Progress bar over the stages of a fit and its phases between them, such as trial fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from hilboost.core.callback import Callback, Event, entered
from hilboost.core.packages import required

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@runtime_checkable
class PhaseDisplay(Protocol):
    """Callback that also displays the phases without stages."""

    def show_phase(self, text: str) -> None:
        """Show what the fit does until the next stage, or what the complete model is.

        An empty text ends it.
        """


@dataclass(frozen=True)
class Phases:
    """Announces phases to the callbacks that display them."""

    displays: tuple[PhaseDisplay, ...] = ()

    @classmethod
    def of(cls, callbacks: Sequence[Callback]) -> Self:
        """Choose the callbacks that display phases."""
        return cls(tuple(one for one in callbacks if isinstance(one, PhaseDisplay)))

    def entered(self) -> AbstractContextManager[None]:
        """Enter the displays that are context managers; the boosting loop enters them again."""
        return entered(self.displays)

    @contextmanager
    def __call__(self, name: str, seconds: Callable[[], float] | None = None) -> Iterator[None]:
        """Show a phase, with an estimate of its duration, while a block runs."""
        if self.displays and seconds is not None:
            name += f" (about {max(1, round(seconds()))} s)"
        self.show(name)
        try:
            yield
        finally:
            self.show("")

    def show(self, text: str) -> None:
        """Show what the fit does, until the next text or stage."""
        for one in self.displays:
            one.show_phase(text)


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Show the number of stages, the losses and the elapsed time on stderr.

    Between stages, it names what the fit does, such as the trial of a kernel machine, with an
    estimate of the duration; the line below the complete bar says what the model is.  The bar is
    disabled if the output is not a terminal, for instance in a log file or a pipe.  In a notebook,
    the moving bar requires the package ipywidgets; its last state remains in the output of the
    cell.

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
        self._depth, self._losses, self._phase = 0, "", ""

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth > 1:
            return self
        self._bar, self._losses = stage_bar(self._console), ""
        if not self._bar.disable:
            self._bar.start()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        model = "" if kind else self._phase
        if model:
            self.show_phase("")
        bar, self._bar = self._bar, None
        if bar is None:
            return
        # Some versions of rich print an empty line when a disabled bar stops.
        if not bar.disable:
            bar.stop()
        if bar.console.is_jupyter and bar.tasks:
            bar.console.print(bar)  # exported notebooks do not contain widgets
        if model and (bar.console.is_jupyter or not bar.disable):
            bar.console.print(model, highlight=False, markup=False)

    def __call__(self, event: Event) -> None:
        """Advance the bar to this stage."""
        self._losses = losses_of(event)
        self._update(total=event.n_stages, completed=event.stage)
        self.show_phase("")

    def show_phase(self, text: str) -> None:
        """Name what the fit does between its stages, or what it has made.

        Parameters
        ----------
        text : str
            Empty when stages go on.
        """
        self._phase = text
        description = f"{self._description}: {text}" if text else self._description
        self._update(description=description, loss="" if text else self._losses)

    def _update(self, **shown: Any) -> None:
        bar = self._bar
        if bar is None:
            return
        if not bar.tasks:
            bar.add_task(self._description, total=None, loss="")
        bar.update(bar.task_ids[0], **shown)


def stage_bar(console: Console | None) -> Progress:
    """Make a bar with text, stages, losses, and time; disabled if the output is not a terminal.

    It stays after the fit, but for the widget of a notebook.
    """
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
        transient=console.is_jupyter,
        disable=not (console.is_terminal or in_notebook),
    )


def losses_of(event: Event) -> str:
    """Format the losses of a stage."""
    text = f"train {event.train_loss:.4g}"
    if event.validation_loss is not None:
        text += f", held-out {event.validation_loss:.4g}"
    return text
