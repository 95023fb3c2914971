"""Output files that are either whole or absent."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hilboost.cli.errors import CliError

__all__ = ["atomic_path", "check_input", "check_output"]


def check_input(path: Path) -> None:
    """Refuse a path that cannot be read as one file."""
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
    if not os.access(path.parent, os.W_OK):
        raise CliError(f"Cannot write '{path}': no permission to write in '{path.parent}'.")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise CliError(f"The output '{path}' would replace the input; give it another name.")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path that takes the place of ``path`` if the block succeeds.

    Parameters
    ----------
    path : Path
        The final place of the file.

    Yields
    ------
    Path
        Where to write; in the same folder, because a rename is atomic only within a file system.
    """
    if path.exists() and not path.is_file():
        # A pipe or a device such as /dev/null is written to, never replaced by a file.
        yield path
        return
    final = path.resolve()
    # The name keeps its suffix: writers choose a format by it.
    temporary = final.with_name(f".{uuid.uuid4().hex[:12]}-{final.name}")
    try:
        yield temporary
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
