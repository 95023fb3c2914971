"""Phases of a fit between its stages, such as the trial of a kernel machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from hilboost.core.callback import Callback


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

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the displays that are context managers; the boosting loop enters them again."""
        with ExitStack() as stack:
            for one in self.displays:
                if isinstance(one, AbstractContextManager):
                    stack.enter_context(one)
            yield

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
