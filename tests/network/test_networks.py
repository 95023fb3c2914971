"""Completing networks from features of the vertices."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from tests.refusals import refused

from hilboost import (
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.network import BipartiteNetwork, NetworkCompletion, diffusion_kernel
from hilboost.outputs import PrecomputedOutput

FEW = OutputKernelBoostingRegressor(n_estimators=30, learning_rate=0.1, random_state=0, n_jobs=1)


def communities(seed=0, n=60):
    """Vertices in three groups that their features tell; links within groups mostly."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = np.eye(3)[group] + 0.3 * rng.normal(size=(n, 3))
    chance = np.where(group[:, None] == group, 0.5, 0.02)
    A = np.triu(rng.random((n, n)) < chance, 1)
    return X, (A | A.T).astype(float)


@pytest.mark.slow
def test_sparse_features_are_those_of_the_dense_array():
    X, A = communities()
    X[np.abs(X) < 0.3] = 0.0
    known, new, inner = X[:45], X[45:], A[:45, :45]
    dense = NetworkCompletion(FEW).fit(known, inner)
    for make in (scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        network = NetworkCompletion(FEW, validation_fraction=0.2, random_state=0)
        chosen = clone(network).fit(known, inner)
        assert network.fit(make(known), inner).n_stages_ == chosen.n_stages_
        network = NetworkCompletion(FEW).fit(make(known), inner)
        for X2 in (None, new):
            expected = dense.predict_kernel(new, X2)
            found = network.predict_kernel(make(new), None if X2 is None else make(X2))
            np.testing.assert_array_equal(found, expected)
        *_, last = network.staged_predict_kernel(make(new))
        np.testing.assert_allclose(last, dense.predict_kernel(new))
    bad = scipy.sparse.csr_array(known)
    bad.data[0] = np.inf
    refused(ValueError, "infinity", NetworkCompletion(FEW).fit, bad, inner)


def test_sparse_features_of_rows_and_columns_are_those_of_the_dense_arrays():
    rng = np.random.default_rng(2)
    rows, columns = (rng.poisson(0.7, size=(size, 4)).astype(float) for size in (40, 20))
    links = (rows @ columns.T > 3).astype(float)
    known, new = np.arange(30), np.arange(30, 40)
    dense = BipartiteNetwork(MODELS).fit(rows[known], links[known, :15], columns[:15])
    for make in (scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        network = BipartiteNetwork(MODELS)
        network.fit(make(rows[known]), make(links[known, :15]), make(columns[:15]))
        np.testing.assert_array_equal(
            network.predict_profiles(make(rows[new])), dense.predict_profiles(rows[new])
        )
        np.testing.assert_array_equal(
            network.predict_new(make(rows[new]), column_features=make(columns[15:])),
            dense.predict_new(rows[new], column_features=columns[15:]),
        )
        network.calibrate(make(rows[new]), links[new, :15])
        dense.calibrate(rows[new], links[new, :15])
        found = network.predict_set(make(rows[new]), 0.5)
        np.testing.assert_array_equal(found, dense.predict_set(rows[new], 0.5))
        curves = network.curves(make(rows[new]), links[new, :15])
        assert curves.auroc == dense.curves(rows[new], links[new, :15]).auroc
    bad = scipy.sparse.csr_array(columns[:15])
    bad.data[0] = np.nan
    refused(ValueError, "NaN", BipartiteNetwork(MODELS).fit, rows[known], links[known, :15], bad)


def test_new_vertices_find_their_group():
    X, A = communities()
    known, new = np.arange(45), np.arange(45, 60)
    network = NetworkCompletion(FEW).fit(X[known], A[np.ix_(known, known)])
    curves = network.curves(X[new], A[np.ix_(new, known)], A[np.ix_(new, new)])
    assert curves["new-known"].auroc > 0.75
    assert curves["new-new"].auroc > 0.75
    assert network.score(X[new], A[np.ix_(new, known)]) == curves["new-known"].auroc
    predicted = network.predict(X[new])
    assert predicted.shape == (15, 45)
    assert predicted.dtype == bool


def test_kernels_are_inner_products():
    X, A = communities(1)
    network = NetworkCompletion(FEW, coefficient=0.5).fit(X, A)
    points = network.model_.predict_embedding(X[:4])
    K = diffusion_kernel(A, 0.5)
    known = network.model_.output_.encode_training(K)
    np.testing.assert_allclose(known @ known.T, K, atol=1e-10)
    np.testing.assert_allclose(network.predict_kernel(X[:4]), points @ known.T)
    np.testing.assert_allclose(network.predict_kernel(X[:4], X[:4]), points @ points.T)
    *_, last = network.staged_predict_kernel(X[:4])
    np.testing.assert_allclose(last, network.predict_kernel(X[:4]))


def test_threshold_gives_known_vertices_as_many_links_as_they_have():
    X, A = communities(2)
    network = NetworkCompletion(FEW).fit(X, A)
    predicted = network.predict(X)
    assert np.triu(predicted, 1).sum() == np.triu(A, 1).sum()
    assert NetworkCompletion(FEW, threshold=0.5).fit(X, A).threshold_ == 0.5


def test_pairs_are_the_matrix():
    X, A = communities(3)
    pairs = np.argwhere(np.triu(A))
    one = NetworkCompletion(FEW).fit(X, A)
    other = NetworkCompletion(FEW).fit(X, pairs)
    assert (one.predict_kernel(X) == other.predict_kernel(X)).all()


def test_stages_are_chosen_on_held_out_vertices():
    X, A = communities(4)
    network = NetworkCompletion(FEW, validation_fraction=0.3, random_state=0).fit(X, A)
    assert 1 <= network.n_stages_ <= 30
    assert network.model_.n_estimators_ == network.n_stages_


def test_threshold_of_held_out_vertices():
    X, A = communities(6)
    network = NetworkCompletion(FEW, validation_fraction=0.3, random_state=0).fit(X, A)
    order = np.random.RandomState(0).permutation(60)
    held, kept = np.sort(order[:18]), np.sort(order[18:])
    within, inner = np.triu_indices(42, 1), A[np.ix_(kept, kept)]
    few = clone(FEW).set_params(n_estimators=network.n_stages_)
    parts = NetworkCompletion(few).fit(X[kept], inner)
    n_links = int(A[np.ix_(held, kept)].sum())
    at = np.sort(parts.predict_kernel(X[held]), axis=None)[-n_links]
    times = (parts.predict_kernel(X[kept])[within] >= at).sum() / inner[within].sum()
    assert np.triu(network.predict(X), 1).sum() == round(times * np.triu(A, 1).sum())
    assert network.set_params(threshold=0.25).fit(X, A).threshold_ == 0.25


def test_new_vertices_get_about_as_many_links_as_they_have():
    X, A = communities(0, 150)
    known, new = np.arange(100), np.arange(100, 150)
    forest = OutputKernelForestRegressor(n_estimators=30, random_state=0, n_jobs=1)
    network = NetworkCompletion(forest, validation_fraction=0.2, random_state=0)
    network.fit(X[known], A[np.ix_(known, known)])
    assert 0.5 < network.predict(X[new]).mean() / A[np.ix_(new, known)].mean() < 2


@pytest.mark.slow
def test_the_default_model_takes_the_random_state():
    X, A = communities(7, 30)
    one, other = (NetworkCompletion(random_state=0).fit(X, A) for _ in range(2))
    assert (one.predict_kernel(X) == other.predict_kernel(X)).all()


def test_tables_keep_the_names_of_their_columns():
    pandas = pytest.importorskip("pandas")
    X, A = communities(8)
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    network = NetworkCompletion(FEW, validation_fraction=0.3, random_state=0)
    expected = clone(network).fit(X, A).predict_kernel(X)
    assert (network.fit(table, A).predict_kernel(table) == expected).all()


@pytest.mark.parametrize(
    ("features", "links", "message"),
    [
        (np.ones((3, 2)), np.zeros((3, 3)), "no links"),
        (np.ones((3, 2)), [(0, 60)], "contains vertex 60"),
        (np.ones(3), [(0, 1)], "one row per vertex"),
        ([[0.0, 1.0], [2.0]], [(0, 1)], "X must have rows of equal length; row 1 has 1"),
    ],
)
def test_network_refusals(features, links, message):
    refused(InvalidData, message, NetworkCompletion(FEW).fit, features, links)


def test_refused_models_and_features():
    X, A = communities(5)
    for model in (Ridge(), OutputKernelBoostingRegressor, "kernel"):
        with pytest.raises(InvalidType, match="must be an output kernel regressor"):
            NetworkCompletion(model).fit(X, A)
    tree = OutputKernelTreeRegressor(random_state=0)
    with pytest.raises(
        InvalidParameter, match="stages, but OutputKernelTreeRegressor has no stages"
    ):
        NetworkCompletion(tree, validation_fraction=0.3).fit(X, A)
    assert NetworkCompletion(tree).fit(X, A).n_stages_ is None
    for output in ("label_set", "gaussian", PrecomputedOutput(lambda a, b: a @ b.T, labels=X)):
        other = clone(tree).set_params(output=output)
        with pytest.raises(InvalidParameter, match="its diffusion kernel, but model has output="):
            NetworkCompletion(other).fit(X, A)
    with pytest.raises(InvalidParameter, match="but model has decode='mean'"):
        NetworkCompletion(clone(tree).set_params(decode="mean")).fit(X, A)
    with pytest.raises(InvalidData, match="no pairs of the 1 held-out .* random_state"):
        NetworkCompletion(FEW, validation_fraction=0.01, random_state=0).fit(
            X, [pair for pair in np.argwhere(np.triu(A)) if _held(0) not in pair]
        )


def test_the_accuracy_of_the_output_space_counts():
    X, A = communities(5)
    tree = OutputKernelTreeRegressor(random_state=0)
    few = clone(tree).set_params(output=PrecomputedOutput(max_rank=3))
    assert NetworkCompletion(few).fit(X, A).model_.predict_embedding(X).shape == (60, 3)
    whole, same = (
        NetworkCompletion(one).fit(X, A).predict_kernel(X)
        for one in (tree, clone(tree).set_params(output="precomputed"))
    )
    np.testing.assert_array_equal(same, whole)


def test_curves_are_printed_in_one_line():
    X, A = communities(5)
    known, new = np.arange(45), np.arange(45, 60)
    network = NetworkCompletion(FEW).fit(X[known], A[np.ix_(known, known)])
    for name, curves in network.curves(X[new], A[np.ix_(new, known)]).items():
        printed = repr(curves)
        assert f"auroc={curves.auroc:.6g}" in printed, name
        assert f"n_pairs={curves.n_pairs}" in printed
        assert f"recall=<{len(curves.recall)} float64>" in printed
        assert len(printed) < 300
        assert "\n" not in printed


def _held(seed, n=60):
    return np.random.RandomState(seed).permutation(n)[0]


def bipartite(seed=0, n=50, p=20):
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(n, 2)), rng.normal(size=(p, 2))
    links = (U @ V.T + 0.3 * rng.normal(size=(n, p)) > 1).astype(float)
    return U, V, links


MODELS = [Ridge(), OutputKernelForestRegressor(n_estimators=20, random_state=0, n_jobs=1)]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_new_rows_of_a_bipartite_network(smoothing):
    U, _, links = bipartite()
    network = BipartiteNetwork(MODELS, smoothing=smoothing).fit(U[:40], links[:40])
    assert network.score(U[40:], links[40:]) > 0.8
    profiles = network.predict_profiles(U[40:])
    expected = [clone(m).fit(U[:40], links[:40]).predict(U[40:]) for m in MODELS]
    np.testing.assert_allclose(profiles, np.mean(expected, axis=0))
    np.testing.assert_allclose(network.predict(U[40:]), profiles @ network.mixing_.T)
    if smoothing == 0:
        assert (network.mixing_ == np.eye(20)).all()


def test_new_rows_and_new_columns_at_once():
    U, V, links = bipartite(1)
    rows = BipartiteNetwork(Ridge(), smoothing=0.0).fit(U[:40], links[:40, :15])
    columns = OutputKernelBoostingRegressor(learner=Ridge(), n_estimators=50, random_state=0)
    columns.fit(V[:15], links[:40, :15].T)
    scores = rows.predict_new(U[40:], columns.predict_weights(V[15:]))
    assert scores.shape == (10, 5)
    truth = links[40:, 15:]
    assert scores[truth == 1].mean() > scores[truth == 0].mean()


def test_bipartite_default_and_pickle():
    U, _, links = bipartite(2, 30, 6)
    network = BipartiteNetwork().fit(U, links)
    assert (pickle.loads(pickle.dumps(network)).predict(U) == network.predict(U)).all()


def test_the_default_models_take_the_random_state():
    U, _, links = bipartite(4, 20, 5)
    one, same, other = (BipartiteNetwork(random_state=k).fit(U, links) for k in (0, 0, 1))
    assert (one.predict(U) == same.predict(U)).all()
    assert (one.predict(U) == BipartiteNetwork().fit(U, links).predict(U)).all()
    assert (one.predict(U) != other.predict(U)).any()


def test_smoothing_is_a_mean_weighted_by_similarity():
    U, _, links = bipartite(5, p=3)
    similarity = np.array([[0.5, 0.2, -0.7], [0.2, 2.0, 0.0], [-0.7, 0.0, 1.0]])
    network = BipartiteNetwork(Ridge(), similarity=similarity, smoothing=2.0, power=2.0)
    network.fit(U, links)
    p = network.predict_profiles(U[:1])[0]
    means = np.array([(p[0] + 0.04 * p[1]) / 1.04, (0.04 * p[0] + 4 * p[1]) / 4.04, p[2]])
    np.testing.assert_allclose(network.predict(U[:1])[0], p + 2 * means)


def test_features_on_both_sides():
    U, V, links = bipartite(6)
    columns = OutputKernelForestRegressor(n_estimators=20, random_state=0, n_jobs=1)
    network = BipartiteNetwork(MODELS, column_models=columns)
    plain = network.fit(U[:40], links[:40, :15]).predict(U[40:])
    network.fit(U[:40], links[:40, :15], V[:15])
    assert (network.predict(U[40:]) == plain).all()
    weights = columns.fit(V[:15], links[:40, :15].T).predict_weights(V[15:]).toarray()
    np.testing.assert_allclose(network.predict_column_weights(V[15:]), weights, atol=1e-8)
    scores = network.predict_new(U[40:], column_features=V[15:])
    np.testing.assert_allclose(scores, network.predict_new(U[40:], weights), atol=1e-8)
    truth = links[40:, 15:]
    assert scores[truth == 1].mean() > scores[truth == 0].mean()


def test_models_of_columns_are_as_those_of_rows():
    U, V, links = bipartite(7)
    network = BipartiteNetwork(MODELS).fit(U, links, V)
    assert [type(model) for model in network.column_models_] == [type(m) for m in MODELS]
    again = pickle.loads(pickle.dumps(network))
    new = {"column_features": V[:2]}
    assert (again.predict_new(U[:3], **new) == network.predict_new(U[:3], **new)).all()


def test_refused_new_columns():
    U, V, links = bipartite(8)
    network = BipartiteNetwork(Ridge()).fit(U, links)
    refused(InvalidData, "pass column_features to fit", network.predict_new, U, column_features=V)
    refused(InvalidData, "either column_weights or column_features", network.predict_new, U)
    with pytest.raises(InvalidData, match="column_weights has a missing .* in row 0"):
        network.predict_new(U, np.full((1, 20), np.nan))
    refused(InvalidData, "19 rows but links has 20 columns", network.fit, U, links, V[:19])


LOPSIDED = np.eye(4)
LOPSIDED[1, 3] = 1e-6


@pytest.mark.parametrize(
    ("links", "parameters", "error", "message"),
    [
        ([[1, 0], [1]], {}, InvalidData, "links must have rows of equal length; row 1 has 1"),
        ([["a", "b"]], {}, InvalidData, "links must contain numbers; row 0 has 'a'"),
        (np.ones((30, 4)), {"similarity": LOPSIDED}, InvalidData, r"entry \(1, 3\) is 1e-06"),
        (np.ones((30, 4)), {"similarity": np.full((4, 4), np.inf)}, InvalidData, "in row 0"),
        (np.zeros((30, 4)), {}, InvalidData, "no nonzero entries"),
        (np.full((30, 4), np.nan), {}, InvalidData, "in row 0"),
        (np.ones(30), {}, InvalidData, "must be a matrix"),
        (np.ones((30, 4)), {"similarity": np.eye(3)}, InvalidData, r"\(4, 4\)"),
        (np.ones((30, 4)), {"similarity": "cosine"}, InvalidParameter, "'profile'"),
    ],
)
def test_bipartite_refusals(links, parameters, error, message):
    refused(error, message, BipartiteNetwork(Ridge(), **parameters).fit, np.zeros((30, 2)), links)


def test_column_weights_of_the_wrong_width():
    U, _, links = bipartite(3)
    network = BipartiteNetwork(Ridge()).fit(U, links)
    refused(InvalidData, "20 columns", network.predict_new, U, np.ones((2, 19)))
