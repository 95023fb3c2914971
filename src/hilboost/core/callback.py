"""The contract of a callback, and what it is told; the history of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class History:
    """Mean loss after every stage; entry 0 is that of the initial prediction.

    Attributes
    ----------
    train : (n_stages + 1,) float64
    validation : (n_stages + 1,) float64 or None
    seconds : (n_stages,) float64 or None
        Duration of each stage; NaN for stages of an earlier fit, ``None`` if unknown.
        Model files do not hold it.
    """

    train: Floats
    validation: Floats | None
    seconds: Floats | None = None


@dataclass(frozen=True)
class Event:
    """What a callback receives after a stage.

    Attributes
    ----------
    stage : int
        Number of stages so far, from 1.
    n_stages : int
        Number of stages planned.
    train_loss : float
    validation_loss : float or None
    """

    stage: int
    n_stages: int
    train_loss: float
    validation_loss: float | None


@runtime_checkable
class Callback(Protocol):
    """Called after every stage; returning ``True`` ends the fit.

    A callback that is a context manager is entered before the first stage and left after the last
    one, with the error if there was one.
    """

    def __call__(self, event: Event) -> bool | None:
        """Receive the event."""
