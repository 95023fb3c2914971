"""Sets of links: against a naive twin of conformal risk control, and what they promise."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from tests.network.test_networks import FEW, communities

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.network import BipartiteNetwork, NetworkCompletion


def parts(seed=0, n=120):
    """Known vertices, held-out ones, new ones, each with its links to the known ones."""
    X, A = communities(seed, n)
    known, held, new = np.arange(40), np.arange(40, 80), np.arange(80, n)
    return X, A, known, held, new


def risk_control(scores, links, coverage):
    """The highest threshold whose corrected mean share of missed links is small enough."""
    rows = [(s, np.flatnonzero(y)) for s, y in zip(scores, links, strict=True)]
    for threshold in np.sort(np.append(scores[links > 0], np.inf))[::-1]:
        missed = [(s[y] < threshold).mean() if len(y) else 0.0 for s, y in rows]
        if (sum(missed) + 1) / (len(rows) + 1) <= 1 - coverage + 1e-9:
            return threshold
    raise AssertionError("too few rows")


@pytest.mark.parametrize(
    "make", [lambda: NetworkCompletion(FEW), lambda: BipartiteNetwork(Ridge())]
)
def test_the_threshold_equals_its_twin(make):
    X, A, known, held, new = parts()
    A[held[0]] = A[:, held[0]] = 0  # a vertex without links
    network = make().fit(X[known], A[np.ix_(known, known)])
    scores = getattr(network, "predict_kernel", network.predict)(X[held])
    links = A[np.ix_(held, known)]
    network.calibrate(X[held], scipy.sparse.csr_array(links))
    for coverage in (0.5, 0.8, 0.9):
        threshold = risk_control(scores, links, coverage)
        found = network.predict_set(X[new], coverage)
        expected = getattr(network, "predict_kernel", network.predict)(X[new]) >= threshold
        np.testing.assert_array_equal(found, expected)


def test_the_average_share_of_the_links_is_what_was_asked_for():
    X, A, known, _, _ = parts()
    network = BipartiteNetwork(Ridge()).fit(X[known], A[np.ix_(known, known)])
    rng, shares = np.random.default_rng(0), []
    W = rng.normal(size=(3, 40))
    for _ in range(400):  # held-out rows and one new row of the same kind
        Z = rng.normal(size=(20, 3))
        links = rng.random((20, 40)) < 1 / (1 + np.exp(2 - Z @ W))
        network.calibrate(Z[:19], links[:19])
        (found,) = network.predict_set(Z[19:], 0.8)
        shares.append(found[links[19]].mean() if links[19].any() else 1.0)
    # A share has a standard deviation of at most 1/2, their mean of 1/40.
    assert np.mean(shares) >= 0.8 - 3 / 40


def test_refusals():
    X, A, known, held, new = parts()
    network = NetworkCompletion(FEW)
    with pytest.raises(NotFittedError):
        network.predict_set(X)
    network.fit(X[known], A[np.ix_(known, known)])
    with pytest.raises(InvalidData, match=r"predict_set needs vertices.*call calibrate"):
        network.predict_set(X)
    with pytest.raises(
        InvalidData, match=r"one column per known vertex, \(40, 40\); got \(40, 3\)"
    ):
        network.calibrate(X[held], A[held, :3])
    with pytest.raises(InvalidData, match="links has a missing or infinite entry in row 1"):
        network.calibrate(X[:2], np.array([[0] * 40, [np.nan] * 40]))
    network.calibrate(X[held[:8]], A[np.ix_(held[:8], known)])
    with pytest.raises(InvalidData, match="requires at least 9 calibration rows; got 8"):
        network.predict_set(X[new], 0.9)
    with pytest.raises(InvalidParameter, match="coverage must be between 0 and 1"):
        network.predict_set(X[new], 1)
    network.fit(X[known], A[np.ix_(known, known)])
    with pytest.raises(InvalidData, match="call calibrate"):
        network.predict_set(X[new])
