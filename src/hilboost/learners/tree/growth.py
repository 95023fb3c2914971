"""Run compiled tree growth on the threads of a fit."""

from __future__ import annotations

from hilboost.backends.sync import Threads
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.grow import Growth, grow
from hilboost.learners.tree.buffers import TreeBuffers


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
