"""The histogram of the next root, from what is known of a tree.

Each row takes four bytes, for its gradient of the stage before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.fixed_point import Compact
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.histogram import OrderedRows
from hilboost.engine.ops.cpu.next_root import LeafSteps, find_unexpected, write_root
from hilboost.engine.ops.cpu.nodes import ROOT_GIVEN, SLOT, SPARE
from hilboost.engine.ops.cpu.packing import Packing

FEWEST_ROWS = 2**18
"""Weight of the rows from which on leaf values are rounded."""
_MOST_LEAVES = 256
_FEWEST_ROWS_PER_LEAF = 1024
"""With fewer, sums over the leaves take as long as the sum over the rows."""
_FOUND_ONE_IN = 4
"""Of more gradients, the sum over all rows takes less time than the sum of their differences."""
_FOUND_IN_FEW = 100
"""So many more may differ in each block, since the last one may have few rows."""
_MOST_FAILURES = 8
_MOST_STEPS = 2**31


@dataclass
class _Leaves:
    """The leaves of the last tree: the memory that holds their histograms, and what they add."""

    memory: object
    leaf_at: NDArray[np.uint8]
    slot_of_leaf: NDArray[np.int64]
    steps: NDArray[np.int32] | None = None


@dataclass
class _Former:
    """The last tree; ``leaves`` is ``None`` if gradients are expected to stay as they are."""

    packing: Packing
    leaves: _Leaves | None = None


@dataclass
class NextRoot:
    """Carries the histogram of the root from one tree of a fit to the next one.

    For each tree, call :meth:`compare` with all gradients, :meth:`carried` before it grows,
    :meth:`note_tree` after, and :meth:`note_steps` when it is known what its leaves add.
    """

    is_useful: bool = True  # whether to go on, as far as is known from the trees so far
    # whether gradients change as the leaves of the last tree say, which is so for squared error;
    # others are expected to stay as they are
    by_leaves: bool = True
    _before: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=dtypes.COMPACT))
    _kept: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=dtypes.PACKED))
    _last: _Former | None = None
    _former: _Former | None = None
    _found: list[OrderedRows | None] = field(default_factory=list)
    _n_failures: int = 0

    def suits(self, n_rows: int, max_leaves: int) -> bool:
        """Return whether the root of the tree after one of this size would take less time."""
        if not self.is_useful or n_rows < FEWEST_ROWS:
            return False
        few = max_leaves <= min(_MOST_LEAVES, n_rows // _FEWEST_ROWS_PER_LEAF)
        return few or not self.by_leaves

    def forget(self) -> None:
        """Forget the last tree: the next root is the sum over all rows."""
        self._last = self._former = None

    def expect(self, packing: Packing, n_rows: int) -> None:
        """Prepare for the gradients of a stage, which can be compared if the unit is the same."""
        former, self._last, self._former = self._last, None, None
        self._found.clear()
        if len(self._before) != n_rows:
            self._before = np.empty(n_rows, dtype=dtypes.COMPACT)
        elif former is not None and former.leaves is not None and former.leaves.steps is None:
            self.is_useful = False
        elif former is not None and former.packing.is_like(packing):
            self._former = former

    def compare(self, compact: Compact, ordered: NDArray[np.int32], begin: int, end: int) -> None:
        """Find the unexpected gradients of some rows, and keep all for the next stage."""
        if self._former is not None:
            before, leaves, steps = self._before, self._former.leaves, None
            if leaves is not None and leaves.steps is not None:
                steps = LeafSteps(leaves.leaf_at, leaves.steps)
            room = (end - begin) // _FOUND_ONE_IN + _FOUND_IN_FEW
            found = OrderedRows(np.empty(room, dtypes.ROW), np.empty(room, dtypes.PACKED))
            n_found = find_unexpected(before, steps, compact, ordered, begin, end, found)
            # Views would keep the room.
            kept = OrderedRows(found.rows[:n_found].copy(), found.gradients[:n_found].copy())
            self._found.append(kept if n_found >= 0 else None)
        self._before[begin:end] = ordered[begin:end]

    def carried(self, growth: Growth, memory: object, team: ThreadTeam) -> Growth:
        """Return the growth of a tree with what is known of its root and kept for the next one."""
        if not self.by_leaves:
            if len(self._kept) != growth.histograms.slots.shape[1]:
                self._kept = np.zeros(growth.histograms.slots.shape[1], dtype=dtypes.PACKED)
            growth = growth._replace(histograms=growth.histograms._replace(kept=self._kept))
        is_given = self.write(growth, memory, team)
        growth.nodes.control[[ROOT_GIVEN, SPARE]] = is_given, self._n_spare_rows(growth)
        return growth

    def write(self, growth: Growth, memory: object, team: ThreadTeam) -> bool:
        """Write the histogram of the root if it follows from the last tree; return whether so."""
        former, self._former = self._former, None
        if former is None:
            return False
        found = [one for one in self._found if one is not None]
        if len(found) < len(self._found):
            self._n_failures += 1
            self.is_useful = self._n_failures < _MOST_FAILURES
            return False
        self._n_failures = 0
        steps = None
        if former.leaves is not None:
            if former.leaves.memory is not memory:
                return False
            assert former.leaves.steps is not None  # by expect
            steps = np.column_stack([former.leaves.slot_of_leaf, former.leaves.steps])
            steps = steps[np.argsort(steps[:, 0])].astype(np.int64)
        unexpected = OrderedRows(
            np.concatenate([one.rows for one in found]),
            np.concatenate([one.gradients for one in found]),
        )
        table, histograms = growth.table, growth.histograms
        n_parts = len(histograms.private)

        def write_part(part: int) -> None:
            write_root(part, n_parts, table, steps, former.packing, unexpected, histograms)

        team.map(write_part, range(n_parts))
        return True

    def note_tree(
        self, growth: Growth, leaves: NDArray[np.int64], leaf_at: NDArray[np.uint8], memory: object
    ) -> None:
        """Note a tree that has been grown, if all leaves have histograms."""
        slots, packing = growth.nodes.fields[leaves, SLOT], growth.rules.packing
        if not self.by_leaves:
            self._last = _Former(packing)
        elif slots.min() >= 0:
            self._last = _Former(packing, _Leaves(memory, leaf_at, slots))
        else:
            self.is_useful = False

    def note_steps(self, steps: Floats) -> None:
        """Note by how many steps of the gradients the leaves (n_leaves,) change them."""
        last = self._last
        if last is not None and last.leaves is not None and np.abs(steps).max() < _MOST_STEPS:
            last.leaves.steps = steps.astype(np.int32)

    def _n_spare_rows(self, growth: Growth) -> int:
        """Return how many rows may be summed so that all leaves have histograms in the end.

        The smaller ones of two leaves have at most half of all rows; the next root would sum all.
        """
        has_slots = len(growth.histograms.slots) >= growth.limits.max_leaves
        return len(growth.buffers.flags) // 2 if has_slots and self.by_leaves else 0
