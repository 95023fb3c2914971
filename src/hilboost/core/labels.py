"""Selection and concatenation of labels in arrays, tables and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def take_labels(labels: Any, rows: NDArray[np.int64]) -> Any:
    """Select labels by position: rows of arrays and tables, items of lists.

    ``rows``: (m,) int64.
    """
    if hasattr(labels, "iloc"):
        return labels.iloc[rows]
    if hasattr(labels, "tocsr"):
        return labels.tocsr()[rows]
    return labels[rows] if hasattr(labels, "shape") else [labels[i] for i in rows]


def form_of_labels(labels: Any) -> str:
    """Describe what holds some labels, as far as labels that are put together must agree in it.

    Returns str: ``"an array or list"``, ``"a series"``, ``"a sparse matrix"``, or the columns of a
    table.
    """
    if hasattr(labels, "iloc"):
        has_columns = hasattr(labels, "columns")
        return f"a table with the columns {list(labels.columns)}" if has_columns else "a series"
    return "a sparse matrix" if hasattr(labels, "tocsr") else "an array or list"


def join_labels(parts: Sequence[Any]) -> Any:
    """Put labels together: rows of arrays and tables, items of lists.

    ``parts``: of one kind (see :func:`form_of_labels`); at least one.
    """
    first = parts[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    if hasattr(first, "shape"):
        return np.concatenate(parts)
    return [label for part in parts for label in part]
