"""Threads inside one compiled call: who one is, how work is shared out, where all meet.

A tree is grown by a fixed team of threads that all run the same compiled function and meet at
barriers (single program, multiple data).  A meeting costs well under a microsecond, where handing
a task to a Python thread costs about forty.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import INTERPRETED, inner, tiny
from hilboost.backends.intrinsics import atomic_add, pause, sleep

_COUNT, _GENERATION, ABORT = 0, 8, 16  # a cache line apart
SYNC_SIZE = 24
_SPINS_BEFORE_SLEEP = 0 if INTERPRETED else 2000


class Threads(NamedTuple):
    """One of the threads that run a compiled function together."""

    number: int  # this one, and how many there are
    n_threads: int  # this one, and how many there are
    # (SYNC_SIZE,) int64: shared by all, zero at first; a thread that fails sets ``sync[ABORT]``
    sync: NDArray[np.int64]


@tiny
def share(n, part, n_parts):
    """One part of ``range(n)``, cut into parts as equal as can be: its first number and its end."""
    return n * part // n_parts, n * (part + 1) // n_parts


@inner
def barrier(threads):
    """Wait until all threads are here, or one has failed and set ``sync[ABORT]``.

    Returns whether all are here.  What the others write before they arrive must not be read if they
    are not: it may be of another task.

    threads : Threads
    """
    if threads.n_threads == 1:
        return True
    sync = threads.sync
    generation = atomic_add(sync, _GENERATION, 0)
    if atomic_add(sync, _COUNT, 1) + 1 == threads.n_threads:
        atomic_add(sync, _COUNT, -threads.n_threads)
        atomic_add(sync, _GENERATION, 1)
        return True
    spins = 0
    while atomic_add(sync, _GENERATION, 0) == generation and atomic_add(sync, ABORT, 0) == 0:
        spins += 1
        pause()
        if spins > _SPINS_BEFORE_SLEEP:
            sleep()
    return atomic_add(sync, ABORT, 0) == 0
