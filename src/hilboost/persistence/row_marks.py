"""Marks of training rows in model files.

Header: ``row_marks`` with ``version`` of the hashes, ``limit``, the largest hash that a marked row
may have, ``n_rows``, the number of training rows that were counted, and ``n_repeated``, how many of
them recur.  Array: ``row_marks`` (m,) uint64, ascending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.model.row_marks import RowMarks
from hilboost.persistence.require import Arrays, require, require_array

_NAME = "row_marks"
_VERSION = 1
_MOST = 1024


def to_file(marks: RowMarks) -> tuple[dict[str, Any], Arrays]:
    """Convert at most 1,024 marks to a field of the header and an array."""
    kept = marks.first(_MOST)
    fields = {"version": _VERSION, "limit": int(kept.limit)}
    fields |= {"n_rows": kept.n_rows, "n_repeated": kept.n_repeated}
    return {_NAME: fields}, {_NAME: np.ascontiguousarray(kept.hashes)}


def from_file(header: dict[str, Any], arrays: Arrays) -> RowMarks | None:
    """Read what :func:`to_file` wrote; files of earlier versions have no marks."""
    fields = header.get(_NAME)
    if fields is None:
        return None
    require(type(fields["version"]) is int, _NAME)
    if fields["version"] != _VERSION:  # hashes of a later version are unknown
        return None
    hashes = require_array(arrays, _NAME, np.uint64)
    limit, n_rows, n_repeated = (fields[name] for name in ("limit", "n_rows", "n_repeated"))
    require(0 < len(hashes) <= _MOST and bool((hashes[1:] > hashes[:-1]).all()), _NAME)
    require(type(limit) is int and int(hashes[-1]) <= limit < 2**64, f"limit of {_NAME}")
    require(type(n_rows) is int and len(hashes) <= n_rows, f"n_rows of {_NAME}")
    require(type(n_repeated) is int and 0 <= n_repeated <= n_rows, f"n_repeated of {_NAME}")
    return RowMarks(hashes, np.uint64(limit), n_rows, n_repeated)
