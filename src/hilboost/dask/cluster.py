"""Sessions of all workers of a cluster, again and again until one is complete."""

from __future__ import annotations

import asyncio
import logging
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Client, Future, wait

from hilboost.core.errors import FitError, InvalidData, counted, shown
from hilboost.dask.partitions import other_orders, warn_of_orders
from hilboost.dask.session import Outcome, Seat, abandon, be_ready, listen, run_session
from hilboost.workers.fit import WorkerTask
from hilboost.workers.progress import Listener

_log = logging.getLogger("hilboost")
_POLL = 0.5  # seconds between looks at the workers
_GRACE = 10.0  # seconds within which sessions end after one has lost a worker
_ANSWER = 30.0  # seconds within which a worker that is not frozen answers a call
_READY = 5.0  # seconds for which a session waits for workers that have just joined


@dataclass
class ClusterFit:
    """A fit on a cluster."""

    client: Client
    task: WorkerTask
    partitions: list[Future]
    held_out: list[Future]
    timeout: float
    _ready: dict[str, Future] = field(default_factory=dict, init=False)
    _is_checked: bool = field(default=False, init=False)

    def release(self) -> None:
        """Let the cluster forget the partitions; an exception may keep this object alive."""
        for future in (*self.partitions, *self.held_out, *self._ready.values()):
            future.release()

    def until_complete(self, listener: Listener, max_restarts: int) -> Any:
        """Run sessions until one ends with a model."""
        n_lost = 0
        while n_lost <= max_restarts:
            outcomes = self._session(listener)
            failed = [one.error for one in outcomes if one.error is not None]
            if failed:
                raise failed[0]
            found = [one.result for one in outcomes if one.result is not None]
            if found:
                listener.wait_for(found[0][0].history.train)
            if self._ended_early(listener):
                # The workers may be some stages ahead of the callback that has ended the fit.
                assert listener.ended_after is not None
                listener.log.keep(listener.ended_after)
                self.task = replace(self.task, last=listener.ended_after)
                continue
            if found:
                n_bytes = sum(one.n_bytes for one in outcomes)
                n_messages = sum(one.n_messages for one in outcomes)
                _log.info(
                    "%d workers sent %d bytes in %d messages.", len(outcomes), n_bytes, n_messages
                )
                return found[0]
            n_lost += 1
        raise FitError(
            f"workers were lost {counted(max_restarts + 1, 'time')} during the fit; start more "
            "reliable workers, or increase max_restarts."
        )

    def _ended_early(self, listener: Listener) -> bool:
        """Whether a callback has just ended the fit."""
        return listener.ended_after is not None and self.task.last is None

    def _session(self, listener: Listener) -> list[Outcome]:
        """Train on the workers that there are now; return how the sessions ended."""
        token = secrets.token_bytes(16)
        owners = self._owners()
        self._check_order()
        workers = list(dict.fromkeys(owners.values()))
        found = asked(self.client, listen, token, workers, min(_ANSWER, self.timeout))
        if any(isinstance(one, Exception) for one in found.values()):
            self._abandon(token, workers)
            self._remove([w for w, one in found.items() if isinstance(one, TimeoutError)])
            time.sleep(_POLL)  # until the scheduler knows which workers are left
            return []
        content = None if listener.log.fit is None else pickle.dumps(listener.log.fit)
        addresses = [found[one] for one in workers]
        with self._listening(token, listener):
            sessions = {
                worker: self.client.submit(
                    run_session,
                    self.task,
                    Seat(token, rank, addresses, self.timeout),
                    [f for f in self.partitions if owners[f.key] == worker],
                    [f for f in self.held_out if owners[f.key] == worker],
                    content,
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for rank, worker in enumerate(workers)
            }
            try:
                return self._ended(sessions, listener)
            finally:
                self._abandon(token, workers)
                for session in sessions.values():
                    session.release()  # an exception may keep this frame alive

    def _check_order(self) -> None:
        """Warn once of rows whose targets or weights have the index of ``X`` in another order."""
        if self._is_checked:
            return
        self._is_checked = True
        for futures, suffix in ((self.partitions, ""), (self.held_out, "_val")):
            found = self.client.map(other_orders, futures, pure=False)
            with suppress(TimeoutError, CancelledError):
                wait(found, timeout=self.timeout)
                if all(one.status == "finished" for one in found):
                    warn_of_orders(self.client.gather(found), suffix)

    def _owners(self) -> dict[str, str]:
        """Worker of each partition, by key, once all partitions are computed."""
        futures = [*self.partitions, *self.held_out]
        while True:
            workers = self._workers()
            self._prepare(workers)
            with suppress(TimeoutError):
                self._computed(futures)
                holders = self.client.who_has(futures)
                if all(holders.get(future.key) for future in futures):
                    break
                time.sleep(_POLL)
        ready = self._ready_among(workers)
        owners: dict[str, str] = {}
        for some in (self.partitions, self.held_out):
            found = {future.key: set(holders[future.key]) for future in some}
            owners |= evenly(found, ready)
        return owners

    def _prepare(self, workers: set[str]) -> None:
        """Let new workers load the package, which takes them some seconds."""
        for worker in workers.difference(self._ready):
            self._ready[worker] = self.client.submit(
                be_ready, workers=[worker], allow_other_workers=False, pure=False
            )

    def _ready_among(self, workers: set[str]) -> set[str]:
        """The workers that have loaded the package; others are used in the next session."""
        with suppress(TimeoutError, CancelledError):
            wait([self._ready[worker] for worker in workers], timeout=_READY)
        return {worker for worker in workers if self._ready[worker].status == "finished"}

    def _computed(self, futures: Sequence[Future]) -> None:
        """Wait until all partitions are computed; raises ``TimeoutError``."""
        with suppress(CancelledError):
            wait(futures, timeout=self.timeout)
        of = [""] * len(self.partitions) + [" of X_val"] * len(self.held_out)
        numbers = [*range(len(self.partitions)), *range(len(self.held_out))]
        for future, number, which in zip(futures, numbers, of, strict=True):
            if future.status == "error":
                error = future.exception()
                raise InvalidData(
                    f"partition {number}{which} could not be computed: {shown(error)}; compute it "
                    "with Dask to see where."
                ) from error
            if future.status in ("cancelled", "lost"):
                raise FitError(
                    f"partition {number}{which} was lost with its worker, and Dask cannot compute "
                    "it again; pass collections that read files, not data from client.scatter."
                )

    def _workers(self) -> set[str]:
        """Addresses of the workers of the cluster; at least one must appear in time."""
        deadline = time.monotonic() + self.timeout
        while True:
            workers = set(self.client.scheduler_info(n_workers=-1)["workers"])
            if workers:
                return workers
            if time.monotonic() > deadline:
                raise FitError("the cluster has no workers; start some, and fit again.")
            time.sleep(_POLL)

    def _ended(self, sessions: dict[str, Future], listener: Listener) -> list[Outcome]:
        """Wait until all sessions have ended, or some worker is lost; remove frozen workers."""
        open_sessions = dict(sessions)
        outcomes: list[Outcome] = []
        deadline = None
        while open_sessions:
            with suppress(TimeoutError, CancelledError):
                wait(list(open_sessions.values()), timeout=_POLL, return_when="FIRST_COMPLETED")
            listener.work_off()
            if self._ended_early(listener):
                return outcomes
            for worker, session in list(open_sessions.items()):
                if session.status == "pending":
                    continue
                del open_sessions[worker]
                outcomes.append(outcome_of(session, self.timeout))
            there = self._workers()
            self._prepare(there)
            for worker in [worker for worker in open_sessions if worker not in there]:
                open_sessions.pop(worker).cancel()
                outcomes.append(Outcome(lost=f"worker {worker} has left the cluster."))
            if deadline is None and any(one.lost or one.error for one in outcomes):
                deadline = time.monotonic() + min(_GRACE, self.timeout)
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
            asked(self.client, abandon, token, list(there), _GRACE)

    @contextmanager
    def _listening(self, token: bytes, listener: Listener) -> Iterator[None]:
        """Pass the records that worker 0 sends to the listener."""
        topic = token.hex()
        self.client.subscribe_topic(topic, listener.hear)
        try:
            yield
        finally:
            self.client.unsubscribe_topic(topic)
            with suppress(Exception):
                self.client.run_on_scheduler(_forget_topic, topic=topic)


def evenly(holders: dict[str, set[str]], workers: set[str]) -> dict[str, str]:
    """Choose the worker of each partition: one that has it, unless that one has too many.

    ``holders`` are the workers that have a partition, by its key.  Dask moves a partition to the
    worker that is chosen for it, so that a worker that has just joined has its part of them.
    """
    loads = dict.fromkeys(sorted(workers.union(*holders.values())), 0)
    most = -(-len(holders) // max(len(loads), 1))
    owners = {}
    for place_anywhere in (False, True):
        for key in (key for key in holders if key not in owners):
            having = loads if place_anywhere else sorted(holders[key])
            worker = min(having, key=lambda one: loads[one])
            if loads[worker] < most:
                owners[key] = worker
                loads[worker] += 1
    return {key: owners[key] for key in holders}


def asked(
    client: Client, function: Callable[..., Any], token: bytes, workers: list[str], timeout: float
) -> dict[str, Any]:
    """Call a function on workers; a worker that does not answer in time has an exception."""

    async def ask(worker: str) -> Any:
        found = client.run(function, token, workers=[worker], on_error="return")
        return (await asyncio.wait_for(found, timeout))[worker]

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*map(ask, workers), return_exceptions=True)

    return dict(zip(workers, client.sync(ask_all), strict=True))


def outcome_of(session: Future, timeout: float) -> Outcome:
    """Return how a session has ended, which is not known if its worker is lost afterwards."""
    if session.status == "finished":
        with suppress(TimeoutError, CancelledError):  # Dask would wait for the same worker
            return session.result(timeout)
        return Outcome(lost="a worker was lost after the end of its session.")
    return Outcome(lost=f"the session ended with status {session.status!r}.")


async def _forget(workers: list[str], dask_scheduler: Any) -> None:
    for worker in workers:
        await dask_scheduler.remove_worker(worker, stimulus_id="hilboost")


def _forget_topic(topic: str, dask_scheduler: Any) -> None:
    dask_scheduler._broker.truncate(topic)
