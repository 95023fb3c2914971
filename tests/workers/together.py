"""Fits by threads as pretended workers, and the bytes of saved models."""

import tempfile
import warnings
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import numpy as np
from sklearn.base import clone

from hilboost.core.errors import DataWarning
from hilboost.workers.exchange import TreeExchange, WorkerLost
from hilboost.workers.fit import WorkerTask, check_supported, fit_share
from hilboost.workers.partitions import Partition

_PATIENCE = 120  # seconds, after which a message that no worker sends fails the test


class ThreadExchange(TreeExchange):
    """Exchange between threads of one process, which share the queues."""

    def __init__(self, rank, n_workers, queues):
        super().__init__(rank, n_workers)
        self._queues = queues

    def send(self, rank, message):
        self._queues[self.rank, rank].put(message)

    def receive(self, rank):
        try:
            message = self._queues[rank, self.rank].get(timeout=_PATIENCE)
        except Empty:
            raise TimeoutError(
                f"worker {self.rank} waits for a message of worker {rank}."
            ) from None
        if message is None:
            raise WorkerLost(f"worker {rank} has failed.")
        return message

    def fail(self):
        """Tell all others that this thread has failed."""
        for (sender, _), queue in self._queues.items():
            if sender == self.rank:
                queue.put(None)


def run_together(n_workers, work):
    """Run a function in several threads, each with its exchange; return the results in order."""
    queues = {(a, b): SimpleQueue() for a in range(n_workers) for b in range(n_workers)}
    results = [None] * n_workers
    errors = []

    def run(rank):
        exchange = ThreadExchange(rank, n_workers, queues)
        try:
            results[rank] = work(exchange)
        except BaseException as error:
            errors.append(error)
            exchange.fail()

    threads = [Thread(target=run, args=(rank,)) for rank in range(n_workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, WorkerLost)), errors[0])
    return results


def partitions_of(X, y, weight=None, cuts=(), offset=None, groups=None, time=None):
    """Cut a table after the given rows; cuts may be equal, which makes empty partitions."""
    ends = [0, *sorted(cuts), len(y)]
    parts = []
    for number, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        rows = slice(begin, end)
        part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        given = (weight, offset, groups, time)
        beside = (None if values is None else values[rows] for values in given)
        parts.append(Partition(number, part, y[rows], *beside))
    return parts


def fit_together(model, parts, owners, held_out=(), n_workers=None):
    """Fit by several threads; ``owners`` gives the worker of each partition.

    Returns the models of all workers.
    """
    check_supported(model)
    task = WorkerTask(model, model._seed())
    n_workers = n_workers or max(owners) + 1

    def work(exchange):
        own = [p for p, owner in zip(parts, owners, strict=True) if owner == exchange.rank]
        held = [p for p in held_out if p.number % n_workers == exchange.rank]
        return fit_share(task, own, held, exchange)

    results = []
    for fitted, schema, told in run_together(n_workers, work):
        found = clone(model)
        found.fitted_ = fitted
        found.n_features_in_ = schema.n_columns
        if schema.names is not None:
            found.feature_names_in_ = np.asarray(schema.names, dtype=object)
        for sentence in told:
            warnings.warn(sentence, DataWarning, stacklevel=2)
        results.append(found)
    return results


def saved(model):
    """The bytes of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path, training_data=True)
        return path.read_bytes()
