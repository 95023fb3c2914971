"""Compiled loops over groups of ranked rows against their naive twins and against scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from tests.reference import ranking as naive

from hilboost.backends import ranking as compiled
from hilboost.backends.logistic_pairs import pairwise_gradients

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


def both(function, *arguments, n_results, n, modules=(compiled, naive), n_groups=0):
    """Results (n,) of both, and one (n_groups,) if there is a number of groups."""
    found = []
    for module in modules:
        results = [np.full(n, np.nan) for _ in range(n_results)]
        results += [np.full(n_groups, np.nan)] * (n_groups > 0)
        getattr(module, function.__name__)(*arguments, *results)
        found.append(results)
    return found


def discounts(starts):
    return 1 / np.log2(2 + np.arange(np.diff(starts).max()))


def order_of(starts, rng):
    """The rows of each group in any order."""
    groups = itertools.pairwise(starts.tolist())
    return np.concatenate([rng.permutation(np.arange(*ends)) for ends in groups])


def scratch_of(starts, rng):
    n, ideals = starts[-1], np.full(len(starts) - 1, np.nan)
    return order_of(starts, rng), ideals, *(np.empty(n) for _ in range(9))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
def test_group_ndcg(seed, k):
    rng, starts, gains, scores = draw(seed)
    arguments = gains, scores, starts, k, discounts(starts), scratch_of(starts, rng)[:3]
    (ours,), (twin,) = both(compiled.group_ndcg, *arguments, n_results=1, n=len(starts) - 1)
    np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("normalized", [False, True])
def test_lambda_gradients(seed, k, normalized):
    rng, starts, gains, scores = draw(seed)
    n = len(gains)
    arguments = gains, scores, starts, k, discounts(starts), normalized, scratch_of(starts, rng)
    sizes = {"n": n, "n_groups": len(starts) - 1}
    ours, twin = both(compiled.lambda_gradients, *arguments, n_results=2, **sizes)
    for own, other in zip(ours, twin, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("order", ["kept", "reversed", "any"])
def test_long_groups(order):
    """They are sorted in another way, unless they are nearly sorted."""
    rng = np.random.default_rng(0)
    starts, n = np.array([0, 150, 210]), 210
    gains, scores = rng.integers(4, size=n).astype(float), rng.normal(size=n)
    arguments, scratch = (gains, scores, starts, 9, discounts(starts)), scratch_of(starts, rng)
    if order == "reversed":
        scratch[0][:] = np.lexsort((scores, np.arange(n) >= 150))
    sizes = {"n": n, "n_groups": 2}
    ours, twin = both(compiled.lambda_gradients, *arguments, True, scratch, n_results=2, **sizes)
    for own, other in zip(ours, twin, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-13)
    if order == "any":
        scratch = scratch_of(starts, rng)
    ours, twin = both(compiled.group_ndcg, *arguments, scratch[:3], n_results=1, n=2)
    np.testing.assert_allclose(ours, twin, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("drawn", [False, True])
def test_listwise_gradients(seed, drawn):
    rng, starts, gains, scores = draw(seed)
    key, numbers = np.uint64(rng.integers(2**63)), rng.permutation(len(starts) - 1)
    arguments = gains, scores, starts, key, numbers, drawn, order_of(starts, rng)
    ours, twin = both(compiled.listwise_gradients, *arguments, n_results=3, n=len(gains))
    np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 99])
def test_ndcg_of_sklearn(seed, k):
    """scikit-learn averages over ties, too."""
    rng = np.random.default_rng(seed)
    gains, scores = rng.uniform(size=40), rng.integers(9, size=40).astype(float)
    starts, result = np.array([0, 40]), np.empty(1)
    scratch = scratch_of(starts, rng)[:3]
    compiled.group_ndcg(gains, scores, starts, k, discounts(starts), scratch, result)
    assert result[0] == pytest.approx(ndcg_score(gains[None], scores[None], k=k))


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_the_rows_changes_no_bit(seed):
    rng = np.random.default_rng(seed)
    n = 60
    gains, scores = rng.integers(4, size=n) / 3, rng.integers(9, size=n) / 7
    starts, moved = np.array([0, n]), rng.permutation(n)
    table = 1 / np.log2(2 + np.arange(n))
    results = []
    for order in (np.arange(n), moved):
        g, s, found = gains[order], scores[order], np.empty((5, n))
        scratch = scratch_of(starts, rng)
        given = g, s, starts, 7, table, True, scratch
        compiled.lambda_gradients(*given, found[0], found[1], np.empty(1))
        for with_values in (False, True):
            pairwise_gradients(
                g, s, starts, 99, with_values, scratch[:1] + scratch[3:9], *found[2:]
            )
        results.append(found)
    np.testing.assert_array_equal(results[0][:, moved], results[1])
