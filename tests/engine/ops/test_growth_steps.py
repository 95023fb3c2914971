"""The steps of a tree's growth against their naive twins."""

import numpy as np
import pytest
from tests.backends.random_arguments import draw_histogram, draw_packing, empty_store, rules_of
from tests.reference import nodes as nodes_twin
from tests.reference import split_constraints as constraints_twin
from tests.seeds import seeded
from tests.twins import compared

from hilboost.engine.ops.cpu import nodes, split_constraints
from hilboost.engine.ops.cpu.column_splits import SplitLimits
from hilboost.engine.ops.cpu.criterion import criterion_of

SEEDS = range(6)


@seeded(SEEDS)
@pytest.mark.parametrize("n_draw", [1, 3, 10, 99])
def test_draw_columns(seed, n_draw):
    rng = np.random.default_rng(seed)
    allowed = (rng.uniform(size=20) < 0.7).astype(np.uint8)
    for module, keep in compared(nodes, nodes_twin):
        drawn = np.full(20, 9, dtype=np.uint8)
        module.draw_columns(allowed, n_draw, np.uint64(seed * 10**15), drawn)
        keep(drawn)
    assert drawn.sum() == min(n_draw, allowed.sum())
    assert (drawn <= allowed).all()


@seeded(SEEDS)
@pytest.mark.parametrize("in_turn", [False, True])
def test_choose_node(seed, in_turn):
    rng = np.random.default_rng(seed)
    store = empty_store(9)
    store.fields[:, nodes.LEFT] = rng.choice([-1, 3], 9)
    store.priority[:] = rng.choice([-np.inf, 1.0, 2.0], 9)
    for n_nodes in (1, 5, 9):
        for last in (-1, 0, n_nodes - 1):
            store.control[[nodes.N_NODES, nodes.NODE]] = n_nodes, last
            for max_leaves in (3, 5, 99):
                arguments = store, max_leaves, in_turn
                assert nodes.choose_node(*arguments) == nodes_twin.choose_node(*arguments)


@seeded(SEEDS)
def test_open_root(seed):
    for module, keep in compared(nodes, nodes_twin):
        rng = np.random.default_rng(seed)
        store = empty_store(7)
        store.fields[:] = rng.integers(9, size=store.fields.shape)
        store.gains[:] = rng.normal(size=7)
        module.open_root(store, 50, seed + 2**61)
        keep(*store)


@seeded(SEEDS)
def test_open_children(seed):
    for module, keep in compared(nodes, nodes_twin):
        rng = np.random.default_rng(seed)
        store = empty_store(7)
        store.fields[:] = rng.integers(9, size=store.fields.shape)
        store.gains[:] = rng.normal(size=7)
        store.fields[1, [nodes.BEGIN, nodes.END]] = 5, 9
        store.fields[1, [nodes.ARRAY, nodes.LEFT_ARRAY]] = seed % 2, seed // 2 % 2
        store.control[nodes.N_NODES] = 3
        store.seeds[:] = rng.integers(2**63, size=7, dtype=np.uint64)
        module.open_children(1, 2, 4, store)
        keep(*store)


@seeded(SEEDS)
@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_bound_children(seed, direction):
    for module, keep in compared(split_constraints, constraints_twin, rtol=1e-14):
        rng = np.random.default_rng(seed)
        packing = draw_packing(rng)
        totals = draw_histogram(rng, 3, 2, packing, True, False)
        store = empty_store(3)
        store.fields[0, [nodes.LEFT, nodes.RIGHT]] = 1, 2
        bounds = np.full((3, 2, 2), np.nan)
        bounds[0] = [[-np.inf, -0.5], [np.inf, 0.5]]
        rules = rules_of(packing, SplitLimits(criterion_of(1.0), 0.0, 0.0, 0.0))
        module.bound_children(0, direction, store, totals, rules, bounds)
        keep(bounds)


@seeded(SEEDS)
def test_permit_columns(seed):
    for module, keep in compared(split_constraints, constraints_twin):
        rng = np.random.default_rng(seed)
        groups = [rng.choice(8, rng.integers(1, 6), replace=False) for _ in range(3)]
        start = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
        used = np.zeros((3, 8), dtype=np.uint8)
        used[0, groups[0][1:2]] = 1
        store = empty_store(3)
        store.fields[0, [nodes.COLUMN, nodes.LEFT, nodes.RIGHT]] = groups[0][0], 1, 2
        allowed, permitted = (rng.uniform(size=(2, 8)) < 0.8).astype(np.uint8)
        given = allowed, np.empty((3, 0, 0)), start, np.concatenate(groups), used
        module.permit_columns(0, store, split_constraints.SplitConstraints(*given), permitted)
        keep(used, permitted)
