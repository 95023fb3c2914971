"""The output of ``verbose``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hilboost.core.callback import Callback, Event


@dataclass(frozen=True)
class Printer:
    """Print a line every tenth stage (``verbose=1``) or every stage (``verbose=2``)."""

    verbose: int

    def __call__(self, event: Event) -> None:
        """Print the losses."""
        if self.verbose < 2 and event.stage % 10 and event.stage != event.n_stages:
            return
        line = f"stage {event.stage}/{event.n_stages}: train loss {event.train_loss:.6g}"
        if event.validation_loss is not None:
            line += f", validation loss {event.validation_loss:.6g}"
        print(line)


def with_printer(callbacks: Sequence[Callback], verbose: int) -> tuple[Callback, ...]:
    """Append the printer to the callbacks if ``verbose`` is set."""
    return (*callbacks, Printer(int(verbose))) if verbose else tuple(callbacks)
