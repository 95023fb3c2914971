"""Selection and concatenation of labels in arrays, tables and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


def is_pandas(table: object) -> bool:
    """Return whether a table, frame or series, has an index as in pandas."""
    return hasattr(table, "iloc")


def _kind(labels: object) -> Literal["frame", "sparse", "array", "list"]:
    """Kind of container: a pandas object, a sparse matrix, another array, or a list."""
    if is_pandas(labels):
        return "frame"
    if hasattr(labels, "tocsr"):
        return "sparse"
    return "array" if hasattr(labels, "shape") else "list"


def take_labels(labels: Any, rows: NDArray[np.int64]) -> Any:
    """Select labels by position, (m,): rows of arrays and tables, items of lists."""
    kind = _kind(labels)
    if kind == "list":
        return [labels[i] for i in rows]
    if kind == "frame":
        return labels.iloc[rows]
    return labels.tocsr()[rows] if kind == "sparse" else labels[rows]


def form_of_labels(labels: object) -> str:
    """Describe what holds some labels, as far as labels that are put together must agree in it.

    Tables are described by their columns; arrays and lists can be put together.
    """
    if _kind(labels) == "frame":
        columns = getattr(labels, "columns", None)
        return "a series" if columns is None else f"a table with the columns {list(columns)}"
    return "a sparse matrix" if _kind(labels) == "sparse" else "an array or list"


def join_labels(parts: Sequence[Any]) -> Any:
    """Put labels of one kind together: rows of arrays and tables, items of lists."""
    kind = _kind(parts[0])
    if kind == "frame":
        import pandas as pd

        return pd.concat(parts)
    if kind == "sparse":
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts) if kind == "array" else [one for part in parts for one in part]
