"""The growth of symmetric trees against exhaustive search, on one and two threads."""

import numpy as np
import pytest
from tests.engine.ops.test_grow import assert_same_tree, draw_gradients, draw_sample, draw_table
from tests.engine.ops.test_grow import fit_and_record as fit_one
from tests.reference import symmetric as twin

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.ops.cpu.nodes import BEGIN, BIN, COLUMN, DEPTH, END, LEFT, N_NODES
from hilboost.learners.tree import TreeLearner


def check(monkeypatch, parts, X, gradients, sample, n_threads=2):
    """Compare the tree with the naive one; returns the growth."""
    before, after, _ = fit_one(monkeypatch, parts, X, gradients, sample, n_threads)
    assert_same_tree(before, after, twin.grow_symmetric, min_rows=after.limits.min_rows)
    return after


@pytest.mark.parametrize("kind", ["signs", "plain", "curved"])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("missing", [False, True])
def test_trees_are_those_of_an_exhaustive_search(monkeypatch, kind, r, weights, missing):
    rng = np.random.default_rng([len(kind), r, len(weights), missing])
    n, d = int(rng.integers(30, 70)), int(rng.integers(2, 10))
    parts = TreeLearner(
        max_leaf_nodes=int(rng.choice([4, 8, 15])),
        min_samples_leaf=float(rng.choice([1, 1, 4])),
        l2_regularization=float(rng.choice([0, 1])),
        min_gain=float(rng.choice([0, 0.1])),
        max_bins=8,
        symmetric=True,
        shared=True,
    )
    X = draw_table(rng, n, d, missing)
    gradients, sample = draw_gradients(rng, n, r, kind), draw_sample(rng, n, weights, missing)
    after = check(monkeypatch, parts, X, gradients, sample, 1 + (len(weights) + missing) % 2)
    assert after.nodes.control[N_NODES] > 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 1},
        {"max_depth": 3, "max_leaf_nodes": 5},
        {"min_hessian": 5.0},
        {"min_gain": 3.0},
        {"max_features": 0.3},
        {"max_features_per_tree": 0.5, "max_features": 0.5},
        {"max_leaf_nodes": 256, "min_samples_leaf": 1},
        {"min_samples_leaf": 70},
    ],
    ids=str,
)
def test_limits_are_those_of_an_exhaustive_search(monkeypatch, parameters):
    rng = np.random.default_rng(5)
    given = {"max_leaf_nodes": 16, "min_samples_leaf": 2, "max_bins": 8} | parameters
    parts = TreeLearner(symmetric=True, **given)
    X, gradients = draw_table(rng, 100, 7, True), draw_gradients(rng, 100, 1, "curved")
    n_threads = 1 + len(parameters) % 2
    after = check(monkeypatch, parts, X, gradients, RowSample(None, None), n_threads)
    assert (after.nodes.control[N_NODES] == 1) == (parameters.get("min_samples_leaf") == 70)


def test_little_memory_and_a_channel_for_the_count(little_memory, count_channel, monkeypatch):
    """A histogram is kept for every leaf in any case."""
    rng = np.random.default_rng(0)
    parts = TreeLearner(max_leaf_nodes=8, min_samples_leaf=3, max_bins=8, symmetric=True)
    X, gradients = draw_table(rng, 80, 4, True), draw_gradients(rng, 80, 1, "curved")
    after = check(monkeypatch, parts, X, gradients, RowSample(None, None))
    assert after.sums.totals.shape[1] == 2
    assert len(after.histograms.slots) == 8


def test_all_nodes_of_a_level_have_the_same_split(monkeypatch):
    rng = np.random.default_rng(1)
    parts = TreeLearner(max_leaf_nodes=64, min_samples_leaf=1, symmetric=True)
    X = rng.integers(2, size=(20_000, 6)).astype(float)
    gradients = Gradients(X @ np.arange(1.0, 7.0)[:, None] + rng.normal(size=(20_000, 1)))
    grown = [
        fit_one(monkeypatch, parts, X, gradients, RowSample(None, None), threads)[1].nodes
        for threads in (1, 2)
    ]
    without_places = [np.delete(nodes.fields, [BEGIN, END], axis=1) for nodes in grown]
    np.testing.assert_array_equal(*without_places)
    fields = grown[0].fields[: grown[0].control[N_NODES]]
    inner = fields[fields[:, LEFT] >= 0]
    assert len(fields) == 127
    for depth in range(6):
        assert len(np.unique(inner[inner[:, DEPTH] == depth][:, [COLUMN, BIN]], axis=0)) == 1
