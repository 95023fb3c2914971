"""A team of threads for one fit or one prediction.

Threads live as long as the ``with`` block and no longer, so that a process may fork after a fit
and two Python threads may fit at the same time without sharing anything.
"""

import os
import threading
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from hilboost.core.errors import InvalidParameter

ENTRIES_WORTH_A_THREAD = 2**18
_KERNEL_VALUES_PER_ROW = 2000  # roughly


def available_cores() -> int:
    """Cores this process may use.

    The least of its affinity mask, the quota of its container, and ``OMP_NUM_THREADS`` and
    ``NUMBA_NUM_THREADS``, which joblib sets in its worker processes to their share of the cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, _container_quota(), *map(_environment_limit, _LIMITS)))


_LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
_UNLIMITED = 1 << 30


def _environment_limit(name: str) -> int:
    first = os.environ.get(name, "").split(",")[0].strip()  # OpenMP lists one number a level
    return int(first) if first.isdecimal() and int(first) > 0 else _UNLIMITED


_CGROUP = Path("/sys/fs/cgroup")
_QUOTA_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))  # version 2, 1


def _container_quota() -> int:
    for names in _QUOTA_FILES:
        try:
            texts = [(_CGROUP / name).read_text(encoding="ascii") for name in names]
            quota, period = " ".join(texts).split()
            if int(quota) > 0:
                return max(1, round(int(quota) / int(period)))
        except (OSError, ValueError):
            continue
    return _UNLIMITED


def threads_for(n_jobs: int | None, n_entries: float) -> int:
    """Number of threads for work on so many array entries.

    ``n_jobs``: as in scikit-learn: the largest number, ``None`` and -1 for all cores.

    Raises
    ------
    InvalidParameter
        ``n_jobs`` is zero.
    """
    if n_jobs == 0:
        raise InvalidParameter("n_jobs == 0 has no meaning; use None or -1 for all cores.")
    if n_entries < ENTRIES_WORTH_A_THREAD:
        return 1  # without asking the system for the number of cores, which takes longer
    cores = available_cores()
    wanted = cores if n_jobs is None else int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + n_jobs)
    return int(max(1, min(wanted, 1 + n_entries // ENTRIES_WORTH_A_THREAD)))


def threads_for_kernels(n_jobs: int | None, n_rows: int) -> int:
    """Number of threads for kernel values between ``n`` rows and thousands of others.

    Raises
    ------
    InvalidParameter
        ``n_jobs`` is zero.
    """
    return threads_for(n_jobs, n_rows * _KERNEL_VALUES_PER_ROW)


class ThreadTeam:
    """``n_threads`` threads, the calling one included."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._workers: list[tuple[threading.Thread, SimpleQueue[Any]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread, inbox in self._workers:
            inbox.put(None)
        for thread, _inbox in self._workers:
            thread.join()
        self._workers = []

    def _start(self) -> None:
        for _ in range(1, self.n_threads):
            inbox: SimpleQueue[Any] = SimpleQueue()
            thread = threading.Thread(target=self._work, args=(inbox,), daemon=True)
            thread.start()
            self._workers.append((thread, inbox))

    def _work(self, inbox: SimpleQueue[Any]) -> None:
        while (task := inbox.get()) is not None:
            function, arguments, on_error, outbox = task
            failure: BaseException | None = None
            try:
                function(*arguments)
            except BaseException as error:
                on_error()
                failure = error
            # Until the next task, nothing that this one used is kept in memory.
            del task, function, arguments, on_error
            outbox.put(failure)
            del failure, outbox

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        on_error: Callable[[], None] = lambda: None,
    ) -> None:
        """Call ``function(thread, *arguments)`` once in every thread and wait for all.

        ``on_error`` is called where one fails, to release others that wait for it.
        """
        if self.n_threads == 1:
            function(0, *arguments)
            return
        if not self._workers:
            self._start()
        n_begun = 0  # an interrupt may come before all have
        # One for each run: what an interrupt leaves behind is not taken for an end of the next run.
        outbox: SimpleQueue[BaseException | None] = SimpleQueue()
        try:
            for number, (_thread, inbox) in enumerate(self._workers, start=1):
                inbox.put((function, (number, *arguments), on_error, outbox))
                n_begun = number
            function(0, *arguments)
        except BaseException:
            on_error()
            raise
        finally:
            errors = _ends_of(n_begun, outbox)
        for error in errors:
            if error is not None:
                raise error

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
        """Results of ``function`` for every task, in the tasks' order.

        Tasks go to threads in turn as these become free; each result depends on its task alone.
        """
        tasks = list(tasks)
        if self.n_threads == 1 or len(tasks) < 2:
            return [function(task) for task in tasks]
        results: list[Any] = [None] * len(tasks)
        counter = iter(range(len(tasks)))  # next() on it is atomic

        def work(_: int) -> None:
            for i in counter:
                results[i] = function(tasks[i])

        self.run(work)
        return results


def _ends_of(n_tasks: int, outbox: SimpleQueue[BaseException | None]) -> list[BaseException | None]:
    """Wait until other threads have ended their tasks, also if an interrupt comes meanwhile."""
    ends: list[BaseException | None] = []
    interrupt: KeyboardInterrupt | None = None
    while len(ends) < n_tasks:
        try:
            # An interrupt between get and append in Python would lose an end.
            ends.extend(islice(iter(outbox.get, outbox), n_tasks - len(ends)))
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
    return ends
