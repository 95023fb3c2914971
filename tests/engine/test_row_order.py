"""Trees do not depend on the order of the rows, as they are given and in the table."""

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import row_order
from hilboost.engine.row_order import RowOrder
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


def model_raw(n, task, is_sorted, monkeypatch, n_jobs=1, **parameters):
    """Predictions of a model for its training rows, before the link; columns of few values."""
    monkeypatch.setattr(row_order, "_FEWEST_BYTES", 0 if is_sorted else 2**30)
    monkeypatch.setenv("HILBOOST_CORES", "4")
    rng = np.random.default_rng(0)
    X = rng.integers(12, size=(n, 9)).astype(float)
    y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2] + rng.normal(size=n)
    weight = rng.uniform(0.5, 2, size=n) if parameters.pop("weighted", False) else None
    if task == "outputs":
        y = np.column_stack([y, X[:, 3] - y])
    kind = BoostingRegressor if task in ("numbers", "outputs") else BoostingClassifier
    labels = {"two classes": y > 5, "classes": np.digitize(y, [0, 5])}.get(task, y)
    model = kind(n_estimators=5, early_stopping=False, random_state=0, n_jobs=n_jobs, **parameters)
    return model.fit(X, labels, sample_weight=weight).model_.predict_raw(X)


@pytest.mark.parametrize(
    ("n", "task", "parameters"),
    [
        (70_000, "numbers", {"n_jobs": 2}),
        (70_000, "numbers", {"n_jobs": 4}),
        (70_000, "two classes", {"n_jobs": 4, "weighted": True}),
        (3_000, "numbers", {"growth": "symmetric"}),
        (3_000, "numbers", {"subsample": 0.5}),
        (3_000, "numbers", {"categorical_features": [0], "monotonic_cst": [0, 1] + 7 * [0]}),
        (3_000, "two classes", {"weighted": True}),
        (70_000, "two classes", {"cv_folds": 2}),
        (3_000, "classes", {}),
        (3_000, "outputs", {"multi_output": "shared"}),
    ],
)
def test_sorted_rows_of_the_table_give_the_same_model(n, task, parameters, monkeypatch):
    plain, moved = (model_raw(n, task, way, monkeypatch, **parameters) for way in (False, True))
    np.testing.assert_array_equal(moved, plain)


def test_rows_of_a_block_are_sorted_and_brought_back():
    rng = np.random.default_rng(0)
    n = 70_000
    given = rng.integers(2**60, size=n).astype(np.uint64)
    words, order = given.copy(), RowOrder.as_given(n, ThreadTeam(1))
    leaf_of_row, ranks = rng.integers(300, size=n).astype(np.int32), rng.permutation(300)
    order.sort(leaf_of_row, ranks, [words])
    order.sort(leaf_of_row % 2, ranks[:2], [words])
    rows = np.arange(n) // 65_536 * 65_536 + order.offsets
    wanted = np.lexsort((ranks[leaf_of_row], ranks[leaf_of_row % 2], np.arange(n) // 65_536))
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_array_equal(words, given[wanted])
    order.undo([words])
    np.testing.assert_array_equal(words, given)
