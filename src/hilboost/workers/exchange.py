"""Exchange between workers that are arranged in a tree, over any kind of connection.

Worker ``k`` has the children ``2 k + 1`` and ``2 k + 2``.  Each adds up what its children send,
sends the sum to its parent, and receives the sum over all workers::

    sums      3 → 1 → 0 ← 2        every arrow is one message
    result    3 ← 1 ← 0 → 2

Only integers are added, so the result does not depend on the tree.  Two workers send each other
their sums at the same time.
"""

from __future__ import annotations

import hmac
import pickle
import socket
import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import FIELDS, merge_sums
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange

Message = list[NDArray[Any]]
_SHORT = 2**17 - 2**10  # bytes


class WorkerLost(Exception):
    """Another worker does not answer, or has failed."""


class TreeExchange(Exchange):
    """Base class of exchanges, which add connections to neighbors in the tree."""

    def __init__(self, rank: int, n_workers: int) -> None:
        self._rank, self._n_workers = rank, n_workers
        self.n_messages = 0
        self.n_bytes = 0

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._rank

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self._n_workers

    @abstractmethod
    def send(self, rank: int, message: Message) -> None:
        """Send arrays to a neighbor; raises :class:`WorkerLost`."""

    @abstractmethod
    def receive(self, rank: int) -> Message:
        """Receive arrays from a neighbor; raises :class:`WorkerLost`."""

    def _send(self, rank: int, message: Message) -> None:
        self.n_messages += 1
        self.n_bytes += sum(array.nbytes for array in message)
        self.send(rank, message)

    def _swapped(self, own: Message) -> Message:
        """Send a message to the only other worker, and receive its message."""
        other = 1 - self.rank
        # A short message fits into the buffers of a connection, so that sending does not wait.
        sends_first = self.rank == 1 or sum(array.nbytes for array in own) <= _SHORT
        if sends_first:
            self._send(other, own)
        found = self.receive(other)
        if not sends_first:
            self._send(other, own)
        return found

    def _reduced(self, own: Message, joined: Callable[[Message, Message], Message]) -> Message:
        if self.n_workers == 2:
            return joined(own, self._swapped(own))
        children, parent = neighbors(self.rank, self.n_workers)
        for child in children:
            own = joined(own, self.receive(child))
        if parent is not None:
            self._send(parent, own)
            own = self.receive(parent)
        for child in children:
            self._send(child, own)
        return own

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of an array over all workers."""
        return self._reduced([values], lambda own, other: [own[0] + other[0]])[0]

    def merged(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sums over the rows of all workers."""

        def joined(own: Message, other: Message) -> Message:
            total = own[0].reshape(-1, FIELDS).copy()
            merge_sums(total, np.ascontiguousarray(other[0].reshape(-1, FIELDS)))
            return [total.reshape(sums.shape)]

        return self._reduced([sums], joined)[0]

    def largest(self, values: Floats) -> Floats:
        """Return the largest values over all workers."""
        return self._reduced([values], lambda own, other: [np.maximum(own[0], other[0])])[0]

    def added(self, values: Floats) -> Floats:
        """Return the sum of an array over all workers, the same for each of them."""
        return self._reduced([values], lambda own, other: [own[0] + other[0]])[0]

    def first(self, own: object) -> Any:
        """Return the object of worker 0."""
        return self.objects(own if self.rank == 0 else None)[0]

    def gathered(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of all workers in the order of the workers."""
        tagged = [np.array([self.rank]), rows]
        found = self._reduced(tagged, lambda own, other: [*own, *other])
        order = np.argsort([int(rank[0]) for rank in found[::2]])
        return np.concatenate([found[2 * k + 1] for k in order])

    def objects(self, own: object) -> list[Any]:
        """Return objects of all workers, that of worker 0 first."""
        content = np.frombuffer(_pickled(own), dtype=np.uint8)
        lengths = self.gathered(np.array([len(content)]))
        ends = np.cumsum(lengths)[:-1]
        return [pickle.loads(part.tobytes()) for part in np.split(self.gathered(content), ends)]


def _pickled(own: object) -> bytes:
    """Pickle an object, also if its class or function was defined in a script or a function."""
    try:
        return pickle.dumps(own)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle  # installed with Dask, whose other messages contain such objects too

        return cloudpickle.dumps(own)


def neighbors(rank: int, n_workers: int) -> tuple[list[int], int | None]:
    """Return the children of a worker, and its parent, if it has one."""
    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < n_workers]
    return children, (rank - 1) // 2 if rank else None


_BUFFER = 2**19  # bytes; several short messages
_HEADER = struct.Struct("!Q")
_GREETING = struct.Struct("!16sI")


class SocketExchange(TreeExchange):
    """Exchange between processes, each of which listens on a port that the system has chosen."""

    def __init__(
        self,
        rank: int,
        # sequence of (str, int): hosts and ports of all workers
        addresses: Sequence[tuple[str, int]],
        listener: socket.socket,  # of this worker
        token: bytes,  # 16 bytes that identify the fit; other connections are closed
        timeout: float,  # seconds after which a silent worker is taken for lost
        # (SSLContext, SSLContext) or None: for incoming and for outgoing connections
        contexts: tuple[SSLContext, SSLContext] | None = None,
    ) -> None:
        super().__init__(rank, len(addresses))
        self._token, self._timeout, self._contexts = token, timeout, contexts
        self._neighbors: dict[int, socket.socket] = {}
        self.is_closed = False
        children, parent = neighbors(rank, len(addresses))
        try:
            if parent is not None:
                self._connect(parent, addresses[parent])
            listener.settimeout(timeout)
            while len(self._neighbors) < len(children) + (parent is not None):
                self._accept(listener, children)
        except OSError as error:
            self.close()
            raise WorkerLost(f"worker {rank} cannot reach its neighbors: {error}") from error

    def _connect(self, rank: int, address: tuple[str, int]) -> None:
        plain = socket.create_connection(address, self._timeout)
        if self._contexts is not None:
            plain = self._contexts[1].wrap_socket(plain)
        self._keep(rank, plain)
        plain.sendall(_GREETING.pack(self._token, self.rank))

    def _accept(self, listener: socket.socket, children: Sequence[int]) -> None:
        plain, _ = listener.accept()
        try:
            plain.settimeout(self._timeout)
            if self._contexts is not None:
                plain = self._contexts[0].wrap_socket(plain, server_side=True)
            token, rank = _GREETING.unpack(_received(plain, _GREETING.size))
        except (OSError, WorkerLost):
            plain.close()
            return
        if not hmac.compare_digest(token, self._token) or rank not in children:
            plain.close()
            return
        self._keep(rank, plain)

    def _keep(self, rank: int, connection: socket.socket) -> None:
        connection.settimeout(self._timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._neighbors[rank] = connection

    def send(self, rank: int, message: Message) -> None:
        """Send arrays to a neighbor."""
        arrays = [np.ascontiguousarray(array) for array in message]
        head = pickle.dumps([(array.dtype.str, array.shape) for array in arrays])
        parts: list[Any] = [_HEADER.pack(len(head)), head]
        parts += [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
        try:
            self._neighbors[rank].sendall(b"".join(parts))
        except OSError as error:
            raise WorkerLost(f"worker {rank} does not answer: {error}") from error

    def receive(self, rank: int) -> Message:
        """Receive arrays from a neighbor."""
        connection = self._neighbors[rank]
        try:
            (length,) = _HEADER.unpack(_received(connection, _HEADER.size))
            message = []
            for dtype, shape in pickle.loads(_received(connection, length)):
                array = np.empty(shape, dtype=dtype)
                if array.size:
                    _fill(connection, array.reshape(-1).view(np.uint8).data)
                message.append(array)
        except OSError as error:
            raise WorkerLost(f"worker {rank} does not answer: {error}") from error
        return message

    def close(self) -> None:
        """Close the connections; neighbors that wait find this worker lost."""
        self.is_closed = True
        for connection in self._neighbors.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _received(connection: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    _fill(connection, memoryview(content))
    return content


def _fill(connection: socket.socket, content: memoryview) -> None:
    done = 0
    while done < len(content):
        n = connection.recv_into(content[done:])
        if n == 0:
            raise WorkerLost("a worker has closed its connection.")
        done += n
