"""Interface of callbacks, the events passed to them, and the training history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidType, counted, refuse_class, shown
from hilboost.core.plain_values import entries


@dataclass(frozen=True)
class History:
    """Mean loss after each stage; entry 0 belongs to the initial prediction.

    Attributes
    ----------
    train : (n_stages + 1,) float64
    validation : (n_stages + 1,) float64 or None
    seconds : (n_stages,) float64 or None
        Duration of each stage; NaN for stages of an earlier fit, ``None`` if unknown.
        Not stored in model files.
    metrics : mapping of str to (n_stages + 1,) float64
        Metrics of the held-out rows (``eval_metric``), by name.  Of several validation sets, the
        loss and the metrics of all but the first, as ``"name: loss"`` and ``"name: ndcg"``.
    """

    train: Floats
    validation: Floats | None
    seconds: Floats | None = None
    metrics: Mapping[str, Floats] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return one line with the first and the last values."""
        named = [("train", self.train), ("validation", self.validation), *self.metrics.items()]
        shown_values = [
            f"{name} {values[0]:.4g} to {values[-1]:.4g}"
            for name, values in named
            if values is not None and len(values)
        ]
        return f"<History of {counted(len(self.train) - 1, 'stage')}: {', '.join(shown_values)}>"

    def first(self, n_stages: int) -> History:
        """Return the history of the first stages.

        Parameters
        ----------
        n_stages : int

        Returns
        -------
        History
        """
        validation, seconds, end = self.validation, self.seconds, n_stages + 1
        return History(
            self.train[:end],
            None if validation is None else validation[:end],
            None if seconds is None else seconds[:n_stages],
            {name: values[:end] for name, values in self.metrics.items()},
        )


@dataclass(frozen=True)
class Event:
    """Argument of a callback, which is called after each stage.

    Attributes
    ----------
    stage : int
        Number of stages so far, at least 1.
    n_stages : int
        Maximum number of stages.
    train_loss : float
        Mean loss on the training rows.
    validation_loss : float or None
        Mean loss on the held-out rows; ``None`` without early stopping.
    metrics : mapping of str to float
        Metrics of the held-out rows, with the names of :class:`History`.
    """

    stage: int
    n_stages: int
    train_loss: float
    validation_loss: float | None
    metrics: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class Callback(Protocol):
    """Callable that is called after each stage and stops the fit by returning ``True``.

    If a callback is a context manager, it is entered before the first stage and exited after the
    last one, with the exception if there is one.
    """

    def __call__(self, event: Event) -> bool | None:
        """Handle the event; return ``True`` to stop the fit."""


@contextmanager
def entered(callbacks: Iterable[object]) -> Iterator[None]:
    """Enter the callbacks that are context managers.

    Parameters
    ----------
    callbacks : iterable of Callback

    Yields
    ------
    None
    """
    with ExitStack() as stack:
        for callback in callbacks:
            if isinstance(callback, AbstractContextManager):
                stack.enter_context(callback)
        yield


def check_callbacks(callbacks: object) -> None:
    """Check that callbacks are a sequence of callables.

    Parameters
    ----------
    callbacks : object

    Raises
    ------
    InvalidType
    """
    if callable(callbacks):
        raise InvalidType("callbacks must be a list; put the callback into one.")
    for callback in entries(callbacks):
        refuse_class("callbacks", callback)
        if not callable(callback):
            raise InvalidType(
                "callbacks must be a list of functions of an event, or of Checkpoint(path), "
                "MLflowLogger(), ProgressBar() or TensorBoardLogger(folder) from "
                f"hilboost.callbacks; got {shown(callback)}."
            )
