"""Trees are the same on any number of threads, also with more threads than cores."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import StageRequest
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


def stages_of(parameters, X, request, n_threads):
    """The bytes of the trees, outputs and losses of some stages that are fitted in one call."""
    learner = TreeLearner(min_samples_leaf=3, **parameters)
    data = learner.prepare(X, request.weight, 0, n_threads)
    raw = request.raw.copy(order="F")
    fitted = learner.fit_stages(data, replace(request, raw=raw))
    learner.close(data)
    found = [raw.tobytes(), fitted.losses.tobytes()]
    for stage in fitted.stages:
        for term in stage.terms:
            tree = term.model
            arrays = tree.column, tree.threshold, tree.child, tree.gain, tree.values
            found.append([np.ascontiguousarray(array).tobytes() for array in arrays])
    return found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shared"])
@given(
    seed=st.integers(0, 2**20),
    loss=st.sampled_from(["squared_error", "logistic", "softmax"]),
    n=st.sampled_from([50, 3000, 40_000]),
    weighted=st.booleans(),
    part=st.sampled_from([None, 0.6]),
    holds_out=st.booleans(),
)
def test_stages_in_one_call(kind, seed, loss, n, weighted, part, holds_out):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 6)), rng.integers(3))
    X[:, 0] = rng.integers(12, size=n)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    signal = np.nan_to_num(X[:, 1]) + (X[:, 0] % 3 == 0) + 0.3 * rng.normal(size=n)
    classes = np.digitize(signal, [-0.3, 0.7])
    y = {"squared_error": signal, "logistic": 2.0 * (signal > 0) - 1, "softmax": classes}[loss]
    rows = np.flatnonzero(rng.uniform(size=n) < 0.8).astype(np.uint32) if holds_out else None
    n_learned = n if rows is None else len(rows)
    request = StageRequest(
        loss=loss,
        y=y[:, None],
        weight=rng.uniform(0.5, 2, size=n) if weighted else None,
        raw=np.zeros((n, 3 if loss == "softmax" else 1), order="F"),
        rows=rows,
        n_drawn=None if part is None or weighted else int(part * n_learned),
        keys=rng.integers(2**63, size=4, dtype=np.uint64),
        generators=[partial(np.random.default_rng, k) for k in range(4)],
        rate=0.3,
    )
    expected = stages_of(KINDS[kind], X, request, 1)
    for n_threads in (2, 3, 5, 16):
        assert stages_of(KINDS[kind], X, request, n_threads) == expected
