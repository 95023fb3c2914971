"""Known vertices by their predicted points (G2007, eq. 7), and the areas AUC(LS) and AUC(TS)."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.network.test_networks import FEW, communities

from hilboost import OutputKernelForestRegressor, OutputKernelTreeRegressor
from hilboost.core.errors import InvalidData
from hilboost.network import NetworkCompletion, diffusion_kernel, link_curves
from hilboost.network.curves import curves_of_blocks

PATH = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
BETA = 0.7


def path_kernel():
    """The diffusion kernel of the path 0 - 1 - 2, whose Laplacian has the eigenvalues 0, 1, 3."""
    one, three = np.exp(-BETA), np.exp(-3 * BETA)
    ends, center = 1 / 3 + one / 2 + three / 6, 1 / 3 + 2 * three / 3
    beside, apart = 1 / 3 - three / 3, 1 / 3 - one / 2 + three / 6
    return np.array([[ends, beside, apart], [beside, center, beside], [apart, beside, ends]])


def stump(known_points):
    """A tree with the leaves {0, 1} and {2}, fitted to the path."""
    tree = OutputKernelTreeRegressor(max_splits=1, random_state=0)
    network = NetworkCompletion(tree, coefficient=BETA, known_points=known_points)
    return network.fit(np.array([[0.0], [0.0], [1.0]]), PATH)


def test_a_path_and_a_stump_in_closed_form():
    K = path_kernel()
    np.testing.assert_allclose(diffusion_kernel(PATH, BETA), K)
    within = (K[0, 0] + 2 * K[0, 1] + K[1, 1]) / 4  # |mean of φ(0) and φ(1)|²
    across = (K[0, 2] + K[1, 2]) / 2
    new = np.array([[0.0], [1.0]])
    predicted = stump("predicted").predict_kernel(new)
    np.testing.assert_allclose(predicted, [[within, within, across], [across, across, K[2, 2]]])
    exact = stump("exact").predict_kernel(new)
    np.testing.assert_allclose(exact, [(K[0] + K[1]) / 2, K[2]])


def test_areas_of_a_path_in_closed_form():
    # The pairs (0, 1) and (1, 2) are linked; (1, 2) and (0, 2) have the same score.
    X = np.array([[0.0], [0.0], [1.0]])
    for known_points in ("exact", "predicted"):
        assert stump(known_points).curves_within(X, PATH).auroc == 0.75
    # New vertices p and q in the first leaf, r in the second.  The scores are, with a < w < c,
    # p and q: w w a; r: a a c; p and q: w; p and r: a; q and r: a.
    new, known_links = np.array([[0.0], [0.0], [1.0]]), np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    new_links = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    curves = stump("predicted").curves(new, known_links, new_links)
    assert curves["new-new"].auroc == 0.75
    # Links have w, a, c, w, a; the other pairs have w three times and a four times.
    w, a, c = 4 + 3 / 2, 4 / 2, 7
    assert curves["new-any"].auroc == pytest.approx((2 * w + 2 * a + c) / 35)
    assert (curves["new-any"].n_links, curves["new-any"].n_pairs) == (5, 12)


@pytest.mark.parametrize(
    "model", [FEW, OutputKernelForestRegressor(n_estimators=20, random_state=0, n_jobs=1)]
)
def test_kernels_are_those_of_equation_7(model):
    X, A = communities(1)
    network = NetworkCompletion(model, coefficient=0.5, known_points="predicted").fit(X, A)
    new, _ = communities(9, 12)
    W, W_new = (np.asarray(_dense(network.model_.predict_weights(rows))) for rows in (X, new))
    K = diffusion_kernel(A, 0.5)
    np.testing.assert_allclose(network.predict_kernel(new), W_new @ K @ W.T, atol=1e-10)
    known = network.predict_kernel(X)
    np.testing.assert_allclose(known, known.T, atol=1e-12)
    np.testing.assert_allclose(known, network.predict_kernel(X, X))
    exact = clone(network).set_params(known_points="exact").fit(X, A)
    np.testing.assert_allclose(exact.predict_kernel(new), W_new @ K, atol=1e-10)
    assert (exact.predict_kernel(new, new) == network.predict_kernel(new, new)).all()


def _dense(weights):
    return weights.toarray() if hasattr(weights, "toarray") else weights


def test_known_points_change_with_the_stages():
    X, A = communities(2, 40)
    network = NetworkCompletion(FEW, known_points="predicted").fit(X, A)
    stages = list(network.staged_predict_kernel(X[:5]))
    assert len(stages) == 30
    np.testing.assert_allclose(stages[-1], network.predict_kernel(X[:5]))
    few = NetworkCompletion(clone(FEW).set_params(n_estimators=7), known_points="predicted")
    np.testing.assert_allclose(stages[6], few.fit(X, A).predict_kernel(X[:5]))


def test_threshold_and_stages_use_the_predicted_points():
    X, A = communities(4)
    network = NetworkCompletion(FEW, known_points="predicted").fit(X, A)
    assert np.triu(network.predict(X), 1).sum() == np.triu(A, 1).sum()
    network.set_params(validation_fraction=0.3, random_state=0).fit(X, A)
    order = np.random.RandomState(0).permutation(60)
    held, kept = np.sort(order[:18]), np.sort(order[18:])
    parts = NetworkCompletion(FEW, known_points="predicted").fit(X[kept], A[np.ix_(kept, kept)])
    areas = [
        link_curves(A[np.ix_(held, kept)], kernel).auroc
        for kernel in parts.staged_predict_kernel(X[held])
    ]
    assert network.n_stages_ == 1 + int(np.argmax(areas))


def test_a_copy_predicts_the_same():
    X, A = communities(3, 30)
    network = NetworkCompletion(FEW, known_points="predicted").fit(X, A)
    again = pickle.loads(pickle.dumps(network))
    assert (again.predict_kernel(X) == network.predict_kernel(X)).all()


def area(linked, others):
    """Share of (link, other pair) in which the link has the higher score; ties count half."""
    wins = [(a > b) + 0.5 * (a == b) for a in linked for b in others]
    return float(np.mean(wins))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 6))
def test_blocks_are_ranked_together(seed, m, n):
    rng = np.random.default_rng(seed)
    links, scores = rng.integers(2, size=(m, n)), rng.integers(4, size=(m, n))
    within, among = rng.integers(2, size=(m, m)), rng.integers(4, size=(m, m))
    pairs = [(links[i, j], scores[i, j]) for i in range(m) for j in range(n)]
    pairs += [(within[i, j], among[i, j]) for i in range(m) for j in range(i + 1, m)]
    split = [[score for link, score in pairs if link == kind] for kind in (1, 0)]
    blocks = [(links, scores, False), (within, among, True)]
    if not all(split):
        with pytest.raises(InvalidData, match="pairs are linked"):
            curves_of_blocks(blocks)
        return
    found = curves_of_blocks(blocks)
    assert found.auroc == pytest.approx(area(*split))
    # Neither the order of the vertices nor the unit of the scores matters.
    order = rng.permutation(m)
    shuffled = [(links[order], 3.0 * scores[order], False)]
    symmetric = [np.triu(table, 1) + np.triu(table, 1).T for table in (within, among)]
    shuffled += [(symmetric[0][order][:, order], 3.0 * symmetric[1][order][:, order], True)]
    assert curves_of_blocks(shuffled).auroc == pytest.approx(found.auroc)


def test_areas_of_new_vertices_are_of_all_their_pairs():
    X, A = communities(5)
    known, new = np.arange(45), np.arange(45, 60)
    blocks = A[np.ix_(new, known)], A[np.ix_(new, new)]
    for known_points in ("exact", "predicted"):
        network = NetworkCompletion(FEW, known_points=known_points)
        network.fit(X[known], A[np.ix_(known, known)])
        curves = network.curves(X[new], *blocks)
        parts = curves["new-known"], curves["new-new"]
        assert curves["new-any"].n_pairs == sum(part.n_pairs for part in parts)
        assert curves["new-any"].n_links == sum(part.n_links for part in parts)
        own = network.curves_within(X[known], A[np.ix_(known, known)])
        kernel = network.predict_kernel(X[known], X[known])
        assert own.auroc == link_curves(A[np.ix_(known, known)], kernel, within=True).auroc
        assert network.curves_within(X[new], blocks[1]).auroc == curves["new-new"].auroc


def test_refusals():
    X, A = communities(6, 20)
    with pytest.raises(ValueError, match=r"'known_points' .* must be .* Got 'true'"):
        NetworkCompletion(FEW, known_points="true").fit(X, A)
    network = NetworkCompletion(FEW, known_points="predicted").fit(X, A)
    with pytest.raises(InvalidData, match=r"must have the same shape; got \(20, 19\)"):
        network.curves_within(X, A[:, :19])
