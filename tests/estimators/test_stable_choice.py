"""``learner="auto"``: the choice on few rows hardly depends on the random state."""

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.losses import BinomialLogLoss
from hilboost.training.blending import HeldOutOutputs
from hilboost.training.kernel_candidates import Members, OwnCenters, SharedCenters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 8))
NOISY_LINE = X[:, 0] + 0.5 * X[:, 1] - 0.5 * X[:, 2] + RNG.normal(size=300)
TABLES = {
    "cells": (BoostingClassifier, load_breast_cancer(return_X_y=True)),
    "noisy line": (BoostingRegressor, (X, NOISY_LINE)),
    "noise": (BoostingRegressor, (X, RNG.normal(size=300))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_seeds_agree_on_the_family(name):
    kind, table = TABLES[name]
    families = Counter()
    for seed in range(10):
        parts = kind(random_state=seed).fit(*table).fitted_.parts
        families[parts is not None and parts["kernel"].weight > 0] += 1
    assert max(families.values()) >= 9
    assert name != "noise" or families[True] <= 1


def test_rows_are_left_out_one_by_one():
    target, n = np.column_stack([NOISY_LINE, X[:, 3] ** 2])[:60], 60
    weight = RNG.uniform(0.5, 2, n)
    rows, learner = Rows.of(X[:n], target, weight), MetricKernelLearner(precision="float64")
    space = learner.space(rows, np.arange(n, dtype=np.uint32), None, 0, ThreadTeam())
    K, found = space.kernel.block(*[space.features(X[:n])] * 2), space.left_out(rows)
    for row in (0, 17, 59):
        others = np.arange(n) != row
        ridge = space.ridge / rows.weight[others]
        alone = np.linalg.solve(K[np.ix_(others, others)] + np.diag(ridge), target[others])
        np.testing.assert_allclose(found[row], K[row, others] @ alone, rtol=1e-6, atol=1e-8)


def test_large_folds_need_no_rows_that_are_left_out():
    for n in (999, 1000):
        Z = RNG.normal(size=(n, 2))
        folds, table = np.arange(n) % 2, Rows.of(Z, Z[:, :1])
        learned = tuple(np.flatnonzero(folds != k).astype(np.uint32) for k in range(2))
        members = Members((Z,) * 2, folds, learned, (np.ones(2),) * 2, 0, ThreadTeam())
        own = OwnCenters(MetricKernelLearner(), [table] * 2, members).left_out()
        assert SharedCenters(MetricKernelLearner(), table, members).left_out() is None
        assert (own is None) == (n == 1000)
        if own is not None:
            assert np.abs(own - Z[folds == 1, :1]).mean() < 0.1


def test_a_few_large_losses_hide_no_gain():
    """Trees err on a fifth of the rows, and the kernel machine on a hundredth, but far."""
    row = np.arange(400)[:, None]
    y = row % 2.0
    trees = (2 * y - 1) * np.where(row % 5 == 2, -1, 3)
    kernel = (2 * y - 1) * np.where(row % 100 == 7, -12, 3)
    found = HeldOutOutputs(BinomialLogLoss(), np.zeros(1), Target(y), trees, kernel)
    assert found.blend.material.all()


def test_trees_that_hardly_gain_anything_are_left_out():
    """A kernel machine is alone unless trees gain more than 1 % and a standard error beside it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (200, 1)).astype(float)
    kernel, weights = 2 * y - 1 + rng.normal(size=y.shape), np.array([[0.5], [1.0]])
    for certainty, is_kept in ((0.2, False), (2.0, True)):
        trees = certainty * (2 * y - 1) + rng.normal(size=y.shape)
        found = HeldOutOutputs(BinomialLogLoss(), np.zeros(1), Target(y), trees, kernel, True)
        assert (found.without_trees(weights)[0, 0] > 0) == is_kept
