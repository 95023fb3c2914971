"""Phases for GPUs, on the processor: every operation is the reference's, and fits have its bits."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import BoostingRegressor
from hilboost.backends.exact_sums import rounded
from hilboost.core.errors import InvalidParameter, MissingPackage
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.engine import gradients as packing
from hilboost.engine import prepare_trees
from hilboost.engine.ops import reference
from hilboost.engine.ops.cuda import DeviceOperations
from hilboost.engine.ops.cuda.processor import Processor
from hilboost.learners.tree import TreeLearner

D = 9


def of_both(name, shown=np.asarray):
    """An operation of the phases whose result is that of the reference."""

    def operation(self, *given):
        found = getattr(DeviceOperations, name)(self, *given)
        expected = getattr(reference, name)(*given)
        np.testing.assert_array_equal(shown(found), shown(expected))
        self.called.add(name)
        return found

    return operation


class Compared(DeviceOperations):
    """Both the phases and the reference take every step; the rows of the host are its own."""

    in_order = True
    quantize, partition = of_both("quantize"), of_both("partition")
    leaves = of_both("leaves", rounded)

    def __init__(self):
        super().__init__(Processor())
        self.called = set()

    def histogram(self, growth, nodes):
        super().histogram(growth, nodes)
        found = growth.histograms.slots.copy()
        reference.histogram(growth, nodes)
        np.testing.assert_array_equal(found, growth.histograms.slots)
        self.called.add("histogram")

    def walk(self, growth, tree, leaf_of_row):
        expected = leaf_of_row.copy()
        reference.walk(growth, tree, expected)
        super().walk(growth, tree, leaf_of_row)
        np.testing.assert_array_equal(leaf_of_row, expected)
        self.called.add("walk")


def fit(learner, n, seed, operations):
    """A stage of two drawn outputs: trees, and the leaf of each row."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, D)), 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 8] = rng.integers(80, size=n)
    negative = rng.uniform(-1, 1, size=(n, 2)) * 10.0 ** rng.integers(-9, 9, size=(n, 1))
    hessian = rng.uniform(0.1, 1, size=(n, 2)) if seed % 3 == 1 else None
    if seed % 3 == 2:
        negative = rng.uniform(-1, 1, size=(n, 2))
    gradients = Gradients(negative, hessian, Structure(logistic=seed % 3 == 2))
    weight = (None, rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 3, n))[seed // 3 % 3]
    rows = np.flatnonzero(rng.uniform(size=n) < 0.7).astype(np.uint32) if seed // 9 % 2 else None
    data = prepare_trees(learner, X, weight, 0, 1, operations=operations)
    fitted = learner.fit(data, gradients, RowSample(rows, weight), np.random.default_rng(seed))
    learner.close(data)
    return [(one.term.model, one.leaves) for one in fitted]


def assert_same_trees(found, expected):
    for (tree, leaves), (other, other_leaves) in zip(found, expected, strict=True):
        for name in ("column", "threshold", "gain", "values", "left_sets"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))
        np.testing.assert_array_equal(leaves, other_leaves)


@pytest.mark.slow
@pytest.mark.parametrize("most_exact", [10, 2**17])
@given(seed=st.integers(0, 2**20), n=st.integers(30, 5000), categorical=st.booleans())
def test_every_operation_is_the_references(most_exact, seed, n, categorical):
    learner = TreeLearner(
        max_leaf_nodes=8, min_samples_leaf=3, categorical=((8, 80),) if categorical else ()
    )
    compared = Compared()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_MOST_ROWS_EXACT", most_exact)
        packing.layout_of.cache_clear()
        found, expected = fit(learner, n, seed, compared), fit(learner, n, seed, None)
        packing.layout_of.cache_clear()
    assert_same_trees(found, expected)
    assert {"quantize", "histogram", "leaves"} <= compared.called


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 6, 14])
def test_every_operation_is_the_references_on_many_rows(seed):
    learner, compared = TreeLearner(max_leaf_nodes=31), Compared()
    assert_same_trees(fit(learner, 100_000, seed, compared), fit(learner, 100_000, seed, None))
    assert len(compared.called) == 4 + (seed // 9 % 2)


X = np.random.default_rng(0).normal(size=(60, 2))
Y = X.sum(axis=1)


@pytest.mark.parametrize(
    ("device", "parameters", "message"),
    [
        ("gpu", {}, "device='gpu' is not supported by trees; use 'cuda', 'cuda:1' or None"),
        ("cuda:one", {}, "device='cuda:one' is not supported by trees"),
        ("cuda", {"multi_output": "shared"}, "trees with vector leaves are not grown on a GPU"),
        ("cuda", {"learner": "linear"}, "device is only supported by the built-in trees and"),
    ],
)
def test_devices_that_do_not_grow_these_trees(device, parameters, message):
    model = BoostingRegressor(**{"learner": "tree", "device": device} | parameters)
    with pytest.raises(InvalidParameter, match=message):
        model.fit(X, Y)


def test_the_missing_package_is_named():
    if find_spec("numba_cuda") is not None:
        pytest.skip("numba-cuda is installed")
    with pytest.raises(MissingPackage, match=r"requires the package numba-cuda; .*hilboost\[cuda"):
        BoostingRegressor(device="cuda").fit(X, Y)
