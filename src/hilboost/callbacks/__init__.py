"""Callbacks for ``fit(X, y, callbacks=[...])``."""

from hilboost.callbacks.checkpoint import Checkpoint
from hilboost.callbacks.loggers import MLflowLogger, TensorBoardLogger
from hilboost.callbacks.progress_bar import ProgressBar

__all__ = ["Checkpoint", "MLflowLogger", "ProgressBar", "TensorBoardLogger"]
