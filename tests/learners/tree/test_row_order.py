"""Trees do not depend on the order of the rows."""

import numpy as np
import pytest

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import TreeLearner


def fitted(X, gradients, weight, n_threads=1, **parameters):
    learner = TreeLearner(min_samples_leaf=5, **parameters)
    data = learner.prepare(X, weight, 0, n_threads)
    try:
        sample = RowSample(None, weight)
        return learner.fit(data, gradients, sample, np.random.default_rng(0))
    finally:
        learner.close(data)


@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize(("r", "shared"), [(1, False), (2, False), (3, True)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_permuted_rows_give_the_same_tree(weights, curved, r, shared, n_threads):
    rng = np.random.default_rng(r)
    n = 1_000
    X = rng.normal(size=(n, 4))
    negative = rng.normal(size=(n, r)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    hessian = rng.uniform(size=(n, r)) if curved else None
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=n).astype(float),
        "fractions": rng.uniform(0.5, 2, size=n),
    }[weights]
    order = rng.permutation(n)
    plain = fitted(X, Gradients(negative, hessian), weight, shared=shared)
    moved = fitted(
        X[order],
        Gradients(negative[order], None if hessian is None else hessian[order]),
        None if weight is None else weight[order],
        n_threads,
        shared=shared,
    )
    for a, b in zip(plain, moved, strict=True):
        for name in ("column", "threshold", "child", "gain", "leaf_values"):
            x, y = getattr(a.term.model, name), getattr(b.term.model, name)
            np.testing.assert_array_equal(x, y, err_msg=name)
        np.testing.assert_array_equal(a.leaves[order], b.leaves)
