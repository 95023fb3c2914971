"""Separate trees grown together are the trees of one output at a time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import TreeLearner

N, D, R = 300, 6, 3
PARAMETERS = [
    {},
    {"l2_regularization": 2.0, "max_depth": 3},
    {"max_features": 0.5, "max_features_per_tree": 0.7},
    {"monotonic": (1, -1, 0, 0, 0, 0)},
    {"groups": ((0, 1, 2), (2, 3, 4, 5))},
    {"categorical": ((5, 9),)},
    {"symmetric": True, "max_features": 0.5, "max_features_per_tree": 0.7},
]
FIELDS = ("column", "threshold", "missing_right", "child", "gain", "leaf_number", "leaf_values")


def draw(seed, curved, weights, sampled):
    """Inputs, gradients of three outputs, and the rows to learn from."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, D)), 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 5] = rng.integers(9, size=N)
    negative = np.asfortranarray(rng.normal(size=(N, R)) + np.nan_to_num(X[:, :1]))
    hessian = rng.uniform(0, 1, size=(N, R)) if curved is True else None
    logistic = Structure(logistic=curved == "logistic")
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=N).astype(float),
        "fractions": rng.uniform(0.1, 1, size=N),
    }[weights]
    rows = np.sort(rng.choice(N, 200, replace=False)).astype(np.uint32) if sampled else None
    return X, Gradients(np.tanh(negative), hessian, logistic), RowSample(rows, weight)


def fitted(learner, X, gradients, sample, n_threads=1, seed=5):
    data = learner.prepare(X, sample.weight, 0, n_threads)
    try:
        return learner.fit(data, gradients, sample, np.random.default_rng(seed))
    finally:
        learner.close(data)


def one_by_one(learner, X, gradients, sample, seed=5):
    """Each output by the path of a single one."""
    data = learner.prepare(X, sample.weight, 0, 1)
    data.plan = replace(data.plan, fewest_separate=None)
    return learner.fit(data, gradients, sample, np.random.default_rng(seed))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.term.columns == other.term.columns
        assert one.term.model.depth == other.term.model.depth
        np.testing.assert_array_equal(one.leaves, other.leaves)
        for name in (*FIELDS, "by_level", "left_sets"):
            values = getattr(one.term.model, name), getattr(other.term.model, name)
            np.testing.assert_array_equal(*values, err_msg=name)
            assert values[0].dtype == values[1].dtype
        assert (one.order is None) == (other.order is None)
        if one.order is not None:
            np.testing.assert_array_equal(one.order.directions, other.order.directions)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@given(
    seed=st.integers(0, 2**20),
    curved=st.sampled_from([False, True, "logistic"]),
    weights=st.sampled_from(["none", "whole", "fractions"]),
    sampled=st.booleans(),
    n_threads=st.integers(1, 3),
)
def test_each_tree_is_that_of_its_output_alone(
    parameters, seed, curved, weights, sampled, n_threads
):
    learner = TreeLearner(max_leaf_nodes=8, min_samples_leaf=3, **parameters)
    given_data = draw(seed, curved, weights, sampled)
    assert_same(fitted(learner, *given_data, n_threads), one_by_one(learner, *given_data))


@pytest.mark.parametrize("symmetric", [False, True])
def test_memory_of_earlier_trees_serves_samples_of_other_sizes(symmetric):
    learner = TreeLearner(
        max_leaf_nodes=8, min_samples_leaf=3, max_features=0.5, symmetric=symmetric
    )
    X, gradients, _ = draw(3, True, "none", False)
    rng, data = np.random.default_rng(0), learner.prepare(X, None, 0, 1)
    for size in (200, 190, 260, 200, N):
        rows = np.sort(rng.choice(N, size, replace=False)).astype(np.uint32)
        given_data = X, gradients, RowSample(rows, None)
        found = learner.fit(data, *given_data[1:], np.random.default_rng(5))
        assert_same(found, fitted(learner, *given_data))


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("curved", [False, True])
def test_the_leaves_of_a_tree_stay_while_another_grows(sampled, curved):
    learner = TreeLearner(max_leaf_nodes=8, min_samples_leaf=3)
    X, gradients, sample = draw(3, curved, "none", sampled)
    hessian = gradients.hessian[:, :1] if curved else None
    one = Gradients(gradients.negative_gradient[:, :1], hessian)
    two = Gradients(gradients.negative_gradient[:, 1:2], hessian)
    expected = [fitted(learner, X, each, sample) for each in (one, two)]
    data = learner.prepare(X, None, 0, 1)
    rng = np.random.default_rng(0)
    found = [learner.fit(data, each, sample, rng) for each in (one, two)]
    for pair in zip(found, expected, strict=True):
        assert_same(*pair)
    assert len(next(iter(data.buffers.values()))) == 1
