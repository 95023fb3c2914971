"""Infinite inputs: trees keep them apart from all finite values; other learners refuse them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reloaded import reloaded
from tests.workers.together import fit_together, partitions_of, saved

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.core.errors import InvalidData
from hilboost.engine.table import column_edges
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
X[:80, 0], X[80:150, 0], X[150:200, 0] = np.inf, -np.inf, np.nan
STEPS = np.select([X[:, 0] == np.inf, X[:, 0] == -np.inf, np.isnan(X[:, 0])], [5.0, -5.0, 2.0])
Y = STEPS + 0.1 * X[:, 1]
PLAIN = {"n_estimators": 30, "learning_rate": 0.5, "early_stopping": False, "n_jobs": 1}
PLAIN |= {"min_samples_leaf": 5, "l2_regularization": 0.0}


def fitted(**parameters):
    return BoostingRegressor(**PLAIN | parameters, random_state=0).fit(X, Y)


def test_trees_tell_infinity_from_all_finite_values():
    model = fitted()
    rows = np.tile(X[300], (5, 1))
    rows[:, 0] = np.inf, 1e308, 0.0, -1e308, -np.inf
    high, large, zero, small, low = model.predict(rows)
    assert high == pytest.approx(5, abs=0.3)
    assert low == pytest.approx(-5, abs=0.3)
    assert max(abs(large), abs(zero), abs(small)) < 0.4
    np.testing.assert_allclose(model.predict(X), Y, atol=0.4)


@pytest.mark.parametrize(
    "table",
    [X.astype(np.float32), pd.DataFrame(X, columns=list("abc")), np.asfortranarray(X)],
    ids=["float32", "frame", "columns"],
)
def test_every_form_of_a_table(table):
    model = BoostingRegressor(**PLAIN, random_state=0).fit(table, Y)
    np.testing.assert_allclose(model.predict(table), Y, atol=0.4)
    np.testing.assert_allclose(model.shap_values(table).values.sum(axis=1).shape, (400,))


def test_sparse_tables_give_the_same_model():
    filled = np.where(np.isnan(X), 0.0, X)
    dense = BoostingRegressor(**PLAIN, random_state=0).fit(filled, Y)
    sparse = BoostingRegressor(**PLAIN, random_state=0).fit(sp.csr_array(filled), Y)
    np.testing.assert_array_equal(dense.predict(filled), sparse.predict(sp.csr_array(filled)))


def test_files_workers_onnx_and_reports():
    runtime = pytest.importorskip("onnxruntime")
    model = fitted()
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-12)
    parts = partitions_of(X, Y, cuts=[130])
    together = fit_together(BoostingRegressor(**PLAIN, random_state=0), parts, [0, 1])[0]
    assert saved(together)[1] == saved(model)[1]
    assert model.report(X, Y).html.startswith("<!")


def test_automatic_learner_and_other_estimators():
    y = (Y > 0) * 1
    for learner in ("tree", "auto"):
        model = BoostingClassifier(learner=learner, n_estimators=20, random_state=0, n_jobs=1)
        assert model.fit(X, y).score(X, y) > 0.9
    ranker = BoostingRanker(n_estimators=3, random_state=0, n_jobs=1)
    assert np.isfinite(ranker.fit(X, y, groups=np.arange(400) // 10).predict(X)).all()


@pytest.mark.parametrize(
    "model",
    [
        KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, n_estimators=2),
        SparseKernelRidge(kernel=Gaussian(1.0), regularization=0.1),
        BoostingRegressor(learner=["tree", "linear"], n_estimators=2),
        OutputKernelBoostingRegressor(n_estimators=2),
    ],
    ids=repr,
)
def test_other_learners_refuse_it(model):
    with pytest.raises(InvalidData, match=r"infinity or a value too large in column 0\. Replace"):
        model.fit(X, Y)
    model.fit(X[200:230], Y[200:230])
    with pytest.raises(InvalidData, match=r"infinity or a value too large in column 0\. Replace"):
        model.predict(X)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([-np.inf, np.inf, np.nan, *np.linspace(-2, 2, 9)]), max_size=40),
    st.integers(4, 8),
)
def test_infinite_values_have_their_own_bins(values, max_bins):
    values = np.array(values, dtype=np.float64)
    edges = column_edges(values, None, max_bins)
    assert np.isfinite(edges).all()
    assert (edges[1:] > edges[:-1]).all()
    assert len(edges) < max_bins
    bins = np.searchsorted(edges, values)
    for end in (-np.inf, np.inf):
        shared = (bins == bins[values == end][0]) if (values == end).any() else values == end
        np.testing.assert_array_equal(shared & ~np.isnan(values), values == end)
