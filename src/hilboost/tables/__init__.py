"""Input tables: arrays, lists, data frames of any library, and sparse matrices.

``reading`` reads the columns, ``encoding.learn`` turns them into a matrix and a schema, and
``encoding.encode`` applies the schema to later tables.
"""

from hilboost.tables.blocks import BlockTable

__all__ = ["BlockTable"]
