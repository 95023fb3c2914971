"""Exchange between processes over sockets, with encryption if contexts for it are given."""

from __future__ import annotations

import hmac
import pickle
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import numpy as np

from hilboost.workers.exchange import Message, TreeExchange, WorkerLost, neighbors

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
