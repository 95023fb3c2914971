"""Lazy predictions, partition by partition."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
from dask.array import Array, concatenate, from_delayed

from hilboost.core.errors import InvalidType
from hilboost.dask.partitions import delayed_parts


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
