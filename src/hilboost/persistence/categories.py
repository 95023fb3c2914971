"""The encoding of category columns in model files.

Header ``encoding``: ``merged`` and ``shares`` (columns), ``sources`` (lists of columns),
``n_keys``, ``n_members``, ``strength``, ``n_columns`` (of the trees).
Concatenated arrays: ``category_merged``, ``category_shares``, ``statistic_keys``,
``statistic_weights``, ``statistic_sums``, ``statistic_prior``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.encoders.encoding import Encoding
from hilboost.encoders.target_encoding import LevelKeys, TargetEncoding
from hilboost.engine import MAX_LEVELS
from hilboost.persistence.require import (
    Arrays,
    require,
    require_array,
    require_finite,
    require_kind,
)
from hilboost.tables.schema import Schema, category_columns


def to_file(encoding: Encoding) -> tuple[dict[str, Any], Arrays]:
    """Convert an encoding to a part of the header, and arrays."""
    statistics = encoding.statistics
    sources = statistics[0].sources if statistics else ()
    header = {
        "merged": [column for column, _ in encoding.kept],
        "shares": [column for column, _ in encoding.shares],
        "sources": [list(source.columns) for source in sources],
        "n_keys": [len(source.keys) for source in sources],
        "n_members": len(statistics),
        "strength": statistics[0].strength if statistics else 1.0,
        "n_columns": encoding.full_width,
    }
    arrays = {
        "category_merged": _joined((new for _, new in encoding.kept), np.int64),
        "category_shares": _joined((share for _, share in encoding.shares), np.float64),
        "statistic_keys": _joined((source.keys for source in sources), np.int64),
        "statistic_weights": _joined((w for s in statistics for w in s.weights), np.float64),
        "statistic_sums": _joined((x.ravel() for s in statistics for x in s.sums), np.float64),
        "statistic_prior": _joined((s.prior for s in statistics), np.float64),
    }
    return header, arrays


def _joined(arrays: Iterable[NDArray], dtype: type) -> NDArray:
    found = list(arrays)
    return np.concatenate(found).astype(dtype) if found else np.empty(0, dtype=dtype)


def from_file(header: dict[str, Any], arrays: Arrays, schema: Schema) -> Encoding:
    """Read what :func:`to_file` wrote."""
    of_column = dict(category_columns(schema))
    merged, shares = (_integers(header[name], schema.n_columns) for name in ("merged", "shares"))
    require({*merged, *shares} <= of_column.keys(), "category columns")
    require(_all_different([*merged, *shares]), "category columns")
    all_codes = require_array(arrays, "category_merged", np.int64)
    codes = _split(all_codes, [of_column[k] for k in merged], "category_merged")
    require(all(bool(((c >= 0) & (c < MAX_LEVELS)).all()) for c in codes), "category_merged")
    all_shares = require_finite(arrays, "category_shares")
    parts = _split(all_shares, [of_column[k] for k in shares], "category_shares")
    encoding = Encoding(
        schema.n_columns,
        tuple(zip(merged, codes, strict=True)),
        tuple(zip(shares, parts, strict=True)),
        _statistics(header, arrays, of_column),
    )
    require(encoding.full_width == header["n_columns"], "n_columns")
    return encoding


def _statistics(
    header: dict[str, Any], arrays: Arrays, of_column: dict[int, int]
) -> tuple[TargetEncoding, ...]:
    n_keys = _integers(header["n_keys"], 2**31)
    groups, n_members = header["sources"], int(header["n_members"])
    strength = float(header["strength"])
    require(0 < strength < np.inf, "strength")
    require(0 <= n_members < 2**31 and len(groups) == len(n_keys), "sources")
    require((n_members > 0) == (len(groups) > 0), "sources")
    keys = _split(require_array(arrays, "statistic_keys", np.int64), n_keys, "statistic_keys")
    sources = _sources(groups, keys, of_column)
    prior = require_finite(arrays, "statistic_prior")
    weights = require_finite(arrays, "statistic_weights")
    require(bool((weights >= 0).all()), "statistic_weights")
    if n_members == 0:
        return ()
    q, rest = divmod(len(prior), n_members)
    require(q > 0 and rest == 0, "statistic_prior")
    sizes = [n + 1 for n in n_keys]
    all_weights = _split(weights, sizes * n_members, "statistic_weights")
    sums = require_finite(arrays, "statistic_sums")
    all_sums = _split(sums, [n * q for n in sizes] * n_members, "statistic_sums")
    k = len(sizes)
    return tuple(
        TargetEncoding(
            sources,
            tuple(all_weights[m * k : (m + 1) * k]),
            tuple(x.reshape(-1, q) for x in all_sums[m * k : (m + 1) * k]),
            prior[m * q : (m + 1) * q],
            strength,
        )
        for m in range(n_members)
    )


def _sources(
    groups: Sequence[Any], keys: Sequence[NDArray], of_column: dict[int, int]
) -> tuple[LevelKeys, ...]:
    """The columns, or pairs of columns, whose levels have statistics."""
    sources = []
    for group, found in zip(groups, keys, strict=True):
        columns = tuple(_integers(group, 2**31))
        require(0 < len(columns) <= 2 and set(columns) <= of_column.keys(), "sources")
        require(_all_different(columns), "sources")
        require(bool((np.diff(found) > 0).all() and (found >= 0).all()), "statistic_keys")
        sources.append(LevelKeys(columns, tuple(of_column[k] for k in columns), found))
    require(_all_different([source.columns for source in sources]), "sources")
    return tuple(sources)


def _integers(values: Any, below: int) -> list[int]:
    require_kind(values, list, "categories")
    require(all(type(x) is int and 0 <= x < below for x in values), "categories")
    return list(values)


def _all_different(columns: Sequence[Any]) -> bool:
    return len(set(columns)) == len(columns)


def _split(array: NDArray, sizes: Sequence[int], name: str) -> list[NDArray]:
    require(sum(sizes) == len(array), name)
    return np.split(array, np.cumsum(sizes)[:-1]) if len(sizes) else []
