"""Outputs of trees for the rows of a binned table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.binned_forest import add_forest_on_bins
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.traverse import FlatForest
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Forest

_BLOCK_ROWS = 64 * BLOCK


def add_trees_on_bins(
    table: BinnedTable, terms: Sequence[Term], raw: Floats, n_threads: int
) -> None:
    """Add the outputs of trees that were grown on these bins to ``raw`` (n, r)."""
    if not terms:
        return
    forest = Forest.of(terms)
    cuts = table.thresholds[forest.trees.column]
    below = (cuts < forest.trees.threshold[:, None]).sum(axis=1)  # ignored at leaves
    trees: Any = forest.trees._replace(threshold=below.astype(np.uint8))
    flat = FlatForest(trees, forest.leaf_masks, forest.flat_leaves)
    n, last_bin = table.n_rows, table.n_bins - 1

    def work(begin: int) -> None:
        end = min(begin + _BLOCK_ROWS, n)
        add_forest_on_bins(table.words, last_bin, flat, begin, end, raw)

    with ThreadTeam(min(n_threads, 1 + n // _BLOCK_ROWS)) as team:
        team.map(work, range(0, n, _BLOCK_ROWS))
