"""Paths given on the command line."""

import os
from pathlib import Path

from hilboost.cli.errors import CliError
from hilboost.persistence.atomic import is_stream

__all__ = ["STDIN", "check_input", "check_output"]

STDIN = Path("-")


def check_input(path: Path) -> None:
    """Refuse a path that cannot be read as one file; ``-`` is standard input."""
    if path == STDIN:
        return
    if not path.exists():
        raise CliError(f"There is no file '{path}'.")
    if path.is_dir():
        raise CliError(f"'{path}' is a folder; give the path of a file.")


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse an output path before the work is done rather than after it.

    Parameters
    ----------
    path : Path
        The file to be written.
    *inputs : Path
        Files the command reads, which the output must not replace.
    """
    if path.is_dir():
        raise CliError(f"Cannot write '{path}': it is a folder; give the path of a file.")
    if not path.parent.is_dir():
        raise CliError(f"Cannot write '{path}': there is no folder '{path.parent}'; make it first.")
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise CliError(f"Cannot write '{path}': no permission to write to it.")
        return
    if not os.access(path.parent, os.W_OK):
        raise CliError(f"Cannot write '{path}': no permission to write in '{path.parent}'.")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise CliError(f"The output '{path}' would replace the input; give it another name.")
