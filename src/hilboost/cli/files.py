"""Checks of paths and of the contents of CSV files; formulas are neutralized when writing."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError, note
from hilboost.persistence.atomic import is_stream

if TYPE_CHECKING:
    import pandas as pd

STDIN = Path("-")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_UNPACK = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}
_FORMATS = (
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook; save the sheet as CSV in UTF-8"),
    (b"PK\x03\x04", "an Excel workbook or a ZIP archive; save the sheet as CSV, or unpack it"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive; unpack it"),
    (b"\xff\xfe", "UTF-16 text; use --encoding utf-16"),
    (b"\xfe\xff", "UTF-16 text; use --encoding utf-16"),
    (b'{"', "JSON; save the table as CSV in UTF-8"),
    (b"[{", "JSON; save the table as CSV in UTF-8"),
)


def content_of(path: Path, encoding: str | None) -> bytes:
    """Read and unpack a CSV file, a pipe or standard input; reject other formats and NUL bytes."""
    if path == STDIN and (sys.stdin is None or sys.stdin.closed):
        raise CliError("There is no standard input to read; use the path of a file.")
    content = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    for start, unpack in _UNPACK.items():
        if content.startswith(start):
            try:
                content = unpack(content)
            except (EOFError, OSError, ValueError, lzma.LZMAError) as error:
                raise CliError(f"'{path}' is not a complete compressed file: {error}.") from None
    for start, what in () if encoding is not None else _FORMATS:
        if content[:99].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(start):
            raise CliError(f"'{path}' is {what}.")
    # pandas may truncate a field at such a byte
    if "16" not in (encoding or "") and (place := content.find(b"\0")) >= 0:
        raise CliError(
            f"'{path}' contains a NUL byte in line {content.count(10, 0, place) + 1}, so it is "
            "damaged or not UTF-8 text; save it again as CSV in UTF-8."
        )
    return content


def without_formulas(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Prefix text that a spreadsheet would execute with an apostrophe; count the changed cells."""
    changed: dict[Any, Any] = {}
    n_changed = 0
    for name, column in frame.select_dtypes(exclude="number").items():
        odd = column.map(_is_formula).to_numpy(dtype=bool)
        if odd.any():
            n_changed += int(odd.sum())
            changed[name] = column.astype(object).mask(odd, "'" + column.astype(str))
    return frame.assign(**changed), n_changed


def _is_formula(value: object) -> bool:
    return (
        isinstance(value, str) and value.startswith(_FORMULA) and _NUMBER.fullmatch(value) is None
    )


def check_output(path: Path, inputs: Iterable[Path]) -> None:
    """Reject an invalid output path before the work starts."""
    if path.is_dir():
        raise CliError(f"Cannot write '{path}': it is a folder; use the path of a file.")
    if not path.parent.is_dir():
        raise CliError(
            f"Cannot write '{path}': there is no folder '{path.parent}'; create it first."
        )
    stream = is_stream(path)
    if not os.access(path if stream else path.parent, os.W_OK):
        raise CliError(f"Cannot write '{path}': permission denied; choose another path.")
    if not stream and any(one.exists() and path.exists() and path.samefile(one) for one in inputs):
        raise CliError(f"The output '{path}' would overwrite an input; choose another name.")


def save_model(model: Any, path: Path) -> None:
    """Save the model of a fit, with a note if the file contains training data."""
    from hilboost.estimators.files import save, training_data_of

    save(model, path, training_data=True)
    contained = training_data_of(model)
    if contained:
        note(f"the model file contains {contained.replace('learner=', '--set learner=')}.")
