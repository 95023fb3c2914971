"""Phases for GPUs, on the processor: every operation is the reference's, and fits have its bits."""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import BoostingClassifier, BoostingRegressor
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


class Compared(DeviceOperations):
    """Both the phases and the reference take every step; the rows of the host are its own."""

    in_order = True

    def __init__(self):
        super().__init__(Processor())
        self.called = set()

    def quantize(self, learned, layout, numbers, into):
        found = super().quantize(learned, layout, numbers, into)
        np.testing.assert_array_equal(found, reference.quantize(learned, layout, numbers, into))
        self.called.add("quantize")
        return found

    def histogram(self, growth, nodes):
        super().histogram(growth, nodes)
        found = growth.histograms.slots.copy()
        reference.histogram(growth, nodes)
        np.testing.assert_array_equal(found, growth.histograms.slots)
        self.called.add("histogram")

    def partition(self, growth, nodes):
        found = super().partition(growth, nodes)
        np.testing.assert_array_equal(found, reference.partition(growth, nodes))
        self.called.add("partition")
        return found

    def leaves(self, growth, leaves, learned):
        found = super().leaves(growth, leaves, learned)
        expected = reference.leaves(growth, leaves, learned)
        np.testing.assert_array_equal(rounded(found), rounded(expected))
        self.called.add("leaves")
        return found

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


@dataclass(frozen=True)
class PhaseLearner(TreeLearner):
    """Trees that grow by phases."""

    def prepare(self, X, weight, seed, n_threads):
        return prepare_trees(
            self, X, weight, seed, n_threads, operations=DeviceOperations(Processor())
        )


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    X[:, 0] = np.round(X[:, 0])
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.1 * rng.normal(size=500)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X).add_prefix("x")
    frame["level"] = pd.Categorical.from_codes(rng.integers(12, size=500), list("abcdefghijkl"))
    return frame, y, rng.uniform(0.1, 3, 500)


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
    X, y, _ = table()
    model = BoostingRegressor(**{"learner": "tree", "device": device} | parameters)
    with pytest.raises(InvalidParameter, match=message):
        model.fit(X, y)


def test_the_missing_package_is_named():
    X, y, _ = table()
    if find_spec("numba_cuda") is not None:
        pytest.skip("numba-cuda is installed")
    with pytest.raises(MissingPackage, match=r"requires the package numba-cuda; .*hilboost\[cuda"):
        BoostingRegressor(device="cuda").fit(X, y)


LOSSES = {
    "squared_error": (BoostingRegressor, {}),
    "absolute_error": (BoostingRegressor, {"loss": "absolute_error"}),
    "two classes": (BoostingClassifier, {}),
    "three classes": (BoostingClassifier, {}),
}
SETTINGS = {
    "plain": {},
    "large": {"max_leaf_nodes": 40, "min_samples_leaf": 2},
    "monotonic": {"monotonic": (0, 1, -1, 0, 0, 0)},
    "symmetric": {"symmetric": True, "categorical": ()},
    "columns": {"max_features": 0.5, "max_features_per_tree": 0.8},
}


CASES = {*product(LOSSES, SETTINGS)} - {("three classes", "monotonic")}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "settings"), sorted(CASES))
def test_fits_have_the_bits_of_the_processor(loss, settings, weighted):
    X, y, weight = table()
    estimator, parameters = LOSSES[loss]
    if estimator is BoostingClassifier:
        y = np.digitize(y, [0] if loss == "two classes" else [-0.5, 0.5])
    if settings == "symmetric":
        X = X.drop(columns="level")
    given_ = {"n_estimators": 4, "random_state": 0, "early_stopping": False, "n_jobs": 1}
    given_ |= parameters | ({"subsample": 0.6} if settings == "large" else {})
    found = []
    for kind in (TreeLearner, PhaseLearner):
        learner = kind(**{"max_leaf_nodes": 8, "min_samples_leaf": 5} | SETTINGS[settings])
        model = estimator(learner=learner, **given_).fit(X, y, weight if weighted else None)
        predict = getattr(model, "predict_proba", model.predict)
        found.append(predict(X))
    np.testing.assert_array_equal(*found)
