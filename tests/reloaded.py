"""Models after a round trip through a file."""

from pathlib import Path
from tempfile import TemporaryDirectory

import hilboost


def reloaded(model):
    """The model that a file of the model holds; the file may contain training data."""
    with TemporaryDirectory() as folder:
        hilboost.save(model, Path(folder) / "model", training_data=True)
        return hilboost.load(Path(folder) / "model")
