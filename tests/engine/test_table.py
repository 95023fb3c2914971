"""Bins: few, as even as the values allow, and faithful where there are few values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.histogram import bins_of

from hilboost.backends.threads import ThreadTeam
from hilboost.engine.table import bin_table, column_edges
from hilboost.tables.blocks import DenseTable
from hilboost.tables.sparse import SparseTable


def masses(values, edges, weight=None):
    """Weight in every bin."""
    return np.bincount(np.searchsorted(edges, values), weights=weight, minlength=len(edges) + 1)


@given(st.integers(0, 10**6), st.integers(2, 255), st.booleans(), st.sampled_from([1, 2, 4]))
def test_there_are_at_most_max_bins(seed, max_bins, weighted, digits):
    rng = np.random.default_rng(seed)
    values = np.round(rng.standard_t(2, size=500), digits)
    weight = rng.gamma(0.3, size=500) + 1e-6 if weighted else None
    edges = column_edges(values, weight, max_bins)
    assert len(edges) <= max_bins - 1
    assert (np.diff(edges) > 0).all()
    assert (masses(values, edges) > 0).all()


@given(st.integers(0, 10**6), st.integers(2, 255))
def test_every_distinct_value_has_a_bin_where_there_are_few(seed, n_values):
    rng = np.random.default_rng(seed)
    distinct = np.unique(rng.normal(size=n_values))
    values = rng.permutation(np.repeat(distinct, rng.integers(1, 5, size=len(distinct))))
    edges = column_edges(values, None, 255)
    np.testing.assert_array_equal(edges, distinct[:-1] + np.diff(distinct) / 2)


@given(st.integers(0, 10**6), st.sampled_from([4, 16, 100]))
def test_bins_of_continuous_values_are_even(seed, max_bins):
    values = np.random.default_rng(seed).normal(size=1000)
    mass = masses(values, column_edges(values, None, max_bins))
    assert len(mass) == max_bins
    assert mass.max() <= 1000 / max_bins + 1


@given(st.integers(0, 10**6))
def test_weights_are_counted_like_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.normal(size=400), rng.integers(1, 6, size=400)
    weighted = column_edges(values, weight.astype(float), 32)
    np.testing.assert_array_equal(weighted, column_edges(np.repeat(values, weight), None, 32))


def test_heavy_rows_get_narrow_bins():
    values = np.arange(1000.0)
    weight = np.where(values < 100, 9.0, 0.1)
    edges = column_edges(values, weight, 20)
    assert (edges < 100).sum() >= 15
    assert masses(values, edges, weight).max() <= 2 * weight.sum() / 20


@pytest.mark.parametrize("position", [0.0, 0.5, 1.0])
def test_a_heavy_value_stands_alone(position):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(size=1000), np.full(2000, position)])
    edges = column_edges(values, None, 16)
    bins = np.searchsorted(edges, values)
    assert len(np.unique(values[bins == bins[-1]])) == 1
    assert len(edges) >= 10


@pytest.mark.parametrize("max_bins", [2, 3, 5])
def test_few_bins_for_many_heavy_values(max_bins):
    values = np.repeat(np.arange(40.0), np.where(np.arange(40) % 2, 1, 50))
    edges = column_edges(values, None, max_bins)
    assert 1 <= len(edges) <= max_bins - 1


def test_neighboring_integers_are_told_apart():
    low = 2.0**53
    high = np.nextafter(low, np.inf)
    (edge,) = column_edges(np.array([low, high, low]), None, 255)
    assert low <= edge < high


def test_thresholds_between_the_largest_numbers_are_finite():
    values = np.array([-1.7e308, 1.7e308])
    (edge,) = column_edges(values, None, 255)
    assert values[0] <= edge < values[1]


def test_missing_values_have_no_edges():
    values = np.array([np.nan, 1, 2, np.nan])
    np.testing.assert_array_equal(column_edges(values, None, 255), [1.5])
    assert len(column_edges(np.full(4, np.nan), None, 255)) == 0
    assert len(column_edges(np.full(4, 2.0), None, 255)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_table_holds_the_bin_of_every_value(dtype, n_threads):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.round(rng.normal(size=3000), k) for k in range(11)]).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 3], X[:, 4] = np.nan, 7
    with ThreadTeam(n_threads) as team:
        table = bin_table(X, None, 64, 0, team)
    assert table.n_values[[3, 4]].tolist() == [1, 1]
    assert table.n_bins == table.n_values.max() + 1 <= 65
    for k in range(11):
        bins, missing = bins_of(table.words, k), np.isnan(X[:, k])
        edges = table.thresholds[k, : table.n_values[k] - 1]
        assert np.isinf(table.thresholds[k, table.n_values[k] - 1 :]).all()
        assert (bins[missing] == table.n_bins - 1).all()
        values = X[~missing, k].astype(np.float64)
        np.testing.assert_array_equal(bins[~missing], np.searchsorted(edges, values))


def test_a_sample_of_the_rows_is_enough():
    X = np.random.default_rng(0).normal(size=(300_000, 1))
    table = bin_table(X, None, 10, 0, ThreadTeam(1))
    mass = np.bincount(bins_of(table.words, 0), minlength=10)
    assert len(mass) == 10
    assert 0 < np.abs(mass - 30_000).max() < 500


@pytest.mark.parametrize("n", [700, 200_100], ids=["all rows", "sample"])
def test_every_kind_of_table_has_the_bins_of_an_array(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9)) * (rng.uniform(size=(n, 9)) < 0.3)
    order = rng.permutation(n).astype(np.uint32)
    back = np.argsort(order).astype(np.uint32)
    kinds = np.asfortranarray(X), DenseTable(list(X.T)), DenseTable(X[order])[back], SparseTable(X)
    expected = bin_table(X, None, 20, 0, ThreadTeam(1))
    with ThreadTeam(2) as team:
        for kind in kinds:
            found = bin_table(kind, None, 20, 0, team)
            np.testing.assert_array_equal(found.thresholds, expected.thresholds)
            np.testing.assert_array_equal(found.words, expected.words)


@pytest.mark.parametrize("kind", ["numbers", "missing", "infinite"])
@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257, 1000, 4999])
@pytest.mark.parametrize("max_bins", [2, 7, 254, 255])
def test_values_that_all_differ_have_the_thresholds_of_their_masses(kind, n, max_bins):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n)
    if kind == "missing":
        values[rng.random(n) < 0.3] = np.nan
    elif kind == "infinite" and n:
        values[0], values[-1] = np.inf, -np.inf
    ones = np.ones(n)
    found, expected = (column_edges(values, weight, max_bins) for weight in (None, ones))
    np.testing.assert_array_equal(found, expected)
