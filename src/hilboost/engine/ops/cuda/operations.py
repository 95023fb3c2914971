"""The operations of growth on a device with memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import TOP, empty_sums
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.engine.ops.cpu.fixed_point import Layout, WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import STRIDE
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
from hilboost.engine.ops.cpu.operations import CpuOperations, counts
from hilboost.engine.ops.cuda import blocks
from hilboost.engine.ops.cuda.blocks import PART, THREADS, Kernel
from hilboost.engine.ops.cuda.histogram import CLEAR, HISTOGRAM, HistogramWork
from hilboost.engine.ops.cuda.leaves import LIMBS, LOWEST_TOP, TOPS, WALK, LeafWork, WalkWork
from hilboost.engine.ops.cuda.partition import PARTITION, PartitionWork
from hilboost.engine.ops.cuda.quantize import QUANTIZE, QuantizeWork

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.vector_state import VectorGrowth

_ROWS_PER_BLOCK = 2**13
_FEWEST_ROWS_PER_BLOCK, _BLOCKS = 2**11, 2**11
_FACTORS = np.ldexp(1.0, -31 * np.arange(LOWEST_TOP, 65))


class Device(Protocol):
    """Memory and kernels of a device."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return memory of the device."""

    def write(self, into: Any, host: NDArray[Any]) -> None:
        """Copy an array of the same shape to the device."""

    def read(self, array: Any, into: NDArray[Any]) -> None:
        """Copy an array from the device."""

    def launch(self, kernel: Kernel, n_blocks: int, work: Any) -> None:
        """Run a kernel."""


class _Memory:
    """Named arrays of a device, each of which is replaced by one of another shape."""

    def __init__(self, device: Device) -> None:
        self._device, self._arrays = device, dict[Any, Any]()
        self.source: Callable[[], Any] = lambda: None  # the gradients that have been written

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of this shape; the last one may be found again."""
        found = self._arrays.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self._arrays[name] = self._device.empty(shape, dtype)
        return found

    def written(self, name: str, host: NDArray[Any]) -> Any:
        """Copy an array of the host."""
        found = self.array(name, host.shape, host.dtype)
        self._device.write(found, host)
        return found

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]


class _Twins:
    """The memory of the device that belongs to arrays of the host, as long as these exist."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Callable[[], Any], _Memory]] = {}
        self._lock = Lock()  # several threads may grow trees

    def of(self, host: NDArray[Any], create: Callable[[], _Memory]) -> _Memory:
        """Return the memory of an array."""
        with self._lock:
            source, found = self._kept.get(id(host), (None, None))
            if source is None or source() is not host or found is None:
                self._kept = {key: one for key, one in self._kept.items() if one[0]() is not None}
                found = create()
                self._kept[id(host)] = ref(host), found
            return found


class DeviceOperations:
    """Operations on the rows of a tree, which stay on a device while it grows.

    Histograms are copied to the host, which searches them.  The order of the rows in a leaf is
    arbitrary, and the arrays of the host are not written.
    """

    in_order = False

    def __init__(self, device: Device) -> None:
        self._device, self._host = device, CpuOperations(ThreadTeam(1), 1)
        self._tables, self._trees = _Twins(), _Twins()

    def quantize(
        self,
        learned: WeightedGradients,
        layout: Layout,
        numbers: NDArray[np.uint32] | None,
        into: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Round gradients to packed integers and return their sums, (n_channels,)."""
        n = len(learned.gradients)
        m, n_channels = len(learned.rows) or n, layout.n_channels(1)
        tree = self._trees.of(into if into.base is None else into.base, self._empty)
        gradients, hessians, weights = self._learned(tree, learned, True)
        no_numbers = np.empty(0, dtype=dtypes.ROW)
        totals = np.zeros(2, dtype=np.int64)
        work = QuantizeWork(
            gradients,
            hessians,
            weights,
            tree.written("learned", learned.rows),
            tree.written("numbers", no_numbers if numbers is None else numbers),
            tree.array("rows", (2, m), dtypes.ROW),
            tree.array("ordered", (2, m if n_channels == 1 else 0), dtypes.PACKED),
            tree.array("packed", (0, 1) if n_channels == 1 else into.shape, dtypes.PACKED),
            tree.written("totals", totals),
            layout.packing.gradient_shift,
            layout.packing.hessian_shift,
            layout.packing.count_mask != 0,
            layout.rounding,
            learned.logistic,
            _ROWS_PER_BLOCK,
        )
        self._device.launch(QUANTIZE, -(-m // _ROWS_PER_BLOCK), work)
        self._device.read(work.totals, totals)
        return totals[:n_channels]

    def histogram(self, growth: Growth, nodes: NDArray[np.int64]) -> None:
        """Sum the rows of each node into its slot."""
        tree, words = self._tree(growth), self._words(growth)
        fields, slots = growth.nodes.fields, growth.histograms.slots
        n_channels, n_words = growth.sums.totals.shape[1], words.shape[0]
        n_rows = fields[nodes, END] - fields[nodes, BEGIN]
        rows_per_block = int(n_rows.sum()) * n_words // _BLOCKS
        rows_per_block = max(_FEWEST_ROWS_PER_BLOCK, -(-rows_per_block // THREADS) * THREADS)
        steps, n_blocks = _steps(fields, nodes, n_words, rows_per_block)
        sums = tree.array(f"sums {len(nodes)}", (len(nodes) * slots.shape[1],), dtypes.PACKED)
        work = HistogramWork(
            words,
            tree["rows"],
            tree["ordered"],
            tree["packed"],
            tree.written(f"steps {len(nodes)}", steps),
            sums,
            slots.shape[1],
            STRIDE if growth.packed is None else growth.table.n_bins,
            n_channels,
            rows_per_block,
        )
        self._device.launch(CLEAR, -(-sums.shape[0] // rows_per_block), work)
        self._device.launch(HISTOGRAM[n_channels - 1], n_blocks, work)
        found = np.empty((len(nodes), slots.shape[1]), dtype=dtypes.PACKED)
        self._device.read(sums, found.reshape(-1))
        slots[fields[nodes, SLOT]] = found

    def search(self, growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
        """Note the best split of each node on its columns."""
        self._host.search(growth, nodes, columns)

    def partition(
        self, growth: Growth | VectorGrowth, nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Divide the rows of each node by its split."""
        tree, fields = self._tree(growth), growth.nodes.fields
        steps, n_blocks = _steps(fields, nodes, 1, PART * THREADS)
        _write_splits(growth, nodes, steps)
        work = PartitionWork(
            self._words(growth),
            tree["rows"],
            tree["ordered"],
            tree.written(f"steps {len(nodes)}", steps),
            growth.table.n_bins - 1,
        )
        self._device.launch(PARTITION, n_blocks, work)
        self._device.read(work.steps, steps)
        fields[nodes, LEFT_ARRAY] = 1 - fields[nodes, ARRAY]
        return steps[:-1, blocks.N_LEFT].copy()

    def leaves(
        self, growth: Growth | VectorGrowth, leaves: NDArray[np.int64], learned: WeightedGradients
    ) -> NDArray[np.int64]:
        """Sum the gradients of the rows of each leaf exactly, and what their steps are divided by.

        Returns (n_leaves, 2, 5).
        """
        tree, n_leaves = self._tree(growth), len(leaves)
        gradients, hessians, weights = self._learned(tree, learned, False)
        is_counted = not (hessians.shape[0] or weights.shape[0])
        steps, n_blocks = _steps(growth.nodes.fields, leaves, 1, _ROWS_PER_BLOCK)
        tops, limbs = np.zeros(2 * n_leaves, np.uint32), np.zeros((n_leaves, 2, 4), np.int64)
        work = LeafWork(
            tree["rows"],
            tree.written("leaves", steps),
            gradients,
            hessians,
            weights,
            tree.written("factors", _FACTORS),
            tree.written("tops", tops),
            tree.written("limbs", limbs.reshape(-1)),
            1 if is_counted else 2,
            learned.whole,
            learned.logistic,
            _ROWS_PER_BLOCK,
        )
        self._device.launch(TOPS, n_blocks, work)
        self._device.launch(LIMBS, n_blocks, work)
        self._device.read(work.tops, tops)
        self._device.read(work.sums, limbs.reshape(-1))
        sums = empty_sums(n_leaves, 2)
        sums[..., :TOP] = limbs
        sums[..., TOP] += tops.reshape(-1, 2)
        if is_counted:
            sums[:, 1:] = counts(growth, leaves)
        return sums

    def walk(self, growth: Growth, tree: GrownTree, leaf_of_row: NDArray[np.int32]) -> None:
        """Find the leaves of all rows."""
        nodes, memory = np.arange(len(tree.child)), self._tree(growth)
        steps = np.zeros((len(nodes), blocks.N_FIELDS), dtype=np.int64)
        _write_splits(growth, nodes, steps)
        steps[:, blocks.CHILD], steps[:, blocks.LEAF] = tree.child, tree.leaf_number
        work = WalkWork(
            self._words(growth),
            memory.written("walked", steps),
            memory.array("leaf_of_row", leaf_of_row.shape, leaf_of_row.dtype),
            growth.table.n_bins - 1,
        )
        self._device.launch(WALK, -(-len(leaf_of_row) // (PART * THREADS)), work)
        self._device.read(work.leaf_of_row, leaf_of_row)

    def _empty(self) -> _Memory:
        return _Memory(self._device)

    def _words(self, growth: Growth | VectorGrowth) -> Any:
        """The binned table on the device, to which it is copied once."""
        words = growth.table.words

        def copied() -> _Memory:
            memory = self._empty()
            memory.written("words", words)
            return memory

        return self._tables.of(words, copied)["words"]

    def _tree(self, growth: Any) -> _Memory:
        """The memory of a tree, or a copy of its rows if these were rounded elsewhere."""
        buffers, packed = growth.buffers, growth.packed

        def copied() -> _Memory:
            memory, m = self._empty(), len(buffers.flags)
            memory.written("rows", buffers.rows[:, :m])
            memory.written("ordered", buffers.ordered[:, :m])
            memory.written("packed", np.empty((0, 1), np.int64) if packed is None else packed)
            return memory

        return self._trees.of(buffers.ordered if packed is None else packed, copied)

    def _learned(self, tree: _Memory, learned: WeightedGradients, is_new: bool) -> Any:
        """Gradients, hessians and weights on the device; these of a tree are copied once."""
        names, source = ("gradients", "hessians", "weights"), learned.gradients
        if is_new or tree.source() is not source:
            hosts = [source, source[:0] if learned.logistic else learned.hessians, learned.weights]
            for name, host in zip(names, hosts, strict=True):
                tree.written(name, host.reshape(-1))
            tree.source = ref(source)
        gradients, hessians, weights = (tree[name] for name in names)
        return gradients, gradients if learned.logistic else hessians, weights


def _steps(
    fields: NDArray[np.int64], nodes: NDArray[np.int64], n_words: int, rows_per_block: int
) -> tuple[NDArray[np.int64], int]:
    """Divide the rows of nodes among blocks, whose number is returned, too."""
    steps = np.zeros((len(nodes) + 1, blocks.N_FIELDS), dtype=np.int64)
    steps[:-1, blocks.BEGIN : blocks.SIDE + 1] = fields[nodes][:, [BEGIN, END, ARRAY]]
    n_parts = -((steps[:-1, blocks.BEGIN] - steps[:-1, blocks.END]) // rows_per_block)
    steps[1:, blocks.FIRST_BLOCK] = n_words * np.cumsum(n_parts)
    return steps, int(steps[-1, blocks.FIRST_BLOCK])


def _write_splits(
    growth: Growth | VectorGrowth, nodes: NDArray[np.int64], steps: NDArray[np.int64]
) -> None:
    """Write the splits of nodes to the first steps."""
    fields, categories, n = growth.nodes.fields[nodes], growth.categories, len(nodes)
    columns = fields[:, [COLUMN, BIN, MISSING_LEFT]]
    steps[:n, blocks.COLUMN : blocks.MISSING_LEFT + 1] = columns
    if categories is not None and len(categories.is_category):
        steps[:n, blocks.BY_LEVEL] = categories.is_category[columns[:, 0]]
        steps[:n, blocks.LEFT_SET :] = categories.left_sets[nodes].view(np.int64)
