"""Output of the losses: printed by ``verbose``, or logged to MLflow or TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from hilboost.core.callback import Callback, Event
from hilboost.core.errors import MissingPackage


class MLflowLogger:
    """Log the metrics ``train_loss`` and ``validation_loss`` to the active MLflow run.

    Parameters
    ----------
    every_stages : int, default=1
        Log every ``every_stages`` stages, and after the last planned stage.  Larger values help
        with a slow remote server.

    Raises
    ------
    MissingPackage
        If the package mlflow is not installed.
    """

    def __init__(self, every_stages: int = 1) -> None:
        self._mlflow = _package("MLflowLogger", "mlflow", ["mlflow"])
        self._every_stages = every_stages

    def __call__(self, event: Event) -> None:
        """Log the losses."""
        if event.stage % self._every_stages == 0 or event.stage == event.n_stages:
            self._mlflow.log_metrics(_losses(event), step=event.stage)


class TensorBoardLogger(AbstractContextManager["TensorBoardLogger"]):
    """Log the scalars ``train_loss`` and ``validation_loss`` to a TensorBoard folder.

    Parameters
    ----------
    folder : str or Path
        Log folder of the run.

    Raises
    ------
    MissingPackage
        If neither tensorboardX nor PyTorch with tensorboard is installed.
    """

    def __init__(self, folder: str | Path) -> None:
        homes = ["tensorboardX", "torch.utils.tensorboard"]
        self._package = _package("TensorBoardLogger", "tensorboardX", homes)
        self._folder = str(folder)
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._writer = self._package.SummaryWriter(self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def __call__(self, event: Event) -> None:
        """Log the losses."""
        for name, value in _losses(event).items():
            self._writer.add_scalar(name, value, event.stage)


def _losses(event: Event) -> dict[str, float]:
    losses = {"train_loss": event.train_loss}
    if event.validation_loss is not None:
        losses["validation_loss"] = event.validation_loss
    return losses


def _package(whose: str, name: str, homes: list[str]) -> Any:
    """Return the first of the modules that can be imported."""
    for home in homes:
        try:
            return import_module(home)
        except ImportError:
            continue
    raise MissingPackage(
        f"{whose} requires the package {name}, which is not installed; install it with "
        f"`python -m pip install {name}`."
    )


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
