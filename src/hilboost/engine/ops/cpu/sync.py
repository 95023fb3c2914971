"""Threads inside one compiled call: who one is, and how work is shared out.

A step of growth is divided into tasks, which threads claim one by one.  Whoever completes the last
task of a step decides what the next one is, alone, and publishes its tasks::

    thread 0    | task 0 | task 3 | last: next step | task 0 | …
    thread 1    | task 1 | task 2 |     waits       | task 1 | …
    thread 2       comes late                                | task 2 | …

Nobody waits for a thread that has claimed nothing: one that comes late, or that lost its core,
helps when it can.  Threads that find nothing to do spin for a while and then sleep, because waking
one takes longer than many a step.  One that finds that it has lost its core to another program
tells all to spin for a moment only.
"""

from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hilboost.backends.compiled import INTERPRETED, inner, tiny
from hilboost.backends.intrinsics import (
    atomic_add,
    atomic_load,
    atomic_store,
    nanoseconds,
    pause,
    sleep_while,
    wake,
)

# Entries of ``sync``, a cache line apart.  The ticket holds the number of the step, how many tasks
# it has, and how many have been claimed.
_TICKET, _DONE, _SLEEPERS, ABORT, _SPIN = 0, 8, 16, 24, 32
_SIZE = 40
_FIELD = 2**20  # of the ticket; a step has far fewer tasks, of 2**14 rows or words each
_OVER = _FIELD - 1  # in place of the number of tasks, when there are no more steps
_SPIN_LONG, _SPIN_BRIEFLY = 0 if INTERPRETED else 200_000, 0 if INTERPRETED else 10_000
"""Nanoseconds before a thread sleeps, as long as none has lost its core, and then."""
_LOST_ITS_CORE = 200_000
"""Nanoseconds between two looks of a thread that spins which tell that another program ran."""


class Threads(NamedTuple):
    """One of the threads that run a compiled function together."""

    number: int  # of this one, from 0 on
    n_threads: int
    # (_SIZE,) int64: shared by all, as :func:`new_sync` creates it; a thread that fails sets
    # ``sync[ABORT]``
    sync: NDArray[np.int64]


def new_sync() -> NDArray[np.int64]:
    """Return what threads share in one call; the first step has one task."""
    sync = np.zeros(_SIZE, dtype=np.int64)
    sync[_TICKET], sync[_SPIN] = _FIELD, _SPIN_LONG
    return sync


@tiny
def share(n, part, n_parts):
    """One part of ``range(n)``, cut into parts as equal as can be: its first number and its end."""
    return n * part // n_parts, n * (part + 1) // n_parts


@inner
def _wait_while(sync, entry, value):
    """Wait while an entry is as it was, and no thread has failed."""
    began = last_look = nanoseconds()
    while atomic_load(sync, entry) == value and atomic_load(sync, ABORT) == 0:
        now = nanoseconds()
        if now - last_look > _LOST_ITS_CORE:
            atomic_store(sync, _SPIN, _SPIN_BRIEFLY)
        if now - began < atomic_load(sync, _SPIN):
            pause()
            last_look = now
        else:
            atomic_add(sync, _SLEEPERS, 1)
            sleep_while(sync, entry, value)
            atomic_add(sync, _SLEEPERS, -1)
            last_look = nanoseconds()


@inner
def claim(threads):
    """Claim a task of the current step: its number; -1 if there are no more steps.

    threads : Threads
    """
    sync = threads.sync
    while True:
        ticket = atomic_load(sync, _TICKET)
        n_tasks = (ticket // _FIELD) % _FIELD
        if n_tasks != _OVER and ticket % _FIELD < n_tasks:
            ticket = atomic_add(sync, _TICKET, 1)
            n_tasks = (ticket // _FIELD) % _FIELD
            if n_tasks != _OVER and ticket % _FIELD < n_tasks:
                return ticket % _FIELD
        if n_tasks == _OVER or atomic_load(sync, ABORT) != 0:
            return int64(-1)
        if ticket % _FIELD >= n_tasks:
            _wait_while(sync, _TICKET, ticket)


@inner
def is_last(threads):
    """Note that a task has been completed; whether it was the last one of the step."""
    sync = threads.sync
    n_tasks = (atomic_load(sync, _TICKET) // _FIELD) % _FIELD
    return atomic_add(sync, _DONE, 1) + 1 == n_tasks


@inner
def publish(threads, n_tasks, n_helpers):
    """Begin a step; ``n_helpers`` sleeping threads are worth waking for it."""
    sync = threads.sync
    step = atomic_load(sync, _TICKET) // (_FIELD * _FIELD) + 1
    atomic_store(sync, _DONE, 0)
    atomic_store(sync, _TICKET, ((step % 2**20) * _FIELD + n_tasks) * _FIELD)
    if n_helpers > 0 and atomic_load(sync, _SLEEPERS) > 0:
        wake(sync, _TICKET, n_helpers)


@inner
def finish(threads):
    """End the last step."""
    publish(threads, int64(_OVER), threads.n_threads)
