"""Outputs of trees for the rows of a binned table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.binned_forest import add_forest_on_bins
from hilboost.engine.ops.cpu.traverse import FlatForest
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Forest, work_in_blocks


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

    def work(rows: slice) -> None:
        add_forest_on_bins(table.words, table.n_bins - 1, flat, rows.start, rows.stop, raw)

    work_in_blocks(work, table.n_rows, len(terms), n_threads)
