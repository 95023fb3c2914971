"""Naive twin of :mod:`hilboost.engine.ops.cpu.separate_trees`: one tree after the other."""

import numpy as np
from tests.reference.binned_leaves import binned_leaves
from tests.reference.fixed_point import absolute_sums, factor_of, pack_gradients, packed_sums
from tests.reference.leaves import mark_leaves, newton_leaves
from tests.reference.nodes import open_root, write_tree

from hilboost.backends.exact_sums import empty_sums, rounded
from hilboost.engine.ops.cpu.batch import BEGIN_TREE, STEP
from hilboost.engine.ops.cpu.binned_leaves import BinnedTree
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.grow import WHOLE_TREE, grow
from hilboost.engine.ops.cpu.leaves import LeafGradients, RowsOfLeaves
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES
from hilboost.engine.ops.cpu.stage_series import ONE_STAGE
from hilboost.engine.ops.cpu.sync import Threads, new_sync


def grow_separate_trees(team, series, stage, memory, grown, leaf_of_row):
    """One stage; rounds to the nearest integers: not with salts, nor values of leaves."""
    assert series is ONE_STAGE
    assert np.isinf(stage.fewest_rounded)
    alone, growth, _, scratch, walk, summed = memory
    if team.number > 0:
        return
    learned, curved = stage.learned, stage.learned.hessians.shape[2] > 0
    for tree in range(len(grown.sizes)):
        gradients, hessians = learned.gradients[tree], learned.hessians[tree]
        weighted = WeightedGradients(
            gradients, hessians, stage.weights, stage.rows, learned.logistic
        )
        sums = empty_sums(3)
        absolute_sums(weighted, 0, len(growth.buffers.flags), learned.whole, None, sums)
        of_gradient = factor_of(rounded(sums)[0], stage.layout.gradient_room)
        of_hessian = factor_of(rounded(sums)[1], stage.layout.hessian_room) if curved else 1.0
        rounding = stage.layout.rounding._replace(of_gradient=of_gradient, of_hessian=of_hessian)
        packing = growth.rules.packing._replace(
            gradient_step=1 / of_gradient, hessian_step=1 / of_hessian if curved else 0.0
        )
        m = len(growth.buffers.flags)
        rows, ordered = growth.buffers.rows[0, :m], growth.buffers.ordered[0, :m]
        rows[:] = stage.rows if len(stage.rows) else np.arange(len(rows))
        pack_gradients(weighted, packing, rounding, 0, len(rows), growth.packed, ordered)
        packed_sums(growth.packed, ordered, rows, growth.sums.totals[0])
        open_root(growth.nodes, len(rows), stage.draws.seeds[tree])
        if growth.constraints is not None:
            growth.constraints.allowed[:] = stage.draws.allowed[tree]
        growth.scratch.permitted[:] = growth.scratch.drawn[:] = stage.draws.allowed[tree]
        own = growth._replace(rules=growth.rules._replace(packing=packing))
        growth.batch.state[STEP], alone = BEGIN_TREE, Threads(0, 1, new_sync())
        grow(alone, WHOLE_TREE, own, summed)

        fields, size = growth.nodes.fields, int(growth.nodes.control[N_NODES])
        grown.sizes[tree] = size
        thresholds = stage.thresholds[fields[:size, COLUMN], fields[:size, BIN]]
        here = type(grown.trees)(*(array[tree] for array in grown.trees))
        is_category = growth.rules.is_category
        given = fields, size, growth.nodes.gains, thresholds, is_category
        grown.depths[tree] = write_tree(*given, here)
        leaves = here.leaves[: (size + 1) // 2]
        leaf_of_row[tree] = -1
        of_leaves = RowsOfLeaves(fields, leaves, growth.buffers.rows)
        mark_leaves(0, 1, of_leaves, stage.offsets, leaf_of_row[tree], None)
        exact = LeafGradients(
            gradients,
            hessians,
            stage.column_weights,
            stage.ones,
            learned.whole,
            stage.l2,
            learned.logistic,
        )
        values = np.empty((len(leaves), 1))
        newton_leaves(0, 1, of_leaves, exact, None, None, values)
        if growth.constraints is not None and growth.constraints.bounds.shape[1]:
            values = np.clip(values, *growth.constraints.bounds[leaves].swapaxes(0, 1))
        grown.values[tree, : len(leaves)] = values
        if growth.categories is not None:
            grown.left_sets[tree, :size] = growth.categories.left_sets[:size]
        binned = BinnedTree(fields, here.leaf_number, None, None)
        categories = CategorySplits(is_category, grown.left_sets[tree])
        found = leaf_of_row[tree]
        binned_leaves(growth.table, binned, categories, None, 0, len(found), found)
