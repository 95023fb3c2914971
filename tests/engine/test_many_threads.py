"""Trees are the same on any number of threads, also with more threads than cores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import TreeLearner

KINDS = {
    "best first": {"max_leaf_nodes": 31},
    "many leaves": {"max_leaf_nodes": 200},
    "symmetric": {"max_leaf_nodes": 32, "symmetric": True},
    "categories": {"max_leaf_nodes": 20, "categorical": ((0, 12),)},
    "drawn columns": {"max_leaf_nodes": 20, "max_features": 0.6},
    "shared": {"max_leaf_nodes": 20, "shared": True},
}


def grown(parameters, X, gradients, sample, n_threads):
    """The bytes of three trees of one fit, each of which learns from the gradients turned round."""
    learner = TreeLearner(min_samples_leaf=3, **parameters)
    data = learner.prepare(X, sample.weight, 0, n_threads)
    found = []
    for k in range(3):
        turned = Gradients(np.roll(gradients.negative_gradient, k, axis=0), gradients.hessian)
        for one in learner.fit(data, turned, sample, np.random.default_rng(k)):
            tree = one.term.model
            arrays = tree.column, tree.threshold, tree.child, tree.gain, tree.values, one.leaves
            found.append([np.ascontiguousarray(array).tobytes() for array in arrays])
    learner.close(data)
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**20),
    n=st.sampled_from([50, 3000, 40_000]),
    weighted=st.booleans(),
    n_columns=st.sampled_from([3, 20]),
)
def test_any_number_of_threads(kind, seed, n, weighted, n_columns):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, n_columns)), rng.integers(3))
    X[:, 0] = rng.integers(12, size=n)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    r = 2 if kind == "shared" else 1
    signal = np.nan_to_num(X[:, 1:2]) + (X[:, :1] % 3 == 0)
    hessian = rng.uniform(0.1, 1, size=(n, r)) if kind == "many leaves" else None
    gradients = Gradients(signal + rng.normal(size=(n, r)), hessian)
    weight = rng.uniform(0.5, 2, size=n) if weighted else None
    given_ = KINDS[kind], X, gradients, RowSample(None, weight)
    expected = grown(*given_, 1)
    for n_threads in (2, 3, 5, 16):
        assert grown(*given_, n_threads) == expected
