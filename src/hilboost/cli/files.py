"""Checks of paths given on the command line."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hilboost.cli.errors import CliError, note
from hilboost.persistence.atomic import is_stream

STDIN = Path("-")


def check_input(path: Path) -> None:
    """Reject a path that is not a readable file; ``-`` means standard input."""
    if path == STDIN:
        return
    if not path.exists():
        raise CliError(f"There is no file '{path}'; check the path.")
    if path.is_dir():
        raise CliError(f"'{path}' is a folder; use the path of a file.")


def check_output(path: Path, inputs: Iterable[Path]) -> None:
    """Reject an invalid output path before the work starts."""
    if path.is_dir():
        raise CliError(f"Cannot write '{path}': it is a folder; use the path of a file.")
    if not path.parent.is_dir():
        raise CliError(
            f"Cannot write '{path}': there is no folder '{path.parent}'; create it first."
        )
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise CliError(f"Cannot write '{path}': permission denied; choose another path.")
        return
    if not os.access(path.parent, os.W_OK):
        raise CliError(
            f"Cannot write '{path}': no write permission in '{path.parent}'; choose another folder."
        )
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise CliError(f"The output '{path}' would overwrite an input; choose another name.")


def load_model(path: Path, table: Path | None = None) -> Any:
    """Load the model of a command; ``table`` may be the model if the two were exchanged."""
    check_input(path)

    import hilboost
    from hilboost.core.errors import InvalidModelFile

    try:
        return hilboost.load(path)
    except InvalidModelFile as error:
        if table is None or not _is_model(table):
            raise
        raise CliError(
            f"'{path}' is not a hilboost model file, but '{table}' is: the model comes first; "
            "exchange the two."
        ) from error


def _is_model(path: Path) -> bool:
    import hilboost
    from hilboost.core.errors import InvalidModelFile

    try:
        hilboost.load(path)
    except (InvalidModelFile, OSError):
        return False
    return True


def save_model(model: Any, path: Path) -> None:
    """Save the model of a fit, with a note if the file contains training data."""
    from hilboost.estimators.files import save, training_data_of

    save(model, path, training_data=True)
    contained = training_data_of(model)
    if contained:
        note(f"the model file contains {contained.replace('learner=', '--set learner=')}.")
