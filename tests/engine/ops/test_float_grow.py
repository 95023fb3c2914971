"""Growth with float64 sums is the compiled growth where fixed-point numbers are exact."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.float_grow import Float64Growth

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import stage as fitting
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.learners.tree import TreeLearner


def fitted(parts, X, gradients):
    data = parts.prepare(X, None, 0, 1)
    data.plan = replace(data.plan, fewest_separate=None)
    (term,) = parts.fit(data, gradients, RowSample(None, None), np.random.default_rng(0))
    parts.close(data)
    return term.term.model, term.leaves


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("curved", [False, True])
def test_the_same_tree(seed, missing, curved, monkeypatch):
    rng = np.random.default_rng(seed)
    n = 400
    X = rng.normal(size=(n, 6))
    X[:, ::2] = np.round(X[:, ::2])
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    negative = np.round(256 * rng.normal(size=(n, 1))) / 256
    hessian = rng.integers(1, 65, size=(n, 1)) / 256 if curved else None
    limits = {"min_samples_leaf": 3.0, "min_hessian": 0.1, "l2_regularization": 0.5 * seed}
    parts = TreeLearner(max_leaf_nodes=25, max_depth=5 if seed == 3 else None, **limits)
    tree, leaves = fitted(parts, X, Gradients(negative, hessian))
    twin = Float64Growth(fitting.pack)
    monkeypatch.setattr(fitting, "pack", twin.pack)
    monkeypatch.setattr(CpuOperations, "grow", lambda _, growth, symmetric: twin.grow(growth))
    expected, expected_leaves = fitted(parts, X, Gradients(negative, hessian))
    assert len(tree.values) > 10
    for name in ("column", "threshold", "missing_right", "child", "leaf_values"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(leaves, expected_leaves)
    np.testing.assert_allclose(tree.gain, expected.gain, rtol=1e-9)
