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
    """Cores this process may use by default.

    ``OMP_NUM_THREADS`` and ``NUMBA_NUM_THREADS`` limit them, which joblib sets in its worker
    processes to their share of the cores.
    """
    return min(_cores(), *map(_environment_limit, _LIMITS))


def _cores() -> int:
    """Cores of the affinity mask and of the quota of the container, or ``HILBOOST_CORES``."""
    given = _environment_limit("HILBOOST_CORES")
    if given < _UNLIMITED:
        return given
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, _container_quota()))


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
    """Number of threads for work on so many array entries, at most one for each core.

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
    if n_jobs is not None and n_jobs > 0:
        wanted = min(int(n_jobs), _cores())
    else:
        wanted = max(1, available_cores() + (0 if n_jobs is None else 1 + int(n_jobs)))
    return int(max(1, min(wanted, 1 + n_entries // ENTRIES_WORTH_A_THREAD)))


def threads_for_kernels(n_jobs: int | None, n_rows: int) -> int:
    """Number of threads for kernel values between ``n`` rows and thousands of others.

    Raises
    ------
    InvalidParameter
        ``n_jobs`` is zero.
    """
    return threads_for(n_jobs, n_rows * _KERNEL_VALUES_PER_ROW)


class _Errand:
    """Work that the calling thread does, and that others share if they come before it is over."""

    def __init__(self, work: Callable[[int], Any], on_error: Callable[[], None]) -> None:
        self._work: Callable[[int], Any] | None = work
        self._on_error = on_error
        self.begun: list[int] = []
        self.ends: SimpleQueue[BaseException | None] = SimpleQueue()

    def take_part(self, thread: int) -> None:
        """Do a part of it, unless it is over."""
        work = self._work
        if work is None:
            return
        self.begun.append(thread)
        failure: BaseException | None = None
        try:
            work(thread)
        except BaseException as error:
            failure = error
        self.ends.put(failure)
        if failure is not None:
            self._on_error()

    def end(self) -> None:
        """Let nobody begin any more, and keep nothing of what was used."""
        self._work = None


class _Worker:
    """A thread, and the errands that it was asked to take part in."""

    def __init__(self, number: int) -> None:
        self.inbox: SimpleQueue[_Errand | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, args=(number,), daemon=True)
        self._is_busy = False

    @property
    def load(self) -> int:
        """Number of errands that come before another one."""
        return self.inbox.qsize() + self._is_busy

    def _serve(self, number: int) -> None:
        while (errand := self.inbox.get()) is not None:
            self._is_busy = True
            errand.take_part(number)
            del errand  # until the next one, nothing that this one used is kept in memory
            self._is_busy = False


class ThreadTeam:
    """``n_threads`` threads, the calling one included.

    A task of :meth:`map` may call :meth:`map` itself: threads that have nothing else to do help.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.inbox.put(None)
        for worker in self._workers:
            worker.thread.join()
        self._workers = []

    def _start(self) -> None:
        for number in range(1, self.n_threads):
            worker = _Worker(number)
            worker.thread.start()
            self._workers.append(worker)

    def run(self, work: Callable[[int], Any], on_error: Callable[[], None] = lambda: None) -> None:
        """Call ``work(thread)`` once in every thread and wait for all.

        ``on_error`` is called where one fails, to release others that wait for it.
        """
        self._call(work, self.n_threads, on_error, waits_for_all=True)

    def cooperate(
        self, work: Callable[[int], Any], on_error: Callable[[], None], n_threads: int
    ) -> None:
        """Call ``work(thread)`` here, and in so many threads in all if they are free in time.

        The threads claim tasks; a call ends when all tasks are done, whoever has done them.
        """
        self._call(work, min(n_threads, self.n_threads), on_error)

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], per_thread: int = 1
    ) -> list[Any]:
        """Results of ``function`` for every task, in the tasks' order.

        Tasks go to threads as these become free; each result depends on its task alone.
        ``per_thread`` is the number of tasks for which it is worth asking another thread.
        """
        tasks = list(tasks)
        n_threads = min(self.n_threads, len(tasks) // per_thread)
        if n_threads < 2:
            return [function(task) for task in tasks]
        results: list[Any] = [None] * len(tasks)
        numbers = iter(range(len(tasks)))  # next() on it is atomic

        def work(_: int) -> None:
            for i in numbers:
                results[i] = function(tasks[i])

        def give_up() -> None:
            for _ in numbers:
                pass

        self._call(work, n_threads, give_up, waits_for_begun=True)
        return results

    def _call(
        self,
        work: Callable[[int], Any],
        n_threads: int,
        on_error: Callable[[], None],
        *,
        waits_for_all: bool = False,
        waits_for_begun: bool = False,
    ) -> None:
        if n_threads == 1:
            work(0)
            return
        if not self._workers:
            self._start()
        errand, n_asked = _Errand(work, on_error), 0  # an interrupt may come before all are asked
        try:
            for worker in sorted(self._workers, key=lambda one: one.load)[: n_threads - 1]:
                worker.inbox.put(errand)
                n_asked += 1
            work(0)
        except BaseException:
            on_error()
            waits_for_begun = True
            raise
        finally:
            if waits_for_all:
                failures = _ends_of(n_asked, errand.ends)
                errand.end()
            else:
                errand.end()
                n_ends = len(errand.begun) if waits_for_begun else errand.ends.qsize()
                failures = _ends_of(n_ends, errand.ends)
        for failure in failures:
            if failure is not None:
                raise failure


def _ends_of(n_ends: int, outbox: SimpleQueue[BaseException | None]) -> list[BaseException | None]:
    """Wait until other threads have ended their work, also if an interrupt comes meanwhile."""
    ends: list[BaseException | None] = []
    interrupt: KeyboardInterrupt | None = None
    while len(ends) < n_ends:
        try:
            # An interrupt between get and append in Python would lose an end.
            ends.extend(islice(iter(outbox.get, outbox), n_ends - len(ends)))
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
    return ends
