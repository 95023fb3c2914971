"""Sources of Arrow batches: Parquet files, folders of them, and iterators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
from numpy.typing import NDArray

from hilboost.core.disk import naming_space
from hilboost.core.errors import DataWarning, InvalidData, InvalidType, first_few, warn_caller
from hilboost.core.plain_values import is_path
from hilboost.tables.arrays import columns_of, index_names
from hilboost.tables.encoding import learn
from hilboost.tables.files import FileTable
from hilboost.tables.reading import read_table
from hilboost.tables.schema import Level, Schema, category_choice, meant_columns, united_levels
from hilboost.tables.text_columns import TextColumn, TextSums, warn_of_texts

BATCH_ROWS, _FEWEST_ROWS, _BATCH_CELLS = 65_536, 1024, 2**22
# With buffers in advance, the whole file would be in memory at the end of a pass.
_SCAN = arrow_dataset.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
_PARQUET = arrow_dataset.ParquetFileFormat(default_fragment_scan_options=_SCAN)


def dataset_of(source: Any, folder: Path) -> Any:
    """Return the Arrow dataset of a file, a folder, a table, or an iterator of batches.

    An iterator can be read only once, so that its batches are written to ``folder``.
    """
    if is_path(source):
        found = _of_files(Path(source))
    elif isinstance(source, arrow_dataset.Dataset):
        found = source
    elif isinstance(source, pa.Table | pa.RecordBatch):
        found = arrow_dataset.dataset(source)
    elif columns_of(source) is not None:
        raise InvalidType(
            f"the table is a {type(source).__name__}, which is in memory already; call the method "
            "fit of the model, or pass pyarrow.Table.from_pandas(frame) or frame.to_arrow()."
        )
    elif isinstance(source, Iterable):
        found = _spooled(iter(source), folder / "batches.arrow")
    else:
        raise InvalidType(
            "the table must be a Parquet file, a folder of such files, or an iterable of Arrow "
            f"batches, not {type(source).__name__}."
        )
    _refuse_repeated_names(found.schema, "the table")
    return found


def _of_files(path: Path) -> Any:
    """Open a file, or a folder of files that together have the columns of the table."""
    if not path.exists():
        pattern = " (patterns are not expanded)" if set("*?[") & set(str(path)) else ""
        raise InvalidData(
            f"{path} does not exist{pattern}; pass a Parquet file or a folder of them, or "
            "pyarrow.dataset.dataset([...]) of several files."
        )
    if ".csv" in path.suffixes:
        raise InvalidData(
            f"'{path}' is a CSV file; pass its batches, as by "
            f"pyarrow.dataset.dataset('{path}', format='csv').to_batches()."
        )
    schemas = {}
    with _reading(f"'{path}' cannot be read"):
        for file in arrow_dataset.dataset(path, pa.schema([]), format=_PARQUET).get_fragments():
            with _reading(f"{file.path!r} cannot be read as Parquet"):
                schemas[file.path] = file.physical_schema
        if not schemas:
            raise InvalidData(f"the folder '{path}' has no Parquet files; add some.")
        schema, folders = _united(schemas), None
        if path.is_dir():  # folders such as city=Ghent are columns, as in pandas.read_parquet
            folders = arrow_dataset.HivePartitioning.discover(infer_dictionary=True)
            found = arrow_dataset.dataset(path, format=_PARQUET, partitioning=folders)
            within = next(iter(schemas.values())).names
            for field in found.schema:
                schema = schema if field.name in within else schema.append(field)
        return arrow_dataset.dataset(path, schema, format=_PARQUET, partitioning=folders)


def _united(schemas: dict[str, Any]) -> Any:
    """Return the columns of all files, and warn if a file does not have all of them."""
    united = pa.schema([], next(iter(schemas.values())).metadata)
    texts = {field.name for schema in schemas.values() for field in schema if _is_text(field.type)}
    for file, schema in schemas.items():
        _refuse_repeated_names(schema, repr(file))
        index = index_names(schema)
        fields = [field for field in schema if field.name not in index]
        kept = [_as_text(field) if field.name in texts else field for field in fields]
        try:
            united = pa.unify_schemas([united, pa.schema(kept)], promote_options="permissive")
        except pa.ArrowException as error:
            raise InvalidData(
                f"{file!r} does not fit the files before it ({_detail(error)}); write each column "
                "with one type in all files."
            ) from error
    gaps = {
        name: [file for file, schema in schemas.items() if name not in schema.names]
        for name in united.names
    }
    names = [name for name, files in gaps.items() if files]
    if names:
        warn_caller(
            f"columns {first_few(names)} are missing in some files, such as {gaps[names[0]][0]!r}; "
            "their values are missing in the rows of these files.",
            DataWarning,
        )
    return united


def _as_text(field: Any) -> Any:
    """Return a column of categories of text as one of text."""
    is_coded = pa.types.is_dictionary(field.type) and _is_text(field.type.value_type)
    return field.with_type(field.type.value_type) if is_coded else field


def _refuse_repeated_names(schema: Any, where: str) -> None:
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise InvalidData(
            f"{where} has more than one column named {first_few(twice)}; rename all but one."
        )


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn errors of Arrow about damaged or unreadable files into ours."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InvalidData(f"{what} ({_detail(error)}); write it again, or remove it.") from error


def _detail(error: Exception) -> str:
    """Return the end of a message of Arrow, without advice."""
    text = " ".join(str(error).split())
    return text.rpartition("': ")[2].split(". ")[0].rstrip(".")


def _spooled(batches: Iterator[Any], path: Path) -> Any:
    """Write batches to a file, and return its dataset."""
    first: Any = next(batches, None)
    writer: Any = None
    with pa.OSFile(str(path), "wb") as file:
        for number, batch in enumerate(chain([first], batches)):
            if not isinstance(batch, pa.RecordBatch):
                raise InvalidType(
                    "the iterable must yield pyarrow.RecordBatch objects, not "
                    f"{type(batch).__name__}; convert data frames by "
                    "pyarrow.RecordBatch.from_pandas(frame), and pass several files as "
                    "pyarrow.dataset.dataset([...])."
                )
            if not batch.schema.equals(first.schema):
                raise InvalidData(
                    f"batch {number} has other columns or types than the first; give all batches "
                    "the same schema."
                )
            with naming_space(path, batch.nbytes):
                writer = writer or pa.ipc.new_file(file, first.schema)
                writer.write_batch(batch)
        with naming_space(path):
            writer.close()
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
        with _reading("the table cannot be read"):
            for batch in batches:
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])

    return read


def table_of(
    dataset: Any, without: Sequence[str], categorical: object, n_rows: int, folder: Path
) -> FileTable:
    """Return the input columns as a table on disk, with the levels of its category columns."""
    without = [*without, *index_names(dataset.schema)]
    names = [name for name in dataset.schema.names if name not in without]
    read = reader_of(dataset)
    if not names:
        raise InvalidData("the table has no column besides the target; add inputs.")
    listed = category_choice(categorical, len(names), names)
    types = [dataset.schema.field(name).type for name in names]
    of_type = _is_category if listed is None else _holds_text
    own = [k for k, kind in enumerate(types) if categorical is not None and of_type(kind)]
    chosen = tuple(sorted({*own, *(listed or ())}))
    declared = None if listed is None else [chosen.index(k) for k in listed]
    levels = _levels(read, [names[k] for k in chosen], declared) if chosen else []
    schema = Schema(len(names), tuple(names), tuple(zip(chosen, levels, strict=True)))
    single = not chosen and all(kind == pa.float32() for kind in types)
    table = FileTable(read, schema, n_rows, folder, single)
    return table.with_stored_codes() if chosen else table


def _holds_text(kind: Any) -> bool:
    return _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_category(kind: object) -> bool:
    return bool(pa.types.is_dictionary(kind)) or _is_text(kind)


def _is_text(kind: object) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _levels(read: Any, names: list[str], listed: Sequence[int] | None) -> list[tuple[Level, ...]]:
    """Levels of the category columns, ascending; warn of texts that are probably not categories."""
    levels: list[set[Level]] = [set() for _ in names]
    texts: dict[object, TextSums] = defaultdict(TextSums)
    begin = 0
    for batch in read(names):
        table = read_table(batch)
        assert table is not None
        found: dict[object, TextColumn] = {}
        _, schema = learn(table, listed, note_texts=found.update)
        for k, own in schema.levels:
            levels[k].update(own)
        for name, column in found.items():
            texts[name].add(column, begin)
        begin += table.n_rows
    warn_of_texts({name: sums.column for name, sums in texts.items()})
    return [united_levels([one]) for one in levels]


def require_column(dataset: Any, name: str) -> None:
    """Refuse the name of a column that the table does not have."""
    if name not in dataset.schema.names:
        raise InvalidData(
            f"the table has no column {name!r}; {meant_columns(name, dataset.schema.names)}."
        )


def values_of(dataset: Any, name: str) -> NDArray[Any]:
    """Read one column into memory, (n,)."""
    require_column(dataset, name)
    with _reading(f"column {name!r} cannot be read"):
        parts = [_numpy(batch.column(0)) for batch in reader_of(dataset)([name])]
    if not parts:
        raise InvalidData("the table has no rows; at least one is required.")
    return np.concatenate(parts)


def _numpy(column: Any) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column.validate(full=True)  # that text is UTF-8
    return column.to_numpy()
