"""Sources of Arrow batches: Parquet files, folders of them, and iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
from numpy.typing import NDArray

from hilboost.core.errors import InvalidData, InvalidType
from hilboost.tables import FileTable, Level, Schema, category_choice, learn, read_table

BATCH_ROWS, _FEWEST_ROWS, _BATCH_CELLS = 65_536, 1024, 2**22
# With buffers in advance, the whole file would be in memory at the end of a pass.
_PARQUET = arrow_dataset.ParquetFileFormat(
    default_fragment_scan_options=arrow_dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False
    )
)


def dataset_of(source: Any, folder: Path) -> Any:
    """Return the Arrow dataset of a file, a folder, a table, or an iterator of batches.

    An iterator can be read only once, so that its batches are written to ``folder``.

    Raises
    ------
    InvalidType, InvalidData
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise InvalidData(f"{path} does not exist; pass a Parquet file or a folder of them.")
        return arrow_dataset.dataset(path, format=_PARQUET)
    if isinstance(source, pa.Table | arrow_dataset.Dataset):
        return arrow_dataset.dataset(source) if isinstance(source, pa.Table) else source
    if isinstance(source, Iterable):
        return _spooled(iter(source), folder / "batches.arrow")
    raise InvalidType(
        "the table must be a Parquet file, a folder of such files, or an iterable of Arrow "
        f"batches, not {type(source).__name__}."
    )


def _spooled(batches: Iterator[Any], path: Path) -> Any:
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        raise InvalidType(
            f"the iterable must yield pyarrow.RecordBatch objects, not {type(first).__name__}."
        )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    return arrow_dataset.dataset(path, format="ipc")


def reader_of(dataset: Any) -> Callable[[Sequence[str]], Iterator[Any]]:
    """Return a function that reads some columns in order, a batch at a time."""

    def read(columns: Sequence[str]) -> Iterator[Any]:
        n_rows = max(_FEWEST_ROWS, _BATCH_CELLS // max(len(columns), 1))
        batches = dataset.to_batches(
            columns=list(columns),
            batch_size=min(BATCH_ROWS, n_rows),
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )
        for batch in batches:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    return read


def table_of(
    dataset: Any, without: Sequence[str], categorical: Any, n_rows: int, folder: Path
) -> FileTable:
    """Return the input columns as a table on disk, with the levels of its category columns."""
    names = [name for name in dataset.schema.names if name not in without]
    read = reader_of(dataset)
    if not names:
        raise InvalidData("the table has no column besides the target; add inputs.")
    chosen = category_choice(categorical, len(names), names)
    types = [dataset.schema.field(name).type for name in names]
    if chosen is None:
        chosen = tuple(k for k, kind in enumerate(types) if _is_category(kind))
    levels = _levels(read, [names[k] for k in chosen]) if chosen else []
    schema = Schema(len(names), tuple(names), tuple(zip(chosen, levels, strict=True)))
    single = not chosen and all(kind == pa.float32() for kind in types)
    return FileTable(read, schema, n_rows, folder, single)


def _is_category(kind: Any) -> bool:
    return bool(
        pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    )


def _levels(read: Any, names: list[str]) -> list[tuple[Level, ...]]:
    """Levels of the category columns, ascending."""
    found: list[set[Any]] = [set() for _ in names]
    for batch in read(names):
        table = read_table(batch)
        assert table is not None
        _, schema = learn(table, range(len(names)))
        for k, levels in schema.levels:
            found[k].update(levels)
    return [tuple(sorted(levels)) for levels in found]


def values_of(dataset: Any, name: str) -> NDArray[Any]:
    """Read one column into memory, (n,)."""
    if name not in dataset.schema.names:
        names = ", ".join(map(repr, dataset.schema.names[:10]))
        raise InvalidData(f"the table has no column {name!r}; its columns are {names}.")
    parts = [_numpy(batch.column(0)) for batch in reader_of(dataset)([name])]
    if not parts:
        raise InvalidData("the table has no rows; at least one is required.")
    return np.concatenate(parts)


def _numpy(column: Any) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found: NDArray[Any] = column.to_numpy()
    return found
