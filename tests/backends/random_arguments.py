"""Random arguments of compiled loops."""

import numpy as np

from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.nodes import CONTROL_SIZE, N_NODE_FIELDS, NodeStore
from hilboost.engine.ops.cpu.packing import Packing
from hilboost.engine.ops.cpu.split_search import SplitRules


def draw_words(rng, n, d, n_bins):
    words = np.zeros((-(-d // 8), n), dtype=np.uint64)
    for k in range(d):
        words[k // 8] |= rng.integers(n_bins, size=n).astype(np.uint64) << np.uint64(8 * (k % 8))
    return words


def draw_rows(rng, n):
    m = int(rng.integers(1, n + 1))
    rows = np.sort(rng.choice(n, m, replace=False)).astype(np.uint32)
    begin = int(rng.integers(0, m))
    return rows, begin, int(rng.integers(begin, m + 1))


def table_of(words, d, n_bins):
    """A table of so many columns, all bins of which may be there."""
    return BinTable(words, words.reshape(-1).view(np.uint8), np.full(d, n_bins - 1), n_bins)


def draw_bin_table(rng, n, d, n_bins):
    return table_of(draw_words(rng, n, d, n_bins), d, n_bins)


def draw_packing(rng, curved=True, count_channel=False):
    """Few bits; with a channel for the count none of it beside the gradient."""
    if count_channel:
        return Packing(0, 4095, 0, 12, 0.0, 1.0, np.array([0.25, 0.125]))
    count_bits, hessian_bits = (8, 12) if curved else (8, 0)
    return Packing(
        hessian_shift=count_bits,
        hessian_mask=(1 << hessian_bits) - 1,
        count_mask=(1 << count_bits) - 1,
        gradient_shift=count_bits + hessian_bits,
        steps=np.array([0.25, 0.125 if curved else 0.0]),
        hessian_of_count=0.0 if curved else 1.0,
        count_step=1.0,
    )


def rules_of(packing, limits, n_outputs=None):
    """Rules of columns that are searched alone: what concerns all columns is empty."""
    none = np.empty(0, dtype=np.int64)
    return SplitRules(none, 0, n_outputs, packing, limits, none, np.empty(0, dtype=np.uint8))


def empty_store(n_nodes):
    """Nodes whose fields are all zero; the gains are the priority."""
    gains = np.zeros(n_nodes)
    fields = np.zeros((n_nodes, N_NODE_FIELDS), dtype=np.int64)
    seeds = np.zeros(n_nodes, dtype=np.uint64)
    return NodeStore(fields, gains, gains, np.zeros(CONTROL_SIZE, dtype=np.int64), seeds)


def draw_histogram(rng, n_bins, n_channels, packing, curved, count_channel):
    """A column whose bins are partly empty; the last one is that of missing values."""
    count = rng.integers(0, 4, size=n_bins)
    if rng.uniform() < 0.5:
        count[-1] = 0
    result = np.zeros((n_bins, n_channels), dtype=np.int64)
    n_outputs = n_channels - count_channel
    for k in range(n_outputs):
        gradient = rng.integers(-5, 6, size=n_bins) * (count > 0)
        hessian = rng.integers(0, 9, size=n_bins) * (count > 0) if curved else 0
        result[:, k] = (gradient << packing.gradient_shift) + (hessian << packing.hessian_shift)
        result[:, k] += 0 if count_channel else count
    if count_channel:
        result[:, -1] = count
    return result
