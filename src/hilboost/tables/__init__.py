"""Input tables: arrays, lists, data frames of any library, and sparse matrices.

``read_table`` reads the columns, ``learn`` turns them into a matrix and a schema, and ``encode``
applies the schema to later tables.
"""

from hilboost.tables.arrays import (
    columns_of,
    frame_columns,
    how_to_read_file,
    index_names,
    is_pandas,
    n_rows,
    refuse_dates_and_complex,
    without_frame,
    without_mask,
)
from hilboost.tables.blocks import BlockTable, DenseTable, as_table
from hilboost.tables.choice import category_choice
from hilboost.tables.columns import is_missing_value
from hilboost.tables.encoding import (
    encode,
    encode_array,
    learn,
    learn_array,
)
from hilboost.tables.files import FileTable, column_of, encoded_table, of_used_levels, recoded
from hilboost.tables.number_text import (
    COMPACT_DAY,
    DATE,
    MONTH_NAMED,
    NUMBER_WITH_UNIT,
    SEPARATED_NUMBER,
    YEAR_LAST,
    Form,
    Written,
    form_of,
    written_as,
)
from hilboost.tables.reading import (
    Table,
    as_array,
    named_columns,
    read_table,
    repeated_name,
)
from hilboost.tables.schema import Column, Level, Schema, category_columns, place, united_levels
from hilboost.tables.sparse import SparseTable, is_sparse
from hilboost.tables.sparse_checks import check_sparse
from hilboost.tables.text_columns import (
    TextColumn,
    TextSums,
    sentences_about,
    warn_of_texts,
    words_told,
)

__all__ = [
    "COMPACT_DAY",
    "DATE",
    "MONTH_NAMED",
    "NUMBER_WITH_UNIT",
    "SEPARATED_NUMBER",
    "YEAR_LAST",
    "BlockTable",
    "Column",
    "DenseTable",
    "FileTable",
    "Form",
    "Level",
    "Schema",
    "SparseTable",
    "Table",
    "TextColumn",
    "TextSums",
    "Written",
    "as_array",
    "as_table",
    "category_choice",
    "category_columns",
    "check_sparse",
    "column_of",
    "columns_of",
    "encode",
    "encode_array",
    "encoded_table",
    "form_of",
    "frame_columns",
    "how_to_read_file",
    "index_names",
    "is_missing_value",
    "is_pandas",
    "is_sparse",
    "learn",
    "learn_array",
    "n_rows",
    "named_columns",
    "of_used_levels",
    "place",
    "read_table",
    "recoded",
    "refuse_dates_and_complex",
    "repeated_name",
    "sentences_about",
    "united_levels",
    "warn_of_texts",
    "without_frame",
    "without_mask",
    "words_told",
    "written_as",
]
