"""Trees that split on categories."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost.core.base_model import Term
from hilboost.core.errors import InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import Forest
from hilboost.learners.tree import TreeLearner

EXACT = {
    "level_smoothing": 0.0,
    "min_samples_level": 0.0,
    "level_l2": 0.0,
    "min_samples_leaf": 1,
    "min_hessian": 0.0,
}


def fit(learner, X, gradients, sample=None, n_threads=1):
    data = learner.prepare(X, None if sample is None else sample.weight, 0, n_threads)
    try:
        sample = sample or RowSample(None, None)
        return learner.fit(data, gradients, sample, np.random.default_rng(0))[0]
    finally:
        learner.close(data)


def draw(seed, n=600, missing=True):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 7, n), rng.normal(size=n), rng.integers(0, 90, n)]).astype(
        float
    )
    effects = rng.normal(size=90)
    y = effects[X[:, 0].astype(int)] + effects[X[:, 2].astype(int)] + 0.3 * rng.normal(size=n)
    if missing:
        X[rng.uniform(size=n) < 0.1, 0] = np.nan
    return X, y - y.mean()


LEARNER = TreeLearner(max_leaf_nodes=12, min_samples_leaf=5, categorical=((0, 7), (2, 90)))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 8), st.booleans(), st.integers(0, 2**31))
def test_no_set_of_levels_has_a_larger_gain(k, missing, seed):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(k), rng.integers(0, k, 30)]).astype(float)
    if missing:
        codes[rng.uniform(size=len(codes)) < 0.2] = np.nan
    y = rng.normal(size=len(codes))
    learner = TreeLearner(max_leaf_nodes=2, categorical=((0, k),), **EXACT)
    fitted = fit(learner, codes[:, None], Gradients(y[:, None]))
    here = np.where(np.isnan(codes), k, codes)
    levels = np.unique(here)
    parent = y.sum() ** 2 / len(y)
    best = max(
        y[left].sum() ** 2 / left.sum() + y[~left].sum() ** 2 / (~left).sum() - parent
        for size in range(1, len(levels) // 2 + 1)
        for chosen in combinations(levels, size)
        for left in [np.isin(here, chosen)]
    )
    assert fitted.term.model.gain[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_raw_values_reach_the_leaves_they_reached_in_training(curved, sampled):
    X, y = draw(0)
    rows = np.arange(0, len(X), 2, dtype=np.uint32) if sampled else None
    hessian = np.full((len(y), 1), 0.5) if curved else None
    for n_threads in (1, 2):
        fitted = fit(LEARNER, X, Gradients(y[:, None], hessian), RowSample(rows, None), n_threads)
        tree = fitted.term.model
        assert tree.by_level.any()
        np.testing.assert_array_equal(tree.leaves(X), fitted.leaves)
        raw = np.zeros((len(X), 1))
        Forest.of([fitted.term, Term.of(tree, slice(0, 1))]).add_to(raw, X, n_threads)
        np.testing.assert_array_equal(raw, 2 * tree.predict_raw(X))


def test_renaming_levels_changes_nothing():
    X, y = draw(1)
    renamed, rng = X.copy(), np.random.default_rng(5)
    for column, k in LEARNER.categorical:
        names, known = rng.permutation(k), ~np.isnan(X[:, column])
        renamed[known, column] = names[X[known, column].astype(int)]
    gradients = Gradients(y[:, None])
    before, after = fit(LEARNER, X, gradients), fit(LEARNER, renamed, gradients)
    np.testing.assert_array_equal(
        before.term.model.predict_raw(X), after.term.model.predict_raw(renamed)
    )


def test_a_weight_of_two_is_the_row_twice():
    X, y = draw(2)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = fit(LEARNER, X, Gradients(y[:, None]), RowSample(None, weight))
    repeated = fit(LEARNER, X[again], Gradients(y[again, None]))
    np.testing.assert_allclose(
        weighted.term.model.predict_raw(X), repeated.term.model.predict_raw(X), rtol=1e-9
    )


def test_levels_that_a_node_did_not_see_follow_the_heavier_side():
    codes = np.repeat([0.0, 1.0], [30, 10])
    y = np.repeat([-1.0, 3.0], [30, 10])
    learner = TreeLearner(max_leaf_nodes=2, categorical=((0, 5),), **EXACT)
    tree = fit(learner, codes[:, None], Gradients(y[:, None])).term.model
    others = np.array([[-1.0], [2.0], [4.0], [np.nan]])
    np.testing.assert_array_equal(tree.predict_raw(others)[:, 0], np.full(4, -1.0))


def test_light_levels_are_not_told_apart():
    codes = np.concatenate([np.repeat([0.0, 1.0], 50), np.arange(2, 12)])
    y = np.concatenate([np.repeat([-1.0, 1.0], 50), np.tile([-9.0, 9.0], 5)])
    learner = TreeLearner(max_leaf_nodes=12, categorical=((0, 12),), min_samples_leaf=1)
    tree = fit(learner, codes[:, None], Gradients(y[:, None])).term.model
    assert len(np.unique(tree.leaves(np.arange(2.0, 12)[:, None]))) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shared": True, "categorical": ((0, 3),)}, "vector leaves"),
        ({"categorical": ((1, 256),)}, "256 levels"),
        ({"categorical": ((1, 3),), "monotonic": (0, 1)}, "because categories have no order"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        TreeLearner(**settings)
