"""How the trees of a fit are grown: chosen once, from its settings and sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hilboost.engine.driver import Operations
from hilboost.engine.row_order import n_sorts_worthwhile
from hilboost.engine.settings import TreeSettings
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Tree

_ROWS_WORTH_JOINING = 2**13
"""Fits to fewer rows need no code for groups of columns, and save little time by them."""
_ROWS_OF_A_THREAD = 2**17
"""Where each of more than two threads has fewer, Python between the steps of a stage takes longer
than what a carried root saves, and several stages are one compiled call."""


@dataclass(frozen=True)
class Plan:
    """Which code grows the trees of a fit, and what saves time."""

    # of a device or a worker; None where compiled code grows whole trees
    operations: Operations | None = None
    # if a stage has so many trees, each is grown by one thread; None: never
    fewest_separate: int | None = None
    joins_columns: bool = False  # columns of few values share sums
    n_sorts: int = 0  # so many of the first trees sort the rows
    rounds: bool = False  # leaf values are rounded if there are many rows
    carries_root: bool = False  # the histogram of the root follows from the tree before
    # fits a tree on all threads; None: by histograms of its nodes, as :func:`stage.fit_tree`
    fit_tree: Callable[..., Tree] | None = None

    def separates(self, n_trees: int) -> bool:
        """Whether each tree of a stage is grown by one thread, not by all of them together."""
        return self.fewest_separate is not None and n_trees >= self.fewest_separate


def plan_for(
    settings: TreeSettings,
    table: BinnedTable,
    n_threads: int,
    on_disk: bool,
    operations: Operations | None,
) -> Plan:
    """Choose how trees are grown."""
    rounds = not settings.symmetric
    if operations is not None:
        return Plan(operations, rounds=rounds)
    few_threads = n_threads <= 2 or table.n_rows >= _ROWS_OF_A_THREAD * n_threads
    # Symmetric trees keep histograms of all leaves, for which several at once need more memory.
    separates = not settings.shared and (n_threads == 1 or not settings.symmetric)
    # Trees with vector leaves have no use for groups, and trees of a table on disk no room.
    joins_columns = not (settings.shared or on_disk) and table.n_rows >= _ROWS_WORTH_JOINING
    return Plan(
        fewest_separate=n_threads if separates else None,
        joins_columns=joins_columns,
        n_sorts=0 if on_disk else n_sorts_worthwhile(table.words),
        rounds=rounds,
        carries_root=few_threads and not (on_disk or settings.symmetric),
    )
