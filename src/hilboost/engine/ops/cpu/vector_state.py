"""The state of the growth of one tree with vector leaves: what it reads and what it writes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.engine.ops.cpu.batch import Batch
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.nodes import NodeStore
from hilboost.engine.ops.cpu.partition import RowBuffers
from hilboost.engine.ops.cpu.vector_candidates import Candidates, ValueRanges
from hilboost.engine.ops.cpu.vector_cuts import VectorGradients
from hilboost.engine.ops.cpu.vector_levels import LevelScratch

# Columns of ``VectorSums.masses``: weight, sum of squares, total variance.
WEIGHT, SQUARES, VARIANCE = range(3)


class VectorLimits(NamedTuple):
    """Constraints on splits, and the limits of growth."""

    min_weight: float  # smallest weight of a leaf, less what sums of weights are rounded by
    tie: float  # share of the root's variance within which gains are equal
    pure: float  # total variance up to which a node counts as pure
    max_leaves: int
    max_depth: int
    n_columns: int  # so many are drawn for every node
    random_cuts: bool
    in_turn: bool  # nodes are split as they come and not by priority


class VectorSums(NamedTuple):
    """Properties of every node besides its place in the tree."""

    totals: NDArray[np.float64]  # (n_nodes, k) float64
    masses: NDArray[np.float64]  # (n_nodes, 3) float64
    values: NDArray[np.float64]  # (n_nodes,) float64: where the split cuts


def empty_sums(n_nodes: int, k: int) -> VectorSums:
    """Allocate sums for this number of nodes."""
    return VectorSums(np.empty((n_nodes, k)), np.empty((n_nodes, 3)), np.zeros(n_nodes))


class VectorScratch(NamedTuple):
    """Memory of all threads; see :class:`~hilboost.engine.ops.cpu.vector_cuts.CutScratch`."""

    starts: NDArray[np.int64]  # (n_threads, n_bins + 1) int64
    order: NDArray[np.uint32]  # (n_threads, max(m, n_bins)) uint32
    sums: NDArray[np.float64]  # (n_threads, k) float64
    levels: LevelScratch  # with an axis of threads in front


class VectorGrowth(NamedTuple):
    """All that one tree is grown from, and all that growth writes."""

    table: BinTable
    ranges: ValueRanges
    gradients: VectorGradients
    limits: VectorLimits
    nodes: NodeStore  # with an open root; ``priority`` an array of its own
    sums: VectorSums
    categories: CategorySplits
    buffers: RowBuffers  # ``rows[0]`` filled, nothing in ``ordered``
    candidates: Candidates
    scratch: VectorScratch
    batch: Batch  # before the first step
