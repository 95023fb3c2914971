"""The operations of growth on the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.engine.ops.cpu.batches import partition_nodes, search_nodes, sum_nodes
from hilboost.engine.ops.cpu.grow import Growth, grow
from hilboost.engine.ops.cpu.symmetric import grow_symmetric
from hilboost.engine.ops.cpu.sync import ABORT, SYNC_SIZE, Threads

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
        found = np.empty((len(nodes), 2), dtype=np.int64)
        self.together(lambda threads: partition_nodes(threads, nodes, growth, found))
        return found

    def histogram(self, growth: Growth, nodes: NDArray[np.int64]) -> None:
        """Sum the rows of each node into its slot."""
        self.together(lambda threads: sum_nodes(threads, nodes, growth))

    def search(self, growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
        """Note the best split of each node."""
        self.together(lambda threads: search_nodes(threads, nodes, columns, growth))

    def grow(self, growth: Growth, symmetric: bool) -> None:
        """Grow a whole tree in one compiled call, which saves what calls of Python cost."""
        if symmetric:
            summed = np.empty((self.n_threads, MOST_BINS))
            self.together(lambda threads: grow_symmetric(threads, growth, summed))
        else:
            self.together(lambda threads: grow(threads, growth))

    def together(self, step: Callable[[Threads], None]) -> None:
        """Run a step on all threads."""
        sync = np.zeros(SYNC_SIZE, dtype=np.int64)
        if self.n_threads == 1:
            step(Threads(0, 1, sync))
            return

        def work(thread: int) -> None:
            if thread < self.n_threads:
                step(Threads(thread, self.n_threads, sync))

        def abort() -> None:
            sync[ABORT] = 1

        self.team.run(work, on_error=abort)
