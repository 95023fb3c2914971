"""Labels of classes and groups in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.persistence.require import require
from hilboost.persistence.values import PLAIN

_TEXT_BYTES = 2**24  # of labels, each of which takes as much memory as the longest


def label_dtype(labels: Any, what: str = "class") -> np.dtype[Any]:
    """The dtype of labels (n,); strings are as long as the longest label."""
    dtype: np.dtype[Any] = labels.dtype
    if dtype.kind != "U" or labels.nbytes <= _TEXT_BYTES:
        return dtype
    shortest: np.dtype[Any] = np.array(labels.tolist()).dtype
    if shortest.itemsize * len(labels) > _TEXT_BYTES:
        raise IncompatibleParts(
            f"model files support {what} labels of at most {_TEXT_BYTES // 2**20} MiB in total; "
            f"these {len(labels)} labels are longer. Use shorter {what} names."
        )
    return shortest


def read_labels(labels: Any, name: Any, what: str) -> Any:
    """Return distinct labels (n,) with the dtype of this name."""
    require(isinstance(labels, list) and all(isinstance(y, PLAIN) for y in labels), what)
    require(isinstance(name, str), f"{what}_dtype")
    dtype = np.dtype(name)
    require(dtype.kind in "biufUO", f"{what}_dtype")
    if dtype.kind == "U":
        require(0 < dtype.itemsize * len(labels) <= _TEXT_BYTES, f"{what}_dtype")
    found = np.array(labels, dtype=dtype)
    require(len(labels) > 0 and len(set(found.tolist())) == len(labels), what)
    return found
