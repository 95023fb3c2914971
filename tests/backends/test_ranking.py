"""Compiled loops over groups of ranked rows against their naive twins and against scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from tests.reference import drawn_orders
from tests.reference import ranking as naive

from hilboost.backends import ranking as compiled
from hilboost.backends.drawn_orders import GroupDraws, listwise_gradients
from hilboost.backends.logistic_pairs import pairwise_gradients
from hilboost.backends.ranking import ByPlace, GroupedRows, Positions, RowGradients

SEEDS = range(8)


def draw(seed, largest=6, n_scores=4):
    """Groups of 1 to ``largest`` rows with ties in scores and gains."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, largest + 1, size=12))])
    n = starts[-1]
    gains = np.exp2(rng.integers(0, 4, size=n)) - 1
    gains[starts[3] : starts[4]] = 0.0
    gains[starts[5] : starts[6]] = 3.0
    scores = rng.choice(rng.normal(size=n_scores) * 3, size=n)
    return rng, starts, gains, scores


def discounts(starts):
    return 1 / np.log2(2 + np.arange(np.diff(starts).max()))


def order_of(starts, rng):
    """The rows of each group in any order."""
    groups = itertools.pairwise(starts.tolist())
    return np.concatenate([rng.permutation(np.arange(*ends)) for ends in groups])


def rows_of(draw, rng):
    starts, gains, scores = draw
    return GroupedRows(gains, scores, starts, order_of(starts, rng))


def positions_of(starts, k):
    return Positions(k, discounts(starts), np.full(len(starts) - 1, np.nan), np.empty(starts[-1]))


def by_place(starts):
    return ByPlace(*(np.empty(np.diff(starts).max()) for _ in ByPlace._fields))


def draws_of(starts, rng):
    return GroupDraws(np.uint64(rng.integers(2**63)), rng.permutation(len(starts) - 1))


def gradients_of(n):
    """Gradients that are not written yet."""
    return RowGradients(np.full(n, np.nan), np.full(n, np.nan))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
def test_group_ndcg(seed, k):
    rng, *drawn = draw(seed)
    starts = drawn[0]
    results = np.full((2, len(starts) - 1), np.nan)
    for module, result in zip((compiled, naive), results, strict=True):
        module.group_ndcg(rows_of(drawn, rng), positions_of(starts, k), result)
    np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-15)


def lambda_gradients_of(rows, positions, normalized):
    """Gradients and NDCG of both."""
    found = []
    for module in (compiled, naive):
        written, ndcg = gradients_of(len(rows.gains)), np.full(len(rows.starts) - 1, np.nan)
        ranked = by_place(rows.starts)
        module.lambda_gradients(rows, positions, normalized, ranked, written, ndcg)
        found.append((*written, ndcg))
    return found


def assert_near(found):
    for ours, twin in zip(*found, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("normalized", [False, True])
def test_lambda_gradients(seed, k, normalized):
    rng, *drawn = draw(seed)
    assert_near(lambda_gradients_of(rows_of(drawn, rng), positions_of(drawn[0], k), normalized))


@pytest.mark.parametrize("order", ["kept", "reversed", "any"])
def test_long_groups(order):
    """They are sorted in another way, unless they are nearly sorted."""
    rng = np.random.default_rng(0)
    starts, n = np.array([0, 150, 210]), 210
    gains, scores = rng.integers(4, size=n).astype(float), rng.normal(size=n)
    rows, positions = rows_of((starts, gains, scores), rng), positions_of(starts, 9)
    if order == "reversed":
        rows.order[:] = np.lexsort((scores, np.arange(n) >= 150))
    assert_near(lambda_gradients_of(rows, positions, True))
    if order == "any":
        rows, positions = rows_of((starts, gains, scores), rng), positions_of(starts, 9)
    ours, twin = np.empty((2, 2))
    compiled.group_ndcg(rows, positions, ours)
    naive.group_ndcg(rows, positions, twin)
    np.testing.assert_allclose(ours, twin, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("drawn", [False, True])
def test_listwise_gradients(seed, drawn):
    rng, *given = draw(seed)
    rows, draws, found = rows_of(given, rng), draws_of(given[0], rng), []
    for function in (listwise_gradients, drawn_orders.listwise_gradients):
        values, written = np.full(len(rows.gains), np.nan), gradients_of(len(rows.gains))
        function(rows, draws, drawn, values, written)
        found.append((values, *written))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 99])
def test_ndcg_of_sklearn(seed, k):
    """scikit-learn averages over ties, too."""
    rng = np.random.default_rng(seed)
    gains, scores = rng.uniform(size=40), rng.integers(9, size=40).astype(float)
    starts, result = np.array([0, 40]), np.empty(1)
    rows = rows_of((starts, gains, scores), rng)
    compiled.group_ndcg(rows, positions_of(starts, k), result)
    assert result[0] == pytest.approx(ndcg_score(gains[None], scores[None], k=k))


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_the_rows_changes_no_bit(seed):
    rng = np.random.default_rng(seed)
    n = 60
    gains, scores = rng.integers(4, size=n) / 3, rng.integers(9, size=n) / 7
    starts, moved = np.array([0, n]), rng.permutation(n)
    results = []
    for order in (np.arange(n), moved):
        found = np.empty((5, n))
        rows, ranked = rows_of((starts, gains[order], scores[order]), rng), by_place(starts)
        written, positions = RowGradients(*found[:2]), positions_of(starts, 7)
        compiled.lambda_gradients(rows, positions, True, ranked, written, np.empty(1))
        for with_values in (False, True):
            written = RowGradients(*found[3:])
            pairwise_gradients(rows, 99, with_values, ranked, found[2], written)
        results.append(found)
    np.testing.assert_array_equal(results[0][:, moved], results[1])
