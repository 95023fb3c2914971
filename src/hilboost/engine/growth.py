"""Run compiled tree growth on the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.exchange import RowShare
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.ops.cpu.grow import (
    Growth,
    awaited,
    decide,
    divide,
    grow,
    sum_histograms,
)
from hilboost.engine.ops.cpu.nodes import N_LEFT, N_LEFT_HERE, N_ROWS, NODE
from hilboost.engine.ops.cpu.symmetric import grow_symmetric
from hilboost.engine.ops.cpu.sync import Threads
from hilboost.reductions.sums import count

MOST_BINS = 512


def grow_together(growth: Growth, space: TreeBuffers, team: ThreadTeam) -> None:
    """Grow one tree in a single compiled call, on as many threads of the team as are useful."""
    n_threads = space.n_threads
    if n_threads == 1:
        grow(Threads(0, 1, space.sync), growth)
        return

    def work(thread: int) -> None:
        if thread < n_threads:
            grow(Threads(thread, n_threads, space.sync), growth)

    team.run(work, on_error=space.abort)


def grow_by_levels(growth: Growth, space: TreeBuffers, team: ThreadTeam) -> None:
    """Grow one symmetric tree in a single compiled call, likewise."""
    n_threads = space.n_threads
    summed = np.empty((n_threads, MOST_BINS))

    def work(thread: int) -> None:
        if thread < n_threads:
            grow_symmetric(Threads(thread, n_threads, space.sync), growth, summed)

    if n_threads == 1:
        work(0)
    else:
        team.run(work, on_error=space.abort)


def grow_among_workers(
    growth: Growth, space: TreeBuffers, team: ThreadTeam, share: RowShare, weighted: bool
) -> None:
    """Grow one tree in steps, between which workers add up histograms.

    Counts of rows are part of the histograms, except where these count weights.
    """
    control, n_threads = growth.nodes.control, space.n_threads
    counted = not weighted and growth.rules.packing.count_step == 1.0

    def together(step: Callable[[Threads, Growth], None]) -> None:
        if n_threads == 1:
            step(Threads(0, 1, space.sync), growth)
            return

        def work(thread: int) -> None:
            if thread < n_threads:
                step(Threads(thread, n_threads, space.sync), growth)

        team.run(work, on_error=space.abort)

    growth.nodes.fields[0, N_ROWS] = count(int(growth.nodes.fields[0, N_ROWS]), share)
    while True:
        together(divide)
        if control[NODE] >= 0:
            own = int(control[N_LEFT_HERE])
            control[N_LEFT] = _rows_on_the_left(growth) if counted else count(own, share)
        together(sum_histograms)
        found = awaited(growth)
        if found:
            sums = share.exchange.sum(np.concatenate(found))
            for histogram, part in zip(found, np.split(sums, len(found)), strict=True):
                histogram[:] = part
        together(decide)
        if control[NODE] < 0:
            return


def _rows_on_the_left(growth: Growth) -> int:
    """Rows of all workers that go left in the node to be split, each of which counts one."""
    packed = growth.sums.left_totals[growth.nodes.control[NODE]]
    mask = growth.rules.packing.count_mask
    return int(packed[0]) & mask if mask else int(packed[-1])
