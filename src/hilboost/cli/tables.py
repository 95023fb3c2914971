"""Reading and writing of tables, and reading of SVMlight files."""

import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from hilboost.cli import files
from hilboost.cli.dialect import Dialect, detected
from hilboost.cli.errors import CliError, note
from hilboost.cli.number_text import read_as_told
from hilboost.core.packages import required
from hilboost.persistence.atomic import atomic_path

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


SVMLIGHT_SUFFIXES = frozenset({".svm", ".svmlight", ".libsvm"})
MOST_CELLS = 500_000_000
_ARCHIVES = (".zip", ".tar", ".zst")  # to which nothing can be appended
_ROWS_OF_CODES = 10_000  # in which leading zeros are searched


def read_svmlight(path: Path) -> "pd.DataFrame":
    """Read an SVMlight file: ``label``, ``qid`` if there are queries, and the features."""
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    try:
        rows, label, query = load_svmlight_file(str(path), zero_based=False, query_id=True)
    except (ValueError, OverflowError) as error:
        raise CliError(f"'{path}' is not a valid SVMlight file: {error}.") from None
    n, d = rows.shape
    if n * d > MOST_CELLS:
        raise CliError(
            f"'{path}' has {n:,} rows and {d:,} features, too many for the command line; read it "
            "with sklearn.datasets.load_svmlight_file, and fit in Python."
        )
    frame = pd.DataFrame(rows.toarray(), columns=[str(k + 1) for k in range(d)])
    frame.insert(0, "label", label)
    if len(query) and query.any():
        frame.insert(1, "qid", query)
    return frame


DETECT = Dialect()
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


def read_table(
    path: Path,
    text: Collection[str] = (),
    dialect: Dialect = DETECT,
    settled: Collection[str] | None = None,  # columns that need no note of codes; None for all
) -> "pd.DataFrame":
    """Read a table with a header and at least one row; columns of ``text`` stay text."""
    required("pandas", "reading a table")
    if path.is_dir() or path.suffix in PARQUET_SUFFIXES:
        frame = _read_parquet(path)
    elif path.suffix in SVMLIGHT_SUFFIXES:
        frame = read_svmlight(path)
    else:
        frame, dialect = _read_csv(path, text, dialect, settled)
        frame = _named(frame)
    if len(frame) == 0:
        raise CliError(f"'{path}' has a header but no rows; add at least one row.")
    frame.columns = frame.columns.astype(str)
    return read_as_told(frame, text, dialect) if dialect.converts else frame


def table_parts(
    path: Path, text: Collection[str], dialect: Dialect, whole: bool
) -> Iterator["pd.DataFrame"]:
    """Yield a Parquet file or folder in parts of consecutive rows, unless small or ``whole``."""
    if whole or dialect.converts or not _is_large(path):
        yield read_table(path, text, dialect)
        return
    begin = 0
    for batch in _batches(path):
        frame = batch.to_pandas().reset_index(drop=True)
        frame.index, frame.columns = frame.index + begin, frame.columns.astype(str)
        begin += len(frame)
        yield frame
    if not begin:
        raise CliError(f"'{path}' has no rows; add at least one row.")


def _is_large(path: Path) -> bool:
    if path.is_dir():
        return True
    if path.suffix in PARQUET_SUFFIXES:
        with suppress(ImportError, OSError, ValueError):  # which reading the table explains
            from pyarrow.parquet import read_metadata

            from hilboost.stream.source import BATCH_ROWS

            return int(read_metadata(path).num_rows) > BATCH_ROWS
    return False


def _batches(path: Path) -> Iterator["pa.Table"]:
    """Yield the batches of a Parquet file or of a folder of them."""
    required("pyarrow", "reading Parquet files")
    from hilboost.stream.source import dataset_of, reader_of
    from hilboost.tables.arrays import index_names

    dataset = dataset_of(path, path)
    index = index_names(dataset.schema)
    return reader_of(dataset)([name for name in dataset.schema.names if name not in index])


def _read_parquet(path: Path) -> "pd.DataFrame":
    batches = list(_batches(path))
    if not batches:
        raise CliError(f"'{path}' has no rows; add at least one row.")
    import pyarrow as pa

    whole = pa.concat_tables(batches, promote_options="permissive")
    return whole.to_pandas().reset_index(drop=True)


def _named(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Drop columns without a name, as spreadsheets and pandas write the numbers of rows."""
    for place, name in enumerate(list(frame.columns)):
        if str(name).startswith("Unnamed: ") and frame.shape[1] > 1:
            note(f"ignoring column {place + 1}, which has no name; name it if it is a feature.")
            frame = frame.drop(columns=name)
    return frame


def _read_csv(
    path: Path, text: Collection[str], dialect: Dialect, settled: Collection[str] | None
) -> tuple["pd.DataFrame", Dialect]:
    """Read a CSV file; return the table and the dialect with the marks of its numbers."""
    import pandas as pd

    dialect.check()
    content = files.content_of(path, dialect.encoding)
    encoding = dialect.encoding or "utf-8"
    try:
        found = detected(path, content, dialect)
        encoding = found.encoding or encoding
        form: dict[str, Any] = {"sep": found.sep, "encoding": found.encoding}
        with warnings.catch_warnings():
            # pandas only warns when it drops the surplus fields of a row.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                BytesIO(content),
                **form,
                decimal=found.decimal,
                na_values=list(dialect.missing),
                index_col=False,
                low_memory=False,
                dtype=dict.fromkeys(text, str),
            )
        form |= {"header": None, "dtype": str, "keep_default_na": False}
        form |= {"usecols": range(frame.shape[1])}  # rows may end with a separator
        texts = pd.read_csv(BytesIO(content), **form, nrows=_ROWS_OF_CODES + 1)
    except pd.errors.EmptyDataError:
        raise CliError(f"'{path}' is empty; add a header row and data rows.") from None
    except pd.errors.ParserWarning:
        raise CliError(
            f"'{path}' has rows with more fields than its header; remove the extra fields, or add "
            "column names."
        ) from None
    except pd.errors.ParserError as error:
        detail = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise CliError(f"'{path}' is not a valid CSV table: {detail}.") from None
    except UnicodeError:
        raise CliError(
            f"'{path}' is not text in the encoding {encoding}; choose it with --encoding."
        ) from None
    header = texts.iloc[0]
    twice = header[(header != "") & header.duplicated()]
    if len(twice):
        raise CliError(f"'{path}' has two columns named '{twice.iloc[0]}'; rename or remove one.")
    if settled is not None:
        _note_codes(frame, texts[1:], settled)
    decimal = "," if found.decimal == "," else dialect.decimal  # a point is not certain
    return frame, replace(dialect, decimal=decimal, thousands=found.thousands)


def _note_codes(frame: "pd.DataFrame", texts: "pd.DataFrame", settled: Collection[str]) -> None:
    """Print a note about columns of numbers whose first texts have leading zeros."""
    for name, place in zip(frame.columns, texts, strict=True):
        if name in settled:
            continue
        codes = texts[place].str.fullmatch(r"\s*0\d+\s*", na=False).to_numpy()
        codes = codes & frame[name].iloc[: len(codes)].notna().to_numpy()
        if codes.any() and frame[name].dtype.kind in "iuf":
            row = int(codes.argmax())
            note(
                f"reading '{texts[place].iloc[row]}' in data row {row + 1} of '{name}' as the "
                f"number {frame[name].iloc[row]:.0f}; if these are codes, fit with --set "
                f"categorical_features=['{name}']."
            )


def write_tables(
    frames: Iterable["pd.DataFrame"], path: Path | None, spreadsheet_safe: bool = True
) -> None:
    """Write parts of a table to a CSV or Parquet file atomically, or to stdout without a path."""
    if path is None:
        if sys.stdout is None:
            raise CliError("There is no standard output to write to; specify a file with --out.")
        _write_csv(frames, sys.stdout, spreadsheet_safe)
        return
    if path.suffix in PARQUET_SUFFIXES:
        required("pyarrow", "writing a Parquet file")
    if path.suffix in {*PARQUET_SUFFIXES, *_ARCHIVES}:
        import pandas as pd

        frames = [pd.concat(list(frames), ignore_index=True)]
    with atomic_path(path) as temporary:
        if path.suffix in PARQUET_SUFFIXES:
            for frame in frames:
                frame.to_parquet(temporary, index=False)
        else:
            _write_csv(frames, temporary, spreadsheet_safe)


def _write_csv(frames: Iterable["pd.DataFrame"], out: IO[str] | Path, safe: bool) -> None:
    total = 0
    for part, frame in enumerate(frames):
        changed, n_changed = files.without_formulas(frame) if safe else (frame, 0)
        total += n_changed
        mode: Literal["a", "w"] = "a" if part else "w"
        changed.to_csv(out, mode=mode, index=False, header=part == 0, lineterminator="\n")
    if total:
        cells = "1 cell that looks" if total == 1 else f"{total} cells that look"
        note(
            f"added an apostrophe to {cells} like a formula, so that spreadsheets do not "
            "execute it; use --no-spreadsheet-safe to write text unchanged."
        )
