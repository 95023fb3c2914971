"""The operations of growth on the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    N_DIVIDED,
    N_PAIRS,
    N_SUMMED,
    ONLY_SUMMED,
    SEARCH,
    SEARCHED,
    STEP,
    SUM,
)
from hilboost.engine.ops.cpu.batches import partition_nodes, run_operation
from hilboost.engine.ops.cpu.grow import grow
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.sync import ABORT, Threads, new_sync

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.vector_state import VectorGrowth

MOST_BINS = 512


@dataclass(frozen=True)
class CpuOperations:
    """Operations that as many threads of a team as are useful run together."""

    team: ThreadTeam
    n_threads: int

    def partition(
        self, growth: Growth | VectorGrowth, nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Divide the rows of each node by its split."""
        batch, n = growth.batch, len(nodes)
        batch.divided[:n], batch.state[[STEP, N_DIVIDED]] = nodes, (BEGIN_TREE, n)
        given = growth.table, growth.nodes, growth.categories, growth.buffers, batch
        if n > 0:
            self.cooperate(lambda threads: partition_nodes(threads, *given))
        return batch.n_left[:n].copy()

    def histogram(self, growth: Growth, nodes: NDArray[np.int64]) -> None:
        """Sum the rows of each node into its slot."""
        batch, n = growth.batch, len(nodes)
        batch.state[[STEP, N_SUMMED]] = BEGIN_TREE, n
        batch.summed[:n], batch.first_sum[: n + 1] = nodes, np.arange(n + 1)
        batch.pairs[:n], batch.modes[:n] = nodes[:, None], ONLY_SUMMED
        if n > 0:
            self.cooperate(lambda threads: run_operation(threads, SUM, growth))

    def search(self, growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
        """Note the best split of each node."""
        batch, n = growth.batch, len(nodes)
        batch.state[[STEP, N_PAIRS]] = BEGIN_TREE, n
        batch.first_sum[: n + 1] = 0
        batch.pairs[:n], batch.modes[:n] = nodes[:, None], SEARCHED
        growth.scratch.drawn[:n, 0] = columns
        if n > 0:
            self.cooperate(lambda threads: run_operation(threads, SEARCH, growth))

    def grow(self, growth: Growth, symmetric: bool) -> None:
        """Grow a whole tree in one compiled call, which saves what calls of Python cost."""
        summed = np.empty((self.n_threads, MOST_BINS)) if symmetric else None
        self.cooperate(lambda threads: grow(threads, growth, summed))

    def cooperate(self, work: Callable[[Threads], None]) -> None:
        """Begin tasks that other threads share if they come in time."""
        self._call(self.team.share, work)

    def together(self, step: Callable[[Threads], None]) -> None:
        """Run a step on all threads, each of which has a share of it."""
        self._call(self.team.run, step)

    def _call(self, run: Callable[..., None], work: Callable[[Threads], None]) -> None:
        sync = new_sync()

        def one(thread: int) -> None:
            if thread < self.n_threads:
                work(Threads(thread, self.n_threads, sync))

        def abort() -> None:
            sync[ABORT] = 1

        run(one, on_error=abort)
