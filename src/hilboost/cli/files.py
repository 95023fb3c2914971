"""Checks of paths and of the contents of CSV files; formulas are neutralized when writing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError, note
from hilboost.persistence.atomic import is_stream

if TYPE_CHECKING:
    import pandas as pd


_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
ARCHIVES = (".zip", ".tar", ".zst")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

HEAD = 8
"""Number of bytes that identify a file format."""
GZIP = b"\x1f\x8b"
_FORMATS = (
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook; save the sheet as CSV in UTF-8"),
    (b"PK\x03\x04", "an Excel workbook or another archive; save the sheet as CSV in UTF-8"),
    (b"\xff\xfe", "UTF-16 text; use --encoding utf-16"),
    (b"\xfe\xff", "UTF-16 text; use --encoding utf-16"),
)


def refuse_other_formats(path: Path, head: bytes) -> None:
    """Reject files that start like another format than CSV."""
    if path.suffix == ".zip":  # contains one CSV file
        return
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b'{"', b"[{")):
        raise CliError(f"'{path}' is JSON; save the table as CSV in UTF-8.")
    for start, what in _FORMATS:
        if head.startswith(start):
            raise CliError(f"'{path}' is {what}.")


def is_archive(path: Path, data: bytes | None, packed: bool) -> bool:
    """Whether pandas opens the file itself."""
    return data is None and path.suffix in ARCHIVES and not packed


@contextmanager
def open_csv(path: Path, data: bytes | None, packed: bool) -> Iterator[Any]:
    """Open a file, or data of a pipe; archives remain paths."""
    if is_archive(path, data, packed):
        yield path
        return
    source: Any = path if data is None else io.BytesIO(data)
    open_one = gzip.open if packed else _OPENERS.get(path.suffix, open)
    with open_one(source, "rb") if packed or data is None else source as file:
        yield file


def refuse_nul(path: Path, data: bytes | None, packed: bool) -> None:
    """Reject NUL bytes, at which pandas may truncate a field."""
    with open_csv(path, data, packed) as file:
        for number, line in enumerate(file, start=1):
            if b"\0" in line:
                raise CliError(
                    f"'{path}' contains a NUL byte in line {number}, so it is damaged or not UTF-8 "
                    "text; save it again as CSV in UTF-8."
                )


def without_formulas(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Prefix text that a spreadsheet would execute with an apostrophe; count the changed cells."""
    from pandas.api import types

    changed: dict[Any, Any] = {}
    n_changed = 0
    for name, column in frame.items():
        if types.is_numeric_dtype(column):
            continue
        dangerous = column.map(_is_formula).to_numpy(dtype=bool)
        if dangerous.any():
            n_changed += int(dangerous.sum())
            changed[name] = [
                f"'{value}" if odd else value
                for value, odd in zip(column.tolist(), dangerous, strict=True)
            ]
    return frame.assign(**changed), n_changed


def _is_formula(value: object) -> bool:
    return (
        isinstance(value, str) and value.startswith(_FORMULA) and _NUMBER.fullmatch(value) is None
    )


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
