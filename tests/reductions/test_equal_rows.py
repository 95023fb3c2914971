"""Rows with equal inputs and targets: ranked, and merged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.target import Target
from hilboost.reductions.rows import merge_equal_rows, row_ranks


def table(seed, n=30, d=3, levels=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, levels - 1, size=(n, d)) * rng.choice([1.0, -1.0], size=(n, d))
    return X, rng.integers(0, 2, size=(n, 1)).astype(float), rng


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 4))
def test_ranks_are_those_of_sorted_distinct_rows(seed, n, d):
    X, y, _ = table(seed, n, d)
    theirs = np.unique(np.hstack([X, y]) + 0.0, axis=0, return_inverse=True)[1]
    np.testing.assert_array_equal(row_ranks(X, y), theirs.ravel())


@given(st.integers(0, 2**32 - 1))
def test_weights_and_repetitions_in_any_order_are_one_table(seed):
    X, y, rng = table(seed)
    weight = rng.integers(1, 4, len(X)).astype(float)
    weight[0] += 0.0 if len(set(weight)) > 1 else 1.0
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weight.astype(int)))
    shuffled = rng.permutation(len(X))
    one = merge_equal_rows(X[shuffled], Target(y[shuffled], weight[shuffled]))
    other = merge_equal_rows(X[repeated], Target(y[repeated]))
    np.testing.assert_array_equal(one[1].weight.sum(), weight.sum())
    if np.ptp(one[1].weight):  # else rows keep their order
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1].y, other[1].y)
        np.testing.assert_array_equal(one[1].weight, other[1].weight)


def test_distinct_rows_without_weights_are_left_alone():
    X = np.random.default_rng(0).normal(size=(20, 2))
    target = Target(X[:, :1])
    merged = merge_equal_rows(X, target)
    assert merged[0] is X
    assert merged[1] is target
    assert merge_equal_rows(X, Target(X[:, :1], np.ones(20)))[1].weight is None
