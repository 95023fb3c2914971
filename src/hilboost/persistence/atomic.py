"""Atomic output files: either complete or absent."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hilboost.core.disk import naming_space, unusable
from hilboost.core.errors import InvalidType, MissingPath, UnusablePath, shown

try:
    import fcntl
except ImportError:  # not available on Windows, where stale files remain
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".hilboost-"
_LONGEST_SUFFIX = 32


def as_path(path: object, writer: str) -> Path:
    """Convert the path of a file that a function writes, by habit of others called with data."""
    try:
        return Path(path)  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidType(
            f"{writer}(model, path) takes a path and no data; got {shown(path)}."
        ) from error


@contextmanager
def atomic_path(path: Path, n_bytes: int | None = None) -> Iterator[Path]:
    """Yield a temporary path, with the same suffix, that replaces ``path`` if the block succeeds.

    An existing file keeps its permissions, owner and group.  Temporary files that killed processes
    of the same user left in the folder are removed.  A pipe, a device or ``/dev/stdout`` is written
    to at the end of the block and never replaced by a file.  ``n_bytes`` is the size of the file,
    for the message if the disk is full.
    """
    with _naming(path), naming_space(path, n_bytes):
        if is_stream(path):
            with _buffered(path) as temporary:
                yield temporary
        else:
            with _replacing(path.resolve()) as temporary:
                yield temporary


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a device or an open file of a process, such as ``/dev/stdout``."""
    if path.exists() and not path.is_file():
        return True
    return _open_file(path) is not None


def _open_file(path: Path) -> tuple[Path, int] | None:
    """Folder and number of the open file that a path such as ``/dev/stdout`` refers to."""
    for _ in range(8):  # follow chained links
        folder = Path(os.path.realpath(path.parent))
        of_process = folder.name == "fd" and folder.parts[:2] in {("/", "proc"), ("/", "dev")}
        if of_process and path.name.isdecimal():
            return folder, int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the final path in errors, not the temporary one."""
    try:
        yield
    except UnusablePath:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            message = f"Cannot write '{path}': there is no folder '{path.parent}'; create it first."
            raise MissingPath(error.errno, message, str(path)) from error
        name = str(error.filename or path)
        own = name in (str(path), os.path.realpath(path)) or _PREFIX in name
        if error.errno is not None and own:
            raise unusable(path, error, "write") from error
        raise


@contextmanager
def _buffered(path: Path) -> Iterator[Path]:
    """Yield a file elsewhere, whose content is copied to a stream once complete."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX[1:]) as folder:
        temporary = Path(folder) / f"content{_suffix(path)}"
        yield temporary
        with temporary.open("rb") as content, _stream(path) as stream:
            shutil.copyfileobj(content, stream)


def _stream(path: Path) -> IO[bytes]:
    found = _open_file(path)
    if found is None or found[0] not in {Path(f"/proc/{os.getpid()}/fd"), Path("/dev/fd")}:
        return path.open("wb")
    # Keep the position of an open file of this process; reopening would truncate it.
    for text in (sys.stdout, sys.stderr):
        if text is not None:
            text.flush()
    return open(found[1], "wb", closefd=False)


@contextmanager
def _replacing(final: Path) -> Iterator[Path]:
    """Yield a file in the same folder: renaming is atomic only within a file system."""
    _remove_stale(final.parent)
    try:
        old: os.stat_result | None = final.stat()
    except FileNotFoundError:
        old = None
    temporary, held = _new_file(final, 0o666 if old is None else 0o600)
    try:
        mode = None if old is None else _take_over(temporary, old)
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _new_file(final: Path, mode: int) -> tuple[Path, int | None]:
    """Create an empty file, and a handle whose lock shows that its process is alive."""
    while True:
        temporary = final.with_name(f"{_PREFIX}{uuid.uuid4().hex[:12]}{_suffix(final)}")
        held = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        if fcntl is None:  # Windows cannot rename open files
            os.close(held)
            return temporary, None
        with suppress(OSError):  # the file system may not support locks
            fcntl.flock(held, fcntl.LOCK_EX)
        if temporary.exists():
            return temporary, held
        os.close(held)  # removed by another process, before it was locked


def _suffix(path: Path) -> str:
    """Return the last two suffixes, such as ``.csv.gz``, if they are short."""
    suffix = "".join(path.suffixes[-2:])
    if len(os.fsencode(suffix)) > _LONGEST_SUFFIX:
        suffix = path.suffix
    return suffix if len(os.fsencode(suffix)) <= _LONGEST_SUFFIX else ""


def _take_over(temporary: Path, old: os.stat_result) -> int:
    """Give a new file the owner and group of the old one; return the mode to set at the end."""
    mode = stat.S_IMODE(old.st_mode)
    if os.name == "nt":
        return mode
    new = temporary.stat()
    try:
        if new.st_gid != old.st_gid:
            os.chown(temporary, -1, old.st_gid)
    except PermissionError:
        # A different group gets no more permissions than others have.
        mode = mode & ~0o070 | (mode & 0o007) << 3
    if new.st_uid != old.st_uid:
        with suppress(PermissionError):  # only root may change owners
            os.chown(temporary, old.st_uid, -1)
    return mode


def _remove_stale(folder: Path) -> None:
    """Remove temporary files of killed processes, whose locks are no longer held."""
    if fcntl is None:
        return
    with suppress(OSError):  # the folder may not be readable
        for path in folder.glob(f"{_PREFIX}*"):
            with suppress(OSError):  # it may be locked or owned by another user
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    if path.lstat().st_uid != os.geteuid():
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)
