"""Detection of unsupported file formats, and of numbers stored as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.cli.errors import CliError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GZIP", "HEAD", "numbers_as_text", "refuse_other_formats"]

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
_PART_OF_NUMBERS = 0.5


def refuse_other_formats(path: Path, head: bytes) -> None:
    """Reject files that start like another format than CSV.

    Parameters
    ----------
    path : Path
    head : bytes
        The first :data:`HEAD` bytes.
    """
    if path.suffix == ".zip":  # contains one CSV file
        return
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b'{"', b"[{")):
        raise CliError(f"'{path}' is JSON; save the table as CSV in UTF-8.")
    for start, what in _FORMATS:
        if head.startswith(start):
            raise CliError(f"'{path}' is {what}.")


def numbers_as_text(features: "pd.DataFrame") -> Iterator[str]:
    """Yield notes about text columns that contain mostly numbers.

    Parameters
    ----------
    features : pandas.DataFrame
        Input of an estimator: all columns that are not floats are text.
    """
    import pandas as pd

    for name, column in features.items():
        if column.dtype.kind == "f":
            continue
        counts = column.value_counts()
        levels = pd.Series(counts.index.astype(str))
        weights = counts.to_numpy()
        n = int(weights.sum())
        text = pd.to_numeric(levels, errors="coerce").isna().to_numpy()
        n_text = int(weights[text].sum())
        with_commas = pd.to_numeric(levels[text].str.replace(",", ""), errors="coerce").notna()
        if n_text and with_commas.all():
            row, value = _first_of(column, levels[text])
            yield (
                f"column '{name}' is treated as categorical because its numbers contain commas "
                f"('{value}' in data row {row}); use decimal points and no thousands separators."
            )
        elif 0 < n_text < _PART_OF_NUMBERS * n:
            row, value = _first_of(column, levels[text])
            yield (
                f"column '{name}' is treated as categorical because {n_text} of its {n} values "
                f"are text ('{value}' in data row {row}); the others are numbers."
            )


def _first_of(column: "pd.Series[Any]", levels: "pd.Series[Any]") -> tuple[int, str]:
    """Return the first row (counted from 1) with one of the levels, and its value."""
    row = int(column.astype(str).isin(set(levels)).to_numpy().argmax())
    value = str(column.iloc[row])
    return row + 1, value if len(value) <= 40 else f"{value[:37]}..."
