"""The session of a fit on one Dask worker, and the memory that its stages reuse."""

from __future__ import annotations

import ctypes
import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from distributed import get_worker, secede
from distributed.comm import get_address_host

from hilboost.workers.exchange import SocketExchange, WorkerLost
from hilboost.workers.fit import WorkerTask, fit_share
from hilboost.workers.partitions import Partition
from hilboost.workers.progress import Progress, StageRecord

# By fit and worker: several workers may live in one process.
_listeners: dict[tuple[bytes, str], socket.socket] = {}
_exchanges: dict[tuple[bytes, str], SocketExchange] = {}


@dataclass(frozen=True)
class Outcome:
    """How a session has ended: with a result, with an error, or because a worker was lost.

    ``n_bytes`` and ``n_messages`` count what this worker has sent.
    """

    result: Any = None
    error: Exception | None = None
    lost: str | None = None
    n_bytes: int = 0
    n_messages: int = 0


@dataclass(frozen=True)
class Seat:
    """Which worker of a session this is, and how it finds the others."""

    token: bytes  # of the fit
    rank: int
    addresses: list[tuple[str, int]]  # of all workers
    timeout: float  # seconds that it waits for them


def be_ready() -> None:
    """Do nothing; a worker that calls this has loaded what a session needs."""


def listen(token: bytes, dask_worker: Any) -> tuple[str, int]:
    """Open a port of the worker; return its address."""
    address = dask_worker.address
    host = "127.0.0.1" if address.startswith("inproc") else get_address_host(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    _listeners[token, address] = listener
    return host, int(listener.getsockname()[1])


def abandon(token: bytes, dask_worker: Any) -> None:
    """Close everything of a fit; a session that still runs ends when it next waits."""
    key = token, dask_worker.address
    listener, exchange = _listeners.pop(key, None), _exchanges.get(key)
    if listener is not None:
        listener.close()
    if exchange is not None:
        exchange.close()


def run_session(
    task: WorkerTask,
    seat: Seat,
    partitions: list[Partition],
    held_out: list[Partition],
    continuation: bytes | None,
) -> Outcome:
    """Fit with the other workers; only worker 0 returns the model."""
    worker = get_worker()
    secede()  # the other workers of this fit, and other fits, must be able to start
    key = seat.token, worker.address
    listener = _listeners.get(key)
    exchange: SocketExchange | None = None
    try:
        if listener is None:
            raise WorkerLost("the worker was started again.")
        contexts = _contexts(worker.security)
        exchange = SocketExchange(
            seat.rank, seat.addresses, listener, seat.token, seat.timeout, contexts
        )
        _exchanges[key] = exchange

        def send(record: StageRecord) -> None:
            worker.log_event(seat.token.hex(), pickle.dumps(record))

        task = replace(task, n_threads=worker.state.nthreads)
        resumed = None if continuation is None else pickle.loads(continuation)
        session = worker.get_current_task()

        def is_wanted() -> bool:
            # Dask forgets the sessions of a client that has ended.
            known = worker.state.tasks.get(session)
            return not exchange.is_closed and known is not None and known.state != "cancelled"

        progress = Progress(None if seat.rank else send, is_wanted, task.last)
        with kept_memory():
            found = fit_share(
                task, partitions, held_out, exchange, continuation=resumed, progress=progress
            )
        result = None if seat.rank else found
        return Outcome(result, None, None, exchange.n_bytes, exchange.n_messages)
    except WorkerLost as error:
        return Outcome(lost=str(error))
    except Exception as error:
        return Outcome(error=error)
    finally:
        if exchange is not None:
            exchange.close()
        _exchanges.pop(key, None)
        with suppress(KeyError):
            _listeners.pop(key).close()


def _contexts(security: Any) -> Any:
    """Encryption of the cluster, if it has any: for incoming and for outgoing connections."""
    incoming = security.get_listen_args("worker").get("ssl_context")
    outgoing = security.get_connection_args("worker").get("ssl_context")
    return None if incoming is None or outgoing is None else (incoming, outgoing)


_SETTING = "MALLOC_TRIM_THRESHOLD_"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_USUAL_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD = 2**17, 2**25
_KEPT = 2**29  # bytes

_lock = Lock()
_n_users = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep the memory of freed arrays in the process until the last session of a worker ends.

    Dask starts its workers with an environment variable that makes the C library return freed
    memory to the system at once.  The arrays of each stage would then be mapped page by page again,
    which takes as long as computing them.  Without the variable, nothing is changed.
    """
    global _n_users
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _set(_KEPT, _LARGEST_MMAP_THRESHOLD)
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _set(None, _USUAL_MMAP_THRESHOLD)


def _set(kept: int | None, mmap_threshold: int) -> None:
    """Set the thresholds of the C library; ``None`` restores that of the environment."""
    setting = os.environ.get(_SETTING, "")
    if not setting.isdecimal():
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    library.mallopt(_TRIM_THRESHOLD, int(setting) if kept is None else kept)
    library.mallopt(_MMAP_THRESHOLD, mmap_threshold)
    if kept is None:
        library.malloc_trim(0)
