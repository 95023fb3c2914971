"""Shapley values of trees against the definition."""

from functools import partial

import numpy as np
import pytest
from tests.reference import shapley as twin
from tests.twins import compared

from hilboost import BoostingRegressor
from hilboost.engine.ops.cpu import shapley
from hilboost.engine.tree import flat_trees
from hilboost.export.shapley import _factors, _gauss_rules, _leaf_values, _paths

SETTINGS = {"n_estimators": 2, "early_stopping": False, "min_samples_leaf": 1, "random_state": 0}


def forest(seed, n_outputs=1):
    """Trees with missing values, categories, and repeated columns on a path."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 4] = rng.integers(5, size=60)
    y = np.column_stack([np.nansum(X, axis=1), np.sin(3 * X[:, 4])])[:, :n_outputs]
    model = BoostingRegressor(
        max_leaf_nodes=int(rng.integers(2, 12)),
        categorical_features=[4] if n_outputs == 1 else None,
        target_encoding=False,
        multi_output="separate" if n_outputs == 1 else "shared",
        **SETTINGS,
    ).fit(X, y if n_outputs > 1 else y[:, 0])
    terms = [term for stage in model.model_.stages for term in stage.terms]
    return rng, X[rng.permutation(60)[:12]], terms, flat_trees([term.model for term in terms])


def both(call):
    return [call(module) for module in (shapley, twin)]


@pytest.mark.parametrize("seed", range(4))
def test_paths(seed):
    _, _, terms, trees = forest(seed)
    players = np.array([0, 1, 1, 2, 3], dtype=np.int32)
    for tree in range(len(terms)):
        for module, keep in compared(shapley, twin):
            paths = _paths(trees, tree, players)
            for array in paths:
                array.fill(0)
            size = int(trees.roots[tree + 1] - trees.roots[tree])
            module.leaf_paths(trees, tree, players, np.empty(size, dtype=np.int64), paths)
            keep(*paths)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("players", [[0, 1, 2, 3, 4], [0, 1, 1, 2, 0]])
def test_values(seed, players):
    rng, X, terms, trees = forest(seed, n_outputs=1 + seed % 2)
    background = X[rng.integers(len(X), size=6)]
    models = [term.model for term in terms]
    counts = np.concatenate([tree.node_counts(tree.leaves(background)) for tree in models])
    rules = _gauss_rules()
    for tree, term in enumerate(terms):
        leaf_values = _leaf_values(term)
        paths = _paths(trees, tree, np.array(players, dtype=np.int32))
        game = shapley.TreeGame(trees, tree, paths, leaf_values, 1)

        def values(module, game=game, others=background):
            found = np.zeros((5, 5, 3))
            module.add_values(X[:5], others, counts, game, _factors(), rules, found)
            return found

        def pairs(module, game=game, others=background):
            found = np.zeros((3, 5, 5, 3))
            module.add_interactions(X[:3], others, counts, game, rules, found)
            return found

        calls = [values, pairs]
        calls += [partial(call, others=background[:0]) for call in calls]
        for call in calls:
            found, expected = both(call)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["interventional", "path_dependent"])
def test_paths_of_many_columns(method):
    """More columns than those whose patterns are kept."""
    rng = np.random.default_rng(0)
    group = rng.integers(15, size=400)
    X = (group[:, None] == np.arange(14)).astype(float)  # one split for each group
    model = BoostingRegressor(max_leaf_nodes=60, **SETTINGS).fit(X, 3.0**group)
    trees = flat_trees([term.model for stage in model.model_.stages for term in stage.terms])
    longest = np.diff(_paths(trees, 0, np.arange(14, dtype=np.int32)).first_slot).max()
    assert longest > shapley._TABLE_BITS
    found = model.shap_values(X[:30], X[30:90], method=method)
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict_raw(X[:30])[:, 0], rtol=1e-10)
