"""Fingerprints of parameters and arrays, by which fits are compared."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import joblib
import numpy as np

from hilboost.core.errors import InvalidParameter
from hilboost.tables import DenseTable, FileTable, SparseTable

_PLAIN = (str, int, float, bool, type(None))


def plain_value(name: str, value: Any) -> Any:
    """Return the value of a parameter for JSON; other objects as their type and hash.

    Raises
    ------
    InvalidParameter
        The value cannot be hashed.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_value(name, one) for one in value]
    if isinstance(value, _PLAIN):
        return value
    kind = value if isinstance(value, type) else type(value)
    try:
        return f"{kind.__module__}.{kind.__qualname__} {joblib.hash(value)}"
    except Exception as error:  # pickling a user's object may raise anything
        raise InvalidParameter(
            f"Checkpoint and warm_start identify fits by their parameters, but {name}={value!r} "
            f"cannot be hashed ({error}); define its class and functions at the top level of a "
            "module."
        ) from error


def fingerprint(array: np.ndarray | DenseTable | FileTable | SparseTable | None) -> str:
    """Hash an array; cost O(size), one or two seconds per gigabyte."""
    if array is None:
        return "none"
    if isinstance(array, SparseTable):
        d = array.shape[1]
        return f"sparse {d} " + " ".join(fingerprint(part) for part in array.arrays)
    if isinstance(array, DenseTable | FileTable):
        columns = np.arange(array.shape[1])
        blocks: Iterable[np.ndarray] = (block for _, block in array.row_blocks(columns))
    else:
        blocks = [array]
    content = (np.ascontiguousarray(block).reshape(-1).view(np.uint8).data for block in blocks)
    return f"{'x'.join(map(str, array.shape))} {array.dtype} {digest(content)}"


def digest(parts: Iterable[bytes | memoryview]) -> str:
    """Hash bytes, given in parts."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()
