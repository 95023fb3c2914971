"""The client's part of a fit: sessions of all workers, again and again until one is complete."""

from __future__ import annotations

import logging
import pickle
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from distributed import Client, Future, get_client, wait

from hilboost.callbacks.printer import with_printer
from hilboost.core.callback import Callback
from hilboost.core.errors import FitError, InvalidData
from hilboost.dask.partitions import partitions_of
from hilboost.dask.session import Outcome, abandon, listen, run_session
from hilboost.workers.fit import WorkerTask, check_supported
from hilboost.workers.progress import StageRecord, continued

Estimator = TypeVar("Estimator")
_log = logging.getLogger("hilboost")
_POLL = 0.5  # seconds between looks at the workers
_GRACE = 10.0  # seconds within which sessions end after one has lost a worker


def fit(
    model: Estimator,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    client: Client | None = None,
    callbacks: Sequence[Callback] = (),
    timeout: float = 120.0,
    max_restarts: int = 10,
) -> Estimator:
    """Fit a model of trees on a Dask cluster: the model of one process, bit for bit.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        With ``learner="auto"``, it consists of trees.
    X : Dask DataFrame, Dask Array or list of delayed partitions
        Inputs.  Each partition is a data frame or an array (n, d); it may be empty.
    y : Dask Series, Dask Array or list of delayed partitions
        Targets, with the partitions of ``X``.
    sample_weight : like y, optional
    X_val, y_val : like X and y, optional
        Validation data for early stopping, used instead of held-out rows of ``X``.
    client : distributed.Client, optional
        The current client by default.
    callbacks : sequence of callables
        Called in this process with an :class:`~hilboost.core.callback.Event` after each stage, as
        soon as it is known here.  They cannot stop the fit.
    timeout : float, default=120
        Seconds after which a worker that does not answer is taken for lost.
    max_restarts : int, default=10
        How often the fit goes on without lost workers before it fails.

    Returns
    -------
    estimator
        ``model`` itself, fitted.

    Raises
    ------
    InvalidData, InvalidParameter, InvalidType
        The data or the parameters are invalid.  The message names the partition.
    FitError
        Workers were lost more than ``max_restarts`` times, or none is left.

    Notes
    -----
    The model depends neither on the number of workers nor on the partitions.  If a worker is lost,
    Dask computes its partitions again on the others, finished trees are kept, and the open tree is
    grown again.
    """
    check_supported(model)
    client = get_client() if client is None else client
    if (X_val is None) != (y_val is None):
        raise InvalidData("only one of X_val and y_val was passed; pass both or neither.")
    parts = partitions_of(X, y, sample_weight, ("X", "y", "sample_weight"))
    held_out = []
    if X_val is not None:
        held_out = partitions_of(X_val, y_val, None, ("X_val", "y_val", "weight"))
    estimator: Any = model
    task = WorkerTask(estimator, estimator._seed(), weighted=sample_weight is not None)
    futures = client.compute([*parts, *held_out])
    run = _Fit(client, task, futures[: len(parts)], futures[len(parts) :], timeout)
    shown = with_printer(callbacks, estimator.verbose)
    fitted, schema = run.until_complete(shown, max_restarts)
    estimator.fitted_ = fitted
    estimator.n_features_in_ = schema.n_columns
    if schema.names is not None:
        estimator.feature_names_in_ = np.asarray(schema.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return model


@dataclass
class _Fit:
    """A fit on a cluster."""

    client: Client
    task: WorkerTask
    partitions: list[Future]
    held_out: list[Future]
    timeout: float

    def until_complete(self, callbacks: Sequence[Callback], max_restarts: int) -> Any:
        """Run sessions until one ends with a model."""
        records: list[StageRecord] = []
        for _ in range(max_restarts + 1):
            outcomes = self._session(records, callbacks)
            failed = [one.error for one in outcomes if one.error is not None]
            if failed:
                raise failed[0]
            found = [one.result for one in outcomes if one.result is not None]
            if found:
                n_bytes = sum(one.n_bytes for one in outcomes)
                n_messages = sum(one.n_messages for one in outcomes)
                _log.info(
                    "%d workers sent %d bytes in %d messages.", len(outcomes), n_bytes, n_messages
                )
                return found[0]
        raise FitError(
            f"workers were lost {max_restarts + 1} times during the fit; start more reliable "
            "workers, or increase max_restarts."
        )

    def _session(self, records: list[StageRecord], callbacks: Sequence[Callback]) -> list[Outcome]:
        """Train on the workers that there are now; return how the sessions ended."""
        token = secrets.token_bytes(16)
        owners = self._owners()
        workers = list(dict.fromkeys(owners.values()))
        known = [worker for worker in workers if worker in self._workers()]
        found = self.client.run(listen, token, workers=known, on_error="return")
        if known != workers or any(isinstance(one, Exception) for one in found.values()):
            self._abandon(token, known)
            return []
        resumed = continued(records, self.task.seed)
        content = None if resumed is None else pickle.dumps(resumed)
        with self._listening(token, records, callbacks):
            sessions = {
                worker: self.client.submit(
                    run_session,
                    self.task,
                    token,
                    rank,
                    [found[one] for one in workers],
                    [f for f in self.partitions if owners[f.key] == worker],
                    [f for f in self.held_out if owners[f.key] == worker],
                    content,
                    self.timeout,
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for rank, worker in enumerate(workers)
            }
            try:
                return self._ended(sessions)
            finally:
                self._abandon(token, workers)

    def _owners(self) -> dict[str, str]:
        """Worker of each partition, by key, once all partitions are computed."""
        futures = [*self.partitions, *self.held_out]
        while True:
            self._workers()
            with suppress(TimeoutError):
                wait(futures, timeout=self.timeout)
                break
        for future in futures:
            if future.status == "error":
                future.result()
        loads: dict[str, int] = {}
        owners: dict[str, str] = {}
        holders = self.client.who_has(futures)
        for future in futures:
            having = sorted(holders.get(future.key, ()))
            if not having:
                return self._owners()
            owners[future.key] = min(having, key=lambda worker: loads.get(worker, 0))
            loads[owners[future.key]] = loads.get(owners[future.key], 0) + 1
        return owners

    def _workers(self) -> set[str]:
        """Addresses of the workers of the cluster, of which there must be one in time."""
        deadline = time.monotonic() + self.timeout
        while True:
            workers = set(self.client.scheduler_info(n_workers=-1)["workers"])
            if workers:
                return workers
            if time.monotonic() > deadline:
                raise FitError("the cluster has no workers; start some, and fit again.")
            time.sleep(_POLL)

    def _ended(self, sessions: dict[str, Future]) -> list[Outcome]:
        """Wait until all sessions have ended, or some worker is lost; remove frozen workers."""
        open_sessions = dict(sessions)
        outcomes: list[Outcome] = []
        deadline = None
        while open_sessions:
            with suppress(TimeoutError):
                wait(list(open_sessions.values()), timeout=_POLL, return_when="FIRST_COMPLETED")
            for worker, session in list(open_sessions.items()):
                if session.status == "pending":
                    continue
                del open_sessions[worker]
                outcomes.append(_outcome(session))
            there = self._workers()
            for worker in [worker for worker in open_sessions if worker not in there]:
                open_sessions.pop(worker).cancel()
                outcomes.append(Outcome(lost=f"worker {worker} has left the cluster."))
            if deadline is None and any(one.lost or one.error for one in outcomes):
                deadline = time.monotonic() + _GRACE
            if deadline is not None and time.monotonic() > deadline:
                self._remove(list(open_sessions))
                break
        return outcomes

    def _remove(self, workers: list[str]) -> None:
        """Make the scheduler forget workers that do not answer, so that it replaces their data."""
        if workers:
            self.client.run_on_scheduler(_forget, workers=workers)

    def _abandon(self, token: bytes, workers: Sequence[str]) -> None:
        """Close all that sessions have left open."""
        with suppress(Exception):
            there = self._workers().intersection(workers)
            self.client.run(abandon, token, workers=list(there), on_error="ignore")

    @contextmanager
    def _listening(
        self, token: bytes, records: list[StageRecord], callbacks: Sequence[Callback]
    ) -> Iterator[None]:
        """Keep the records of stages that worker 0 sends."""

        def heard(event: tuple[float, bytes]) -> None:
            record: StageRecord = pickle.loads(event[1])
            if record.number == len(records) + 1:
                records.append(record)
                for callback in callbacks:
                    callback(record.event)

        topic = token.hex()
        self.client.subscribe_topic(topic, heard)
        try:
            yield
        finally:
            self.client.unsubscribe_topic(topic)


def _outcome(session: Future) -> Outcome:
    if session.status == "finished":
        found: Outcome = session.result()
        return found
    return Outcome(lost=f"the session ended with status {session.status!r}.")


async def _forget(workers: list[str], dask_scheduler: Any) -> None:
    for worker in workers:
        await dask_scheduler.remove_worker(worker, stimulus_id="hilboost")
