"""Partitions of Dask collections."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

from hilboost.core.errors import InvalidData, InvalidType
from hilboost.workers.partitions import Partition

_ARGUMENTS = {"weight": "sample_weight"}


def partitions_of(suffix: str, **given: Any) -> list[Any]:
    """Return one delayed :class:`Partition` for each partition of ``X``.

    Parameters
    ----------
    suffix : str
        What follows the names of the arguments in messages.
    **given : Dask DataFrame, Array or sequence of delayed objects
        By attribute of the partitions; ``X`` and ``y``, and others, which may be ``None``.

    Raises
    ------
    InvalidType
        One of them is not a Dask collection.
    InvalidData
        Their partitions are different.
    """
    names = {field: _ARGUMENTS.get(field, field) + suffix for field in given}
    parts = {
        field: _delayed(value, names[field]) for field, value in given.items() if value is not None
    }
    n = len(parts["X"])
    for field, found in parts.items():
        if len(found) != n:
            raise InvalidData(
                f"{names['X']} has {n} partitions, but {names[field]} has {len(found)}; divide the "
                "rows of both in the same way."
            )
    rows = zip(*parts.values(), strict=True)
    return [
        dask.delayed(Partition)(number, **dict(zip(parts, of_part, strict=True)))
        for number, of_part in enumerate(rows)
    ]


def delayed_parts(collection: Any) -> list[Any]:
    """Return the delayed partitions of a Dask DataFrame or Array.

    Dask joins Parquet files of which only a few columns are read, so that ``X`` and ``y`` of one
    table would have different partitions.  In this case, its graph is not optimized.

    Parameters
    ----------
    collection : Dask DataFrame or Array

    Returns
    -------
    list of Delayed
        As many as the collection has partitions.
    """
    parts = np.ravel(np.array(collection.to_delayed(), dtype=object)).tolist()
    if len(parts) == collection.npartitions:
        return parts
    return list(collection.to_delayed(optimize_graph=False))


def _delayed(collection: Any, name: str) -> list[Any]:
    """Delayed partitions of a collection."""
    if isinstance(collection, list | tuple):
        if collection and all(hasattr(part, "key") for part in collection):
            return [dask.delayed(part) for part in collection]
    elif hasattr(collection, "to_delayed"):
        if len(getattr(collection, "shape", ())) == 2 and hasattr(collection, "rechunk"):
            collection = collection.rechunk({1: -1})
        return delayed_parts(collection)
    raise InvalidType(
        f"{name} must be a Dask DataFrame, a Dask Array or a list of delayed partitions, not "
        f"{type(collection).__name__}; for data in memory, use the method fit of the estimator."
    )
