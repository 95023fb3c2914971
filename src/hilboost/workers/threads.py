"""Threads of one process that train together as workers do."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from hilboost.workers.exchange import Message, TreeExchange, WorkerLost


class ThreadExchange(TreeExchange):
    """Exchange between threads of one process.

    ``queues``: Shared by all.
    """

    def __init__(
        self, rank: int, n_workers: int, queues: dict[tuple[int, int], SimpleQueue[Any]]
    ) -> None:
        super().__init__(rank, n_workers)
        self._queues = queues

    def send(self, rank: int, message: Message) -> None:
        """Send arrays to another thread."""
        self._queues[self.rank, rank].put(message)

    def receive(self, rank: int) -> Message:
        """Receive arrays from another thread."""
        message = self._queues[rank, self.rank].get()
        if message is None:
            raise WorkerLost(f"worker {rank} has failed.")
        return message

    def fail(self) -> None:
        """Tell all others that this thread has failed."""
        for (sender, _), queue in self._queues.items():
            if sender == self.rank:
                queue.put(None)


def run_together(n_workers: int, work: Callable[[TreeExchange], Any]) -> list[Any]:
    """Run a function in several threads, each with its exchange.

    Returns list: results, that of worker 0 first.
    """
    queues: dict[tuple[int, int], SimpleQueue[Any]] = {
        (a, b): SimpleQueue() for a in range(n_workers) for b in range(n_workers)
    }
    results: list[Any] = [None] * n_workers
    errors: list[BaseException] = []

    def run(rank: int) -> None:
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
