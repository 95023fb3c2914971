"""Outputs of trees on binned rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import TreeLearner

DIVISION = TreeLearner.capabilities.row_division
CASES = {
    "small trees": {"max_leaf_nodes": 12},
    "trees of 50 leaves": {"max_leaf_nodes": 50},
    "large trees": {"max_leaf_nodes": 90},
    "levels": {"categorical": ((0, 9), (11, 30))},
    "vector leaves": {"shared": True},
}


def table(n):
    """Columns of few values, levels, floats, and missing values."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (n, 12)).astype(float)
    X[:, 1:4] = rng.normal(size=(n, 3))
    X[:, 11] = rng.integers(0, 30, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, :2]) + 0.1 * rng.normal(size=(n, 2)) + (X[:, 2:4] > 0)


@pytest.mark.parametrize("n", [5, 5000])
@pytest.mark.parametrize("case", CASES)
def test_they_are_those_on_the_values(case, n):
    X, y = table(n)
    learner = TreeLearner(min_samples_leaf=1, level_smoothing=0.0, **CASES[case])
    data = learner.prepare(X, None, 0, 1)
    raw, expected = np.zeros((2, 2, n)).swapaxes(1, 2)
    terms = []
    for seed in range(3):
        fitted = learner.fit(
            data, Gradients(y - raw), RowSample(None, None), np.random.default_rng(seed)
        )
        terms += [replace(one.term, coefficient=0.3 * one.term.coefficient) for one in fitted]
    first, second = data.table.n_rows // 3, data.table.n_rows
    for part, rows in zip(
        DIVISION.divided(data, [slice(0, first), slice(first, second)]),
        [slice(0, first), slice(first, second)],
        strict=True,
    ):
        DIVISION.add_outputs(part, terms, raw[rows], 2)
    type(terms[0].model).sum_of(terms).add_to(expected, X, 1)
    assert_array_equal(raw, expected)
    learner.close(data)


def test_no_trees_add_nothing():
    X, _ = table(9)
    learner = TreeLearner()
    raw = np.ones((9, 1))
    DIVISION.add_outputs(learner.prepare(X, None, 0, 1), [], raw, 1)
    assert_array_equal(raw, np.ones((9, 1)))
