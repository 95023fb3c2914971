"""Selection of labels in arrays, tables and lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def take_labels(labels: Any, rows: NDArray[np.int64]) -> Any:
    """Select labels by position: rows of arrays and tables, items of lists.

    Parameters
    ----------
    labels : sequence of n labels
    rows : (m,) int64

    Returns
    -------
    sequence of m labels
    """
    if hasattr(labels, "iloc"):
        return labels.iloc[rows]
    if hasattr(labels, "tocsr"):
        return labels.tocsr()[rows]
    return labels[rows] if hasattr(labels, "shape") else [labels[i] for i in rows]
