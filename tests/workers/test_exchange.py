"""Exchange over sockets: sums, refusals of strangers, and lost neighbors."""

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hilboost.backends.exact_sums import rounded, sum_of
from hilboost.workers.exchange import SocketExchange, WorkerLost

TOKEN = bytes(range(16))


def listeners(n):
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    return found, [one.getsockname()[:2] for one in found]


def together(n, work, timeout=5.0):
    servers, addresses = listeners(n)

    def run(rank):
        exchange = SocketExchange(rank, addresses, servers[rank], TOKEN, timeout)
        try:
            return work(exchange)
        finally:
            exchange.close()

    with ThreadPoolExecutor(n) as pool:
        tasks = [pool.submit(run, rank) for rank in range(n)]
    for server in servers:
        server.close()
    return tasks


@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_operation(n):
    def work(exchange):
        rows = np.full((exchange.rank, 2), exchange.rank, dtype=np.float32)
        return (
            exchange.sum(np.arange(3) + exchange.rank).tolist(),
            float(rounded(exchange.merged(sum_of(np.array([0.1 * exchange.rank]))))),
            exchange.largest(np.array([float(exchange.rank)])).tolist(),
            exchange.gathered(rows)[:, 0].tolist(),
            exchange.objects({"rank": exchange.rank}),
        )

    ranks = range(n)
    expected = (
        [sum(i + r for r in ranks) for i in range(3)],
        float(rounded(sum_of(np.array([0.1 * r for r in ranks])))),
        [float(n - 1)],
        [float(r) for r in ranks for _ in range(r)],
        [{"rank": r} for r in ranks],
    )
    assert [task.result() for task in together(n, work)] == [expected] * n


def test_a_stranger_is_sent_away():
    (first, second), addresses = listeners(2)
    stranger = socket.create_connection(addresses[0])
    stranger.sendall(bytes(20))
    with ThreadPoolExecutor(2) as pool:
        tasks = [
            pool.submit(SocketExchange, rank, addresses, server, TOKEN, 5.0)
            for rank, server in enumerate((first, second))
        ]
    one, other = (task.result() for task in tasks)
    assert stranger.recv(1) == b""
    stranger.close()
    other.close()
    with pytest.raises(WorkerLost, match="closed its connection"):
        one.receive(1)
    one.close()
    first.close()
    second.close()


def test_a_silent_neighbor_is_lost():
    def work(exchange):
        return exchange.sum(np.arange(2)) if exchange.rank == 0 else None

    tasks = together(2, work)
    with pytest.raises(WorkerLost):
        tasks[0].result()
    (server,), addresses = listeners(1)
    with pytest.raises(WorkerLost, match="cannot reach its neighbors"):
        SocketExchange(0, [addresses[0]] * 2, server, TOKEN, 0.1)
    server.close()
