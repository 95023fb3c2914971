"""The operations of growth in plain NumPy, to which the operations of all devices are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import add_numbers, empty_sums
from hilboost.backends.random_bits import bits_of
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.fixed_point import Layout, Rounding, WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.nodes import (
    ARRAY,
    BEGIN,
    BIN,
    COLUMN,
    END,
    LEFT_ARRAY,
    MISSING_LEFT,
    SLOT,
    GrownTree,
)
from hilboost.engine.ops.reference.search import Sums, is_category, search, stride_of

__all__ = ["histogram", "leaves", "partition", "quantize", "search", "walk"]

in_order = True
_RANDOM_BITS = np.uint64(0xFFFF), np.uint64(0xFFFFFF)


def quantize(
    learned: WeightedGradients, layout: Layout, numbers: NDArray[np.uint32] | None, into: Sums
) -> Sums:
    """Round gradients to packed integers and return their sums."""
    packing, rounding = layout.packing, layout.rounding
    gradients, hessians, weights, rows, _, logistic = learned
    n, r = gradients.shape
    chosen = rows.astype(np.int64) if len(rows) else np.arange(n)
    weight = weights[chosen, None] if len(weights) else np.ones((len(chosen), 1))
    places = chosen if numbers is None else numbers[chosen].astype(np.int64)
    bits = _bits_of_outputs(places[:, None] * r + np.arange(r), rounding.salt)
    packed = _steps(gradients[chosen] * rounding.of_gradient, weight, bits, rounding)
    packed <<= packing.gradient_shift
    if hessians.shape[1]:
        scaled = curvature(hessians[chosen], logistic) * rounding.of_hessian
        steps = _steps(scaled, weight, bits >> np.uint64(32), rounding)
        packed += steps << packing.hessian_shift
    counts = np.rint(weight * rounding.of_count).astype(np.int64)
    packed = packed + counts if packing.count_mask else np.hstack([packed, counts])
    into[chosen if packed.shape[1] > 1 else slice(None)] = packed[:, : into.shape[1]]
    return packed.sum(axis=0)


def _bits_of_outputs(places: Sums, salt: np.uint64) -> NDArray[np.uint64]:
    """Random bits of the outputs at some places of the whole table."""
    low, _ = _RANDOM_BITS
    offset = (salt & low) * np.uint64(2**8 + 2**40)
    bits = [bits_of(salt | low, place) for place in places.ravel().tolist()]
    return np.array(bits, dtype=np.uint64).reshape(places.shape) + offset


def _steps(
    scaled: Floats, weight: Floats, bits: NDArray[np.uint64], rounding: Rounding
) -> NDArray[np.int64]:
    """Weighted numbers as integers: the nearest ones or, with a salt, a neighbor at random."""
    if rounding.salt:
        part = (bits & _RANDOM_BITS[1]).astype(np.float64) / 2.0**24
        return np.floor(weight * scaled + part).astype(np.int64)
    return np.rint(weight * (np.rint(scaled) if rounding.whole else scaled)).astype(np.int64)


def curvature(hessians: Floats, logistic: bool) -> Floats:
    """The hessians; the log loss of two classes derives them from its gradients."""
    magnitude = np.abs(hessians)
    return magnitude * np.maximum(1 - magnitude, 0.1) if logistic else hessians


def partition(growth: Growth, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide the rows of each node by its split, the left ones first, into the other array."""
    found = []
    for node in nodes:
        begin, end, array = growth.nodes.fields[node, [BEGIN, END, ARRAY]]
        goes_left = _goes_left(growth, int(node), growth.buffers.rows[array, begin:end])
        order = np.argsort(~goes_left, kind="stable")
        for moved in (growth.buffers.rows, growth.buffers.ordered):
            if moved.size:
                moved[1 - array, begin:end] = moved[array, begin:end][order]
        growth.nodes.fields[node, LEFT_ARRAY] = 1 - array
        found.append(goes_left.sum())
    return np.array(found, dtype=np.int64)


def _goes_left(growth: Growth, node: int, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the split of a node sends each of some rows to the left."""
    column, cut, missing_left = growth.nodes.fields[node, [COLUMN, BIN, MISSING_LEFT]]
    bins = _bins(growth, column)[rows]
    goes_left = bins <= cut
    if is_category(growth.rules, column) and growth.categories is not None:
        goes_left = _members(growth.categories.left_sets[node])[bins]
    return np.where(bins == growth.table.n_bins - 1, missing_left != 0, goes_left)


def histogram(growth: Growth, nodes: NDArray[np.int64]) -> None:
    """Sum the rows of each node into its slot."""
    d, n_channels = len(growth.table.n_values), growth.sums.totals.shape[1]
    for node in nodes:
        begin, end, array, slot = growth.nodes.fields[node, [BEGIN, END, ARRAY, SLOT]]
        rows = growth.buffers.rows[array, begin:end]
        if growth.packed is None:
            values = growth.buffers.ordered[array, begin:end, None].astype(np.int64)
        else:  # a last channel that is not stored counts one for each row
            values = np.ones((len(rows), n_channels), dtype=np.int64)
            values[:, : growth.packed.shape[1]] = growth.packed[rows]
        sums = np.zeros((d, stride_of(growth), n_channels), dtype=np.int64)
        for column in range(d):
            np.add.at(sums[column], _bins(growth, column)[rows], values)
        growth.histograms.slots[slot] = sums.ravel()


def leaves(growth: Growth, leaves: NDArray[np.int64], learned: WeightedGradients) -> Sums:
    """Sum the rows of each leaf exactly: gradients, and hessians or weights."""
    gradients, hessians, weights, _, whole, logistic = learned
    numbers = np.hstack([gradients, curvature(hessians, logistic)])
    is_curved, none = hessians.shape[1] > 0, np.empty(0)
    sums = empty_sums(len(leaves), numbers.shape[1] + (not is_curved))
    for leaf, node in enumerate(leaves):
        begin, end, array = growth.nodes.fields[node, [BEGIN, END, ARRAY]]
        rows = growth.buffers.rows[array, begin:end]
        weight = weights[rows] if len(weights) else none
        for k, column in enumerate(numbers[rows].T):
            add_numbers(column.copy(), weight, whole, sums[leaf, k])
        if not is_curved:
            ones = weight if len(weights) else np.ones(len(rows))
            add_numbers(ones, none, whole, sums[leaf, -1])
    return sums


def walk(growth: Growth, tree: GrownTree, leaf_of_row: NDArray[np.int32]) -> None:
    """Find the leaves of the rows that are marked with -1, level by level."""
    child, leaf_number = tree.child, tree.leaf_number
    rows = np.flatnonzero(leaf_of_row < 0)
    at = np.zeros(len(rows), dtype=np.int64)
    for node in range(len(child)):  # parents before their children
        here = at == node
        if leaf_number[node] >= 0:
            leaf_of_row[rows[here]] = leaf_number[node]
        else:
            at[here] = np.where(_goes_left(growth, node, rows[here]), child[node], child[node] + 1)


def _bins(growth: Growth, column: int) -> NDArray[np.intp]:
    """Bins of a column, (n,)."""
    word, byte = divmod(int(column), 8)
    return growth.table.flat.reshape(len(growth.table.words), -1, 8)[word, :, byte].astype(np.intp)


def _members(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """The bins whose bits are set."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
