"""Fits by threads as pretended workers, and the bytes of saved models."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

from hilboost.workers.fit import WorkerTask, check_supported, fit_share
from hilboost.workers.partitions import Partition
from hilboost.workers.threads import run_together


def partitions_of(X, y, weight=None, cuts=(), offset=None):
    """Cut a table after the given rows; cuts may be equal, which makes empty partitions."""
    ends = [0, *sorted(cuts), len(y)]
    parts = []
    for number, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        rows = slice(begin, end)
        part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        beside = (None if values is None else values[rows] for values in (weight, offset))
        parts.append(Partition(number, part, y[rows], *beside))
    return parts


def fit_together(model, parts, owners, held_out=(), n_workers=None):
    """Fit by several threads; ``owners`` gives the worker of each partition.

    Returns the models of all workers.
    """
    check_supported(model)
    weighted, weighted_val = (any(p.weight is not None for p in ps) for ps in (parts, held_out))
    has_offsets = any(p.offset is not None for p in parts)
    task = WorkerTask(model, model._seed(), 1, weighted, weighted_val, has_offsets)
    n_workers = n_workers or max(owners) + 1

    def work(exchange):
        own = [p for p, owner in zip(parts, owners, strict=True) if owner == exchange.rank]
        held = [p for p in held_out if p.number % n_workers == exchange.rank]
        return fit_share(task, own, held, exchange)

    results = []
    for fitted, schema in run_together(n_workers, work):
        found = clone(model)
        found.fitted_ = fitted
        found.n_features_in_ = schema.n_columns
        if schema.names is not None:
            found.feature_names_in_ = np.asarray(schema.names, dtype=object)
        results.append(found)
    return results


def saved(model):
    """The bytes of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path, training_data=True)
        return path.read_bytes()
