"""Detection of unsupported file formats."""

from pathlib import Path

from hilboost.cli.errors import CliError

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
