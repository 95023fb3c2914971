"""Partitions of Dask collections, and lazy predictions of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask.array import Array, concatenate, from_delayed

from hilboost.core.errors import DataWarning, InvalidData, InvalidType, counted, warn_caller
from hilboost.core.labels import is_pandas
from hilboost.validation.order import difference_of_rows, warn_of_other_rows
from hilboost.workers.partitions import Partition

_BESIDE = ("y", "sample_weight", "offset", "groups", "time")


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
    X, found = partition.X, {}
    for name in _BESIDE:
        values = getattr(partition, name)
        if is_pandas(values) and not X.index.equals(values.index):
            difference = difference_of_rows(X, values, is_target=name == "y")
            found[name] = _sum_of_hashes(X.index), _sum_of_hashes(values.index), difference
    return found


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


def predict(model: Any, X: object) -> Any:
    """Predict the target, partition by partition, when the result is computed.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : Dask DataFrame or Dask Array (n, d)

    Returns
    -------
    Dask Series, Dask Array (n,) or (n, c), or list of delayed objects
        A data frame gives a series if there is one target, and otherwise an array.  The labels of
        an output kernel are a list of delayed partitions.
    """
    return _lazy(model, X, "predict")


def predict_proba(model: Any, X: object) -> Any:
    """Predict the probabilities of the classes, partition by partition.

    Parameters
    ----------
    model : classifier
        Fitted.
    X : Dask DataFrame or Dask Array (n, d)

    Returns
    -------
    Dask Array (n, n_classes)

    Raises
    ------
    InvalidType
        The model is not a classifier.
    """
    if model.fitted_.codec.kind != "classes":
        raise InvalidType(
            f"predict_proba requires a classifier, not {type(model).__name__}; use "
            "hilboost.dask.predict."
        )
    return _lazy(model, X, "predict_proba")


def _lazy(model: Any, X: Any, method: str) -> Any:
    if not hasattr(X, "to_delayed"):
        raise InvalidType(
            f"X must be a Dask DataFrame or a Dask Array, not {type(X).__name__}; for data in "
            "memory, use the methods of the model."
        )
    codec, is_array = model.fitted_.codec, isinstance(X, Array)
    if codec.kind == "structured":
        return [dask.delayed(_labels)(part, model) for part in delayed_parts(X)]
    width: int | None = None
    if codec.kind == "classes":
        dtype = codec.classes.dtype if method == "predict" else np.dtype(np.float64)
        width = None if method == "predict" else len(codec.classes)
    else:
        dtype, width = np.dtype(np.float64), None if codec.flat else codec.n_targets
    if not is_array and width is None:
        return X.map_partitions(_predicted_series, model, method, dtype, meta=(None, dtype))
    if not is_array:
        parts = [
            dask.delayed(_predicted)(part, model, method, dtype, width) for part in delayed_parts(X)
        ]
        shapes = [(np.nan,) if width is None else (np.nan, width)] * len(parts)
        arrays = [from_delayed(p, s, dtype) for p, s in zip(parts, shapes, strict=True)]
        return concatenate(arrays, allow_unknown_chunksizes=True)
    blocks = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1, "meta": np.empty(0, dtype)}
    if width is not None:
        shape = {"chunks": (blocks.chunks[0], (width,)), "meta": np.empty((0, 0), dtype)}
    return blocks.map_blocks(_predicted, model, method, dtype, width, dtype=dtype, **shape)


def _labels(part: Any, model: Any) -> Any:
    """Predict the labels of a partition, which may have no rows."""
    return model.predict(part) if len(part) else []


def _predicted(part: Any, model: Any, method: str, dtype: Any, width: int | None) -> Any:
    """Predict the rows of a partition, which may have none."""
    if not len(part):
        return np.empty((0,) if width is None else (0, width), dtype=dtype)
    return getattr(model, method)(part)


def _predicted_series(part: Any, model: Any, method: str, dtype: Any) -> Any:
    return pd.Series(_predicted(part, model, method, dtype, None), index=part.index, dtype=dtype)
