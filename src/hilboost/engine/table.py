"""Quantile binning, the binned table to which trees are fitted, and outputs of trees for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import masses_of_groups
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.engine.ops.cpu.binned_leaves import add_forest_on_bins
from hilboost.engine.ops.cpu.binning import BinEdges, BinTable, pack_bins
from hilboost.engine.ops.cpu.traverse import FlatForest
from hilboost.engine.tree import Forest, on_used_columns, work_in_blocks
from hilboost.reductions.draws import draw_rows
from hilboost.reductions.rows import ROUNDING, are_close, ends_of_equals
from hilboost.reductions.sums import count
from hilboost.tables.blocks import BlockTable, DenseTable, as_table

_HIGHEST = np.finfo(np.float64).max


def column_edges(values: Floats, weight: Floats | None, max_bins: int) -> Floats:
    """Compute the thresholds between the bins of one column, ascending.

    If there are at most ``max_bins`` distinct values, every value has its own bin, with the
    threshold halfway between neighbors.  Otherwise thresholds lie where the weighted distribution
    passes ``1 / max_bins, 2 / max_bins, …``; a more frequent value has a bin of its own.  So do
    ``-inf`` and ``inf``, next to which thresholds are the lowest and the highest finite numbers.
    Values that differ by rounding alone count as one.
    """
    values = values.astype(np.float64)
    mass: Floats | None
    if weight is None:
        distinct, mass = _sorted_masses(values)
    else:
        present = ~np.isnan(values)
        distinct, inverse = np.unique(values[present], return_inverse=True)
        mass = masses_of_groups(inverse, weight[present], len(distinct))
    finite = np.isfinite(distinct)
    if not finite.all():
        ends = np.array([-_HIGHEST, _HIGHEST])[np.isin([-np.inf, np.inf], distinct)]
        n_bins = max(1, max_bins - len(ends))
        inner = _edges_between(distinct[finite], None if mass is None else mass[finite], n_bins)
        return np.unique(np.concatenate([ends, inner])) if len(distinct) > 1 else np.empty(0)
    return _edges_between(distinct, mass, max_bins)


def _sorted_masses(values: Floats) -> tuple[Floats, Floats | None]:
    """Sort values in place; return the distinct ones, and how often each occurs.

    NaN are left out.  The numbers are ``None`` if all of them are one.
    """
    values.sort()
    values = values[: len(values) - np.count_nonzero(np.isnan(values))]
    ends = np.flatnonzero(values[1:] != values[:-1])
    if len(ends) >= len(values) - 1:
        return values, None
    ends = np.append(ends, len(values) - 1)
    return values[ends], np.diff(ends, prepend=-1).astype(np.float64)


def _edges_between(distinct: Floats, mass: Floats | None, max_bins: int) -> Floats:
    """Compute the thresholds between finite values, ascending, by their weights, or ones."""
    if len(distinct) <= 1:
        return np.empty(0)
    cuts = _cuts(mass, len(distinct), max_bins)
    largest = max(abs(distinct[0]), abs(distinct[-1]))
    if are_close(distinct[cuts], distinct[cuts + 1], ROUNDING * largest).any():
        ends = ends_of_equals(distinct, mass)
        cuts = ends[_cuts(_mass_up_to(ends, mass), len(ends), max_bins)]
    low, high = distinct[cuts], distinct[cuts + 1]
    middle = low + (0.5 * high - 0.5 * low)
    # There is no number between adjacent floats; the threshold is then the lower one.
    return np.where((low <= middle) & (middle < high), middle, low)


def _mass_up_to(ends: NDArray[np.int64], mass: Floats | None) -> Floats:
    """Sum the weights of values up to each end, after the one before."""
    begins = np.append(0, ends[:-1] + 1)
    return (ends + 1.0 - begins) if mass is None else np.add.reduceat(mass, begins)


def _cuts(mass: Floats | None, n: int, max_bins: int) -> NDArray[np.int64]:
    """Find after which of ``n`` distinct values to cut, so that bins are as equal as possible."""
    if n <= max_bins:
        return np.arange(n - 1)
    return _even_cuts(n, max_bins) if mass is None else _quantile_cuts(mass, max_bins)


def _even_cuts(n: int, max_bins: int) -> NDArray[np.int64]:
    """:func:`_quantile_cuts` of more than ``max_bins`` values of equal weights."""
    share, part = n / max_bins, np.arange(1, max_bins)

    def part_of(value: NDArray[np.int64]) -> Floats:
        return np.floor((value + 0.5) / share)

    first = np.ceil(part * share - 0.5).astype(np.int64)  # of each part, but for rounding
    first += part_of(first) < part
    first -= part_of(first - 1) >= part
    return first - 1


def _quantile_cuts(mass: Floats, max_bins: int) -> NDArray[np.int64]:
    """Find the cuts between values of different weights.

    Values heavier than an even share get their own bins; the others share the remaining bins.
    """
    total = float(mass.sum())
    heavy = mass >= total / max_bins
    light = np.where(heavy, 0.0, mass)
    middle = np.cumsum(light) - 0.5 * light
    light_bins = max(1, max_bins - int(heavy.sum()))
    while True:
        share = max(float(light.sum()) / light_bins, np.finfo(float).tiny)
        part = np.floor(middle / share)
        cuts = np.flatnonzero((part[1:] != part[:-1]) | heavy[1:] | heavy[:-1])
        surplus = len(cuts) - (max_bins - 1)
        if surplus <= 0:
            return cuts
        if light_bins == 1:
            break
        # A heavy value between light ones splits their bin in two.
        light_bins = max(1, light_bins - surplus)
    position = np.cumsum(mass)[cuts]
    wanted = np.searchsorted(position, total * np.arange(1, max_bins) / max_bins)
    return cuts[np.unique(np.minimum(wanted, len(cuts) - 1))]


SAMPLE_ROWS = 200_000


@dataclass(frozen=True)
class BinnedTable:
    """A table of bin numbers."""

    # (ceil(d / 8), n) uint64: ``words[w, i]`` contains the bins of columns ``8 w … 8 w + 7`` of row
    # ``i``
    words: NDArray[np.uint64]
    # (d, 2**k) float64: ``thresholds[k, b]`` lies between bins ``b`` and ``b + 1`` of column ``k``;
    # ``inf`` from the last bin on
    thresholds: Floats
    # (d,) int64: number of bins of each column, not counting the one for missing values
    n_values: NDArray[np.int64]
    # number of bins of every column, including the last one for missing values; at most 256
    n_bins: int

    @property
    def bins(self) -> BinTable:
        """The part of the table that compiled loops use."""
        flat = self.words.reshape(-1).view(np.uint8)
        return BinTable(self.words, flat, self.n_values, self.n_bins)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.words.shape[1]

    @property
    def edges(self) -> BinEdges:
        """The edges of the bins."""
        n_steps = np.ceil(np.log2(self.n_values)).astype(np.int64)
        return BinEdges(self.thresholds, n_steps, self.n_bins - 1)

    def of_rows(self, X: Floats | BlockTable, team: ThreadTeam) -> BinnedTable:
        """Return the table of other rows, with the same bins."""
        rows = as_table(X)
        table = replace(self, words=rows.empty((len(self.words), len(rows)), dtypes.WORD))
        _pack(rows, table.edges, table.words, team)
        return table

    def part(self, rows: slice) -> BinnedTable:
        """Return the table of a range of rows, with the same bins."""
        return replace(self, words=np.ascontiguousarray(self.words[:, rows]))

    def followed_by(self, others: Sequence[BinnedTable]) -> BinnedTable:
        """Return the table of the rows of all, which have the same bins."""
        words = [self.words, *(other.words for other in others)]
        return replace(self, words=np.concatenate(words, axis=1))


def bin_table(
    # (n, d) float32 or float64, NaN for missing, or a table that is read in blocks
    X: Floats | BlockTable,
    # (n,) float64 or None: weights of the distribution whose quantiles are used
    weight: Floats | None,
    max_bins: int,  # maximum number of bins for non-missing values, 2 to 255
    # seed for the sample of 200,000 rows of a larger table, which depends on it and on n alone
    seed: int,
    team: ThreadTeam,
    # numbers of levels of the columns that contain category codes 0, 1, …; every code has its own
    # bin
    levels: Mapping[int, int] | None = None,
    # which rows these are, if other workers have the others; all of them find the same bins
    share: RowShare | None = None,
) -> BinnedTable:
    """Find the bins of every column from a sample of the rows, and bin all rows.

    Notes
    -----
    Cost O(s d log s + n d log(bins)) for a sample of s rows.  A sparse table is processed in dense
    blocks of eight columns, and other tables that are not an array of floats in blocks of rows.
    """
    d = X.shape[1]
    edges = _sampled_edges(X, weight, max_bins, seed, team, levels or {}, share)
    n_values = np.array([len(e) + 1 for e in edges], dtype=np.int64)
    n_bins = int(n_values.max()) + 1
    n_steps = np.ceil(np.log2(n_values)).astype(np.int64)
    thresholds = np.full((d, 2 ** int(n_steps.max())), np.inf)
    for k, cuts in enumerate(edges):
        thresholds[k, : len(cuts)] = cuts
    no_rows = np.empty((-(-d // 8), 0), dtype=dtypes.WORD)
    return BinnedTable(no_rows, thresholds, n_values, n_bins).of_rows(X, team)


def _sampled_edges(
    X: Floats | BlockTable,
    weight: Floats | None,
    max_bins: int,
    seed: int,
    team: ThreadTeam,
    levels: Mapping[int, int],
    share: RowShare | None,
) -> list[Floats]:
    """Compute the edges of all columns from a sample, whose memory is free afterwards."""
    n, d = X.shape
    rows = None
    if count(n, share) > SAMPLE_ROWS:
        key = key_of(seed, Purpose.ROWS_FOR_BINS)
        rows = draw_rows(key, n, None, SAMPLE_ROWS, team, share)
    sample_weight = weight if weight is None or rows is None else weight[rows]
    sample = as_table(X).sampled(rows, team)
    if share is not None:
        sample = DenseTable(share.exchange.gathered(sample.array()))
        if sample_weight is not None:
            sample_weight = share.exchange.gathered(sample_weight)

    def edges_of(k: int) -> Floats:
        if k in levels:
            return np.arange(0.5, levels[k] - 1)
        return column_edges(sample.column(k), sample_weight, max_bins)

    return _edges(edges_of, d, team, share)


def _edges(
    edges_of: Callable[[int], Floats], d: int, team: ThreadTeam, share: RowShare | None
) -> list[Floats]:
    """Compute the edges of all columns; each worker computes some of them."""
    if share is None:
        return team.map(edges_of, range(d))
    rank, n_workers = share.exchange.rank, share.exchange.n_workers
    own = list(range(rank, d, n_workers))
    found = team.map(edges_of, own)
    sizes = np.zeros(d, dtype=np.int64)
    sizes[own] = [len(edges) for edges in found]
    sizes = share.exchange.sum(sizes)
    values = share.exchange.gathered(np.concatenate([np.empty(0), *found]))
    # The columns of worker 0 come first.
    order = [k for first in range(n_workers) for k in range(first, d, n_workers)]
    parts = np.split(values, np.cumsum(sizes[order])[:-1])
    edges = dict(zip(order, parts, strict=True))
    return [edges[k] for k in range(d)]


def _pack(table: BlockTable, edges: BinEdges, words: NDArray[np.uint64], team: ThreadTeam) -> None:
    """Pack the bins of all rows."""

    def pack(values: Floats, begin: int, first: int) -> None:
        (m, width), memory = values.shape, np.empty(len(values))
        own, last = edges.of_columns(first, first + width), -(-(first + width) // 8)
        pack_bins(values, own, begin, words[first // 8 : last], memory, np.empty(m, dtypes.WORD))

    table.map_blocks(pack, team)


def add_trees_on_bins(
    table: BinnedTable, terms: Sequence[Term], raw: Floats, n_threads: int
) -> None:
    """Add the outputs of trees that were grown on these bins to ``raw`` (n, r)."""
    if not terms:
        return
    forest = Forest.of(terms)
    threshold = forest.trees.threshold
    below = (table.thresholds[forest.trees.column] < threshold[:, None]).sum(axis=1)
    columns, trees = on_used_columns(forest.trees)
    bins: Any = np.where(np.isfinite(threshold), below, np.inf).astype(np.float32)
    trees = trees._replace(threshold=bins)
    flat = FlatForest(trees, forest.leaf_masks, forest.flat_leaves)

    def work(rows: slice) -> None:
        add_forest_on_bins(table.bins, columns, flat, rows.start, rows.stop, raw)

    work_in_blocks(work, table.n_rows, len(terms), n_threads)
