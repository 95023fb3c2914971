"""Partitions of Dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
from dask.array import Array

from hilboost.core.errors import DataWarning, InvalidData, InvalidType, warn_caller
from hilboost.core.labels import is_pandas
from hilboost.core.words import counted
from hilboost.validation.order import difference_of_rows, warn_of_other_rows
from hilboost.workers.partitions import Partition

_BESIDE = ("y", "sample_weight", "offset")


def partitions_of(suffix: str, **given: Any) -> list[Any]:
    """Return one delayed :class:`Partition` for each partition of ``X``."""
    parts = {
        name: _delayed(value, name + suffix) for name, value in given.items() if value is not None
    }
    n = len(parts["X"])
    for name, found in parts.items():
        if len(found) != n:
            raise InvalidData(
                f"X{suffix} has {counted(n, 'partition')}, but {name}{suffix} has {len(found)}; "
                "divide the rows of both in the same way."
            )
    rows = zip(*parts.values(), strict=True)
    return [
        dask.delayed(Partition)(number, **dict(zip(parts, of_part, strict=True)))
        for number, of_part in enumerate(rows)
    ]


def delayed_parts(collection: Any) -> list[Any]:  # as many as the collection has partitions
    """Return the delayed partitions of a Dask DataFrame or Array, with whole rows.

    Dask joins Parquet files of which only a few columns are read, so that ``X`` and ``y`` of one
    table would have different partitions.  In this case, its graph is not optimized.
    """
    if isinstance(collection, Array) and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    parts = np.ravel(np.array(collection.to_delayed(), dtype=object)).tolist()
    if len(parts) == collection.npartitions:
        return parts
    return list(collection.to_delayed(optimize_graph=False))


def _delayed(collection: object, name: str) -> list[Any]:
    """Delayed partitions of a collection."""
    if isinstance(collection, list | tuple):
        if collection and all(hasattr(part, "key") for part in collection):
            return [dask.delayed(part) for part in collection]
    elif hasattr(collection, "to_delayed"):
        return delayed_parts(collection)
    raise InvalidType(
        f"{name} must be a Dask DataFrame, a Dask Array or a list of delayed partitions, not "
        f"{type(collection).__name__}; for data in memory, use the method fit of the estimator."
    )


def other_orders(partition: Partition) -> dict[str, tuple[int, int, str]]:
    """Return the arguments whose index is not that of ``X``: hashes, and how rows differ."""
    if not is_pandas(partition.X):
        return {}
    beside = {name: getattr(partition, name) for name in _BESIDE}
    return {
        name: (
            _sum_of_hashes(partition.X.index),
            _sum_of_hashes(values.index),
            difference_of_rows(partition.X, values, is_target=name == "y"),
        )
        for name, values in beside.items()
        if is_pandas(values) and not partition.X.index.equals(values.index)
    }


def _sum_of_hashes(index: object) -> int:
    from pandas.util import hash_pandas_object

    return int(hash_pandas_object(index).to_numpy().sum(dtype=np.uint64))


def warn_of_orders(found: Sequence[dict[str, tuple[int, int, str]]], suffix: str) -> None:
    """Warn if all partitions together have the index of ``X`` in another order, or one has not."""
    for name in _BESIDE:
        pairs = [one[name] for one in found if name in one]
        ours, theirs = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        if pairs and (ours - theirs) % 2**64 == 0:
            warn_caller(
                f"{name}{suffix} has the index of X{suffix} in a different "
                "order, but rows are matched by position; join both to one table by their index, "
                "or pass arrays if this is intended.",
                DataWarning,
            )
        elif difference := max((pair[2] for pair in pairs), default=""):
            warn_of_other_rows(name + suffix, f"X{suffix}", difference)
