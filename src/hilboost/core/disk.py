"""Files that cannot be read or written, and disks that may be full."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hilboost.core.errors import DiskFull, MissingPath, UnusablePath

try:
    from os import posix_fallocate
except ImportError:  # on macOS and Windows
    posix_fallocate = None  # type: ignore[assignment]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BLOCK = 2**20
_WHY = {
    errno.EISDIR: "it is a folder; use the path of a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder; check the path",
    errno.EACCES: "permission denied; choose another path, or ask for the permission",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


def unusable(path: str | Path, error: OSError, verb: str) -> UnusablePath:
    """Create the error that says why a file cannot be read or written, and what to do."""
    if isinstance(error, FileNotFoundError) and verb == "read":
        return MissingPath(error.errno, f"There is no file '{path}'; check the path.", str(path))
    why = _WHY.get(error.errno or 0, f"{error.strerror}; choose another path")
    return UnusablePath(error.errno, f"Cannot {verb} '{path}': {why}.", str(path))


def reserve(file: IO[bytes], n_bytes: int, path: Path) -> None:
    """Give an empty file its space, because writing to a mapped file on a full disk is fatal."""
    with naming_space(path, n_bytes):
        try:
            if posix_fallocate is not None:
                posix_fallocate(file.fileno(), 0, n_bytes)
                return
            for begin in range(0, n_bytes, _BLOCK):
                file.write(bytes(min(_BLOCK, n_bytes - begin)))
            file.flush()
        except OSError:
            file.truncate(0)  # what is left counts as free
            raise


@contextmanager
def naming_space(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Say in errors about a full disk how many bytes a file needs, and how many are free."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        needed = "more space" if n_bytes is None else f"{n_bytes:,} bytes"
        there = "which exceeds a limit of this system"
        if error.errno == errno.ENOSPC:
            there = f"but {_free(path):,} bytes are free"
        raise DiskFull(
            error.errno,
            f"{os.strerror(error.errno)}: writing to '{path}' needs {needed}, {there}; delete "
            "files, or choose another folder.",
            str(path),
        ) from error


def _free(path: Path) -> int:
    """Free bytes of the disk of a folder, or of a file that may not exist yet."""
    return shutil.disk_usage(path if path.exists() else path.parent).free
