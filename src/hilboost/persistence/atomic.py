"""Output files that are either whole or absent."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    except OSError as error:
        if error.errno is not None and error.filename is None:  # a full disk, say
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
