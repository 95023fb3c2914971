"""Completing networks from features of the vertices."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.network import BipartiteNetwork, NetworkCompletion, diffusion_kernel

FEW = OutputKernelBoostingRegressor(n_estimators=30, learning_rate=0.1, random_state=0, n_jobs=1)


def communities(seed=0, n=60):
    """Vertices in three groups that their features tell; links within groups mostly."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = np.eye(3)[group] + 0.3 * rng.normal(size=(n, 3))
    chance = np.where(group[:, None] == group, 0.5, 0.02)
    A = np.triu(rng.random((n, n)) < chance, 1)
    return X, (A | A.T).astype(float)


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


def test_network_refusals():
    X, A = communities(5)
    with pytest.raises(InvalidData, match="no links"):
        NetworkCompletion(FEW).fit(X, np.zeros_like(A))
    with pytest.raises(InvalidData, match="names vertex 60"):
        NetworkCompletion(FEW).fit(X, [(0, 60)])


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
    again = pickle.loads(pickle.dumps(network))
    assert (again.predict(U) == network.predict(U)).all()


@pytest.mark.parametrize(
    ("links", "parameters", "error", "message"),
    [
        (np.zeros((30, 4)), {}, InvalidData, "no links"),
        (np.full((30, 4), np.nan), {}, InvalidData, "in row 0"),
        (np.ones(30), {}, InvalidData, "must be a matrix"),
        (np.ones((30, 4)), {"similarity": np.eye(3)}, InvalidData, r"\(4, 4\)"),
        (np.ones((30, 4)), {"similarity": "cosine"}, InvalidParameter, "'profile'"),
    ],
)
def test_bipartite_refusals(links, parameters, error, message):
    with pytest.raises(error, match=message):
        BipartiteNetwork(Ridge(), **parameters).fit(np.zeros((30, 2)), links)


def test_column_weights_of_the_wrong_width():
    U, _, links = bipartite(3)
    network = BipartiteNetwork(Ridge()).fit(U, links)
    with pytest.raises(InvalidData, match="20 columns"):
        network.predict_new(U, np.ones((2, 19)))
