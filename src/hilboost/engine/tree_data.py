"""The data of a fit of trees: binned rows, threads, and what successive trees share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.row_sample import RowSample
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.driver import Operations
from hilboost.engine.next_root import NextRoot
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.joint_columns import NO_GROUPS, JointColumns
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.plan import Plan, plan_for
from hilboost.engine.row_order import RowOrder
from hilboost.engine.settings import TreeSettings
from hilboost.engine.table import BinnedTable, bin_table
from hilboost.tables.blocks import BlockTable, as_table

_BLOCK_ROWS = 2**14
_STEP = 2**16 // 32


@dataclass
class ColumnGroups:
    """Columns of few values that share sums, found when the first tree uses them."""

    table: BinnedTable
    team: ThreadTeam

    @cached_property
    def joint(self) -> JointColumns:
        """The groups; none if they save too little."""
        table = self.table
        return joint_columns(table.words, table.n_values, table.n_bins, self.team)


class ColumnValues(NamedTuple):
    """The values that are in the bins."""

    X: Floats  # (n, d)
    ranges: ValueRanges


@dataclass
class TreeData:
    """A binned table, the threads of a fit, and the memory reused for successive trees.

    ``share`` says which rows of the whole table these are, if other workers have the others.
    ``n_sorts`` says by how many of the next trees the rows are to be sorted, ``order`` is that of
    the rows of a sorted table.  ``seed`` is that of the fit.  ``values`` are needed for vector
    trees alone.
    """

    table: BinnedTable
    team: ThreadTeam
    buffers: dict[tuple[int, ...], list[TreeBuffers]]
    share: RowShare | None = None
    plan: Plan = field(default_factory=Plan)
    groups: ColumnGroups | None = None
    n_sorts: int = 0
    order: RowOrder | None = None
    next_root: NextRoot | None = None
    seed: int = 0
    values: ColumnValues | None = None

    @property
    def joint(self) -> JointColumns:
        """Groups of columns that share sums."""
        return NO_GROUPS if self.groups is None else self.groups.joint

    def without_memory(self) -> TreeData:
        """Return the same data without what a tree leaves to the next one of its fit."""
        plan = replace(self.plan, rounds=False)
        return replace(self, plan=plan, n_sorts=0, next_root=None)

    def on_threads(self, team: ThreadTeam) -> TreeData:
        """Return the same data for trees that other threads grow, beside this fit."""
        separates = self.plan.fewest_separate is not None
        plan = replace(self.plan, fewest_separate=team.n_threads if separates else None)
        next_root = None if self.next_root is None else NextRoot()
        return replace(self, team=team, plan=plan, next_root=next_root)

    def divided(self, ranges: Sequence[slice]) -> list[TreeData]:
        """Copy the bins of each range, so that they are contiguous; threads are shared."""
        apart = replace(self.without_memory(), groups=None)
        return [replace(apart, table=self.table.part(rows)) for rows in ranges]

    def joined(self, others: Sequence[TreeData]) -> TreeData:
        """Put the bins of several parts together."""
        return replace(self, table=self.table.followed_by([other.table for other in others]))

    def of_rows(self, X: Floats | BlockTable) -> TreeData:
        """Bin other rows by the same thresholds."""
        return TreeData(self.table.of_rows(X, self.team), self.team, {})

    def close(self) -> None:
        """Stop the threads."""
        self.team.__exit__()

    def salt(self, output: int, stage: int) -> np.uint64:
        """Return the key by which an output's gradients are rounded at random in a stage.

        The random number of a row grows from stage to stage by a 32nd, modulo one: few integers
        change, and their errors cancel over the stages.
        """
        key = key_of(self.seed, Purpose.ROUNDING, member=output) | np.uint64(1 << 16)
        return key & ~np.uint64(0xFFFF) | np.uint64(stage * _STEP & 0xFFFF)

    @property
    def processor(self) -> CpuOperations:
        """Operations on the threads of the fit."""
        return CpuOperations(self.team, self.team.n_threads)

    @property
    def operations(self) -> Operations:
        """Operations of the device on which trees grow."""
        return self.plan.operations or self.processor

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole table."""
        return self.table.n_rows if self.share is None else self.share.n_rows

    @property
    def _words(self) -> list[NDArray[np.uint64]]:
        """Arrays that compiled code reads for each row, (n,) each."""
        # Groups that are found later are in the order of the table.
        joint = NO_GROUPS if self.groups is None else vars(self.groups).get("joint", NO_GROUPS)
        return [*self.table.words, *joint.words]

    def sorts(self, sample: RowSample, n_outputs: int) -> bool:
        """Whether such stages have the rows sorted, or sort them: one tree of all rows each."""
        may_be_sorted = self.order is not None or self.n_sorts > 0
        return may_be_sorted and n_outputs == 1 and sample.rows is None

    def sort_rows(self, leaf_of_row: NDArray[np.int32], ranks: NDArray[np.intp]) -> None:
        """Sort the rows by the leaves (n,) of a tree, whose ``ranks`` (n_leaves,) are given."""
        if self.n_sorts == 0:
            return
        self.n_sorts -= 1
        if self.order is None:
            self.order = RowOrder.as_given(self.table.n_rows, self.team)
        self.order.sort(leaf_of_row, ranks, self._words)
        self.forget_tree()

    def bring_rows_back(self) -> None:
        """Undo the sorting of the rows."""
        if self.order is not None:
            self.order.undo(self._words)
            self.order = None
            self.forget_tree()

    def forget_tree(self) -> None:
        """Take the sums of the next root from all rows."""
        if self.next_root is not None:
            self.next_root.forget()


def prepare_trees(
    settings: TreeSettings,
    X: Floats | BlockTable,
    weight: Floats | None,
    seed: int,
    n_threads: int,
    share: RowShare | None = None,
    operations: Operations | None = None,
) -> TreeData:
    """Bin a table, or one worker's share of it, and choose what saves time by its size.

    A device has its own ``operations``: by default, the GPU that the settings name.
    """
    if operations is None and settings.device is not None:
        from hilboost.engine.ops.cuda import operations_on

        operations = operations_on(settings.device)
    team = ThreadTeam(n_threads)
    levels = dict(settings.categorical)
    table = bin_table(X, weight, settings.max_bins, seed, team, levels, share)
    if share is not None and operations is None:
        operations = CpuOperations(team, n_threads)
    plan = plan_for(settings, table, n_threads, as_table(X).is_on_disk, operations)
    return TreeData(
        table,
        team,
        {},
        share,
        plan,
        groups=ColumnGroups(table, team) if plan.joins_columns else None,
        n_sorts=plan.n_sorts,
        next_root=NextRoot() if plan.carries_root else None,
        seed=seed,
    )


def joint_columns(
    words: NDArray[np.uint64], n_values: NDArray[np.int64], n_bins: int, team: ThreadTeam
) -> JointColumns:
    """Group the columns of a binned table, if this halves the additions at least."""
    d = len(n_values)
    if 2 * len(_groups(n_values)) > d:
        return NO_GROUPS
    sizes = n_values + _has_missing(words, n_bins - 1, team)[:d]
    groups = _groups(sizes)
    if 2 * len(groups) > d:
        return NO_GROUPS
    strides = [np.cumprod([1, *sizes[group[:-1]]]) for group in groups]
    columns = np.concatenate(groups)
    group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.argsort(columns)
    return JointColumns(
        _codes(words, n_values, n_bins - 1, groups, strides, team),
        np.array([np.prod(sizes[group]) for group in groups], dtype=np.int64),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        columns.astype(np.int64),
        np.concatenate(strides).astype(np.int64),
        sizes[columns].astype(np.int64),
        group_of[order].astype(np.int64),
        order.astype(np.int64),
        NO_GROUPS.sums,
    )


def _has_missing(
    words: NDArray[np.uint64], missing_bin: int, team: ThreadTeam
) -> NDArray[np.bool_]:
    """Find the bytes of the words that contain the bin of missing values in a row, (8 n_words,)."""

    def of_block(begin: int) -> NDArray[np.bool_]:
        block = words[:, begin : begin + _BLOCK_ROWS]
        return np.concatenate([(_bytes(word) == missing_bin).any(axis=0) for word in block])

    return np.any(team.map(of_block, range(0, words.shape[1], _BLOCK_ROWS)), axis=0)


def _codes(
    words: NDArray[np.uint64],
    n_values: NDArray[np.int64],
    missing_bin: int,
    groups: list[NDArray[np.intp]],
    strides: list[NDArray[np.int64]],
    team: ThreadTeam,
) -> NDArray[np.uint64]:
    """Codes of the groups in words of eight, (ceil(n_groups / 8), n), block by block of rows."""
    codes = np.zeros((-(-len(groups) // 8), words.shape[1]), dtype=dtypes.WORD)

    def write(begin: int) -> None:
        rows = slice(begin, begin + _BLOCK_ROWS)
        for number, group in enumerate(groups):
            written = _bytes(codes[number // 8, rows])[:, number % 8]
            code = np.zeros(len(written), dtype=np.uint16)
            for k, stride in zip(group.tolist(), strides[number].tolist(), strict=True):
                bins = _bytes(words[k // 8, rows])[:, k % 8].astype(np.uint16)
                bins[bins == missing_bin] = n_values[k]
                code += bins * np.uint16(stride)
            written[:] = code

    team.map(write, range(0, words.shape[1], _BLOCK_ROWS))
    return codes


def _bytes(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Bytes of the words of some rows, (m, 8), lowest first; in the same memory."""
    return words.view(np.uint8).reshape(-1, 8)


def _groups(sizes: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Divide the columns so that the product of the sizes of a group is at most 256."""
    groups: list[list[int]] = []
    products: list[int] = []
    for k in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[k])
        found = next((g for g, p in enumerate(products) if p * size <= STRIDE), len(groups))
        if found == len(groups):
            groups.append([])
            products.append(1)
        groups[found].append(k)
        products[found] *= size
    return [np.array(group, dtype=np.intp) for group in groups]


if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.vector_candidates import ValueRanges
