"""Thresholds of a column: none between values that differ by rounding alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.engine.table import column_edges

EPS = np.finfo(np.float64).eps


def bins_of(values, edges):
    return np.searchsorted(edges, values)


def distinct_numbers(rng, kind, size):
    if kind == "sines":
        return np.unique(np.round(np.sin(2 * np.pi * np.arange(size) / size), 9))
    if kind == "decimals":
        return np.unique(rng.integers(-500, 500, size=size)) / 7
    return np.unique(rng.normal(size=size)) * rng.choice([1e-290, 1e-20, 1.0, 1e12, 1e25, 1e290])


@given(
    st.integers(0, 10**6),
    st.sampled_from(["sines", "decimals", "scaled"]),
    st.sampled_from([3, 40, 600]),
    st.sampled_from([2, 16, 255]),
    st.booleans(),
)
def test_results_of_other_formulas_share_the_bin_of_a_number(seed, kind, size, max_bins, weighted):
    rng = np.random.default_rng(seed)
    numbers = distinct_numbers(rng, kind, size)
    scale = np.median(np.abs(numbers[numbers != 0]))
    noise = EPS * rng.integers(-2, 3, size=(4, len(numbers)))
    rounded = numbers + noise * np.maximum(np.abs(numbers), scale)
    weight = rng.uniform(0.5, 2, size=rounded.size) if weighted else None
    edges = column_edges(rounded.ravel(), weight, max_bins)
    assert 1 <= len(edges) <= max_bins - 1
    np.testing.assert_array_equal(bins_of(rounded, edges), [bins_of(numbers, edges)] * 4)
    if len(numbers) <= max_bins:
        assert len(edges) == len(numbers) - 1


@given(st.integers(0, 10**6), st.sampled_from([2.0**50, 2.0**53, 1.7e18, 2.0**63]))
def test_integers_stay_apart(seed, start):
    steps = np.random.default_rng(seed).choice(100, size=30, replace=False)
    values = start + np.spacing(start) * np.maximum(1, np.ceil(1 / np.spacing(start))) * steps
    assert len(np.unique(bins_of(values, column_edges(values, None, 255)))) == 30


@pytest.mark.parametrize(
    "values",
    [
        10.0 ** np.arange(-12, 1),  # p-values
        np.array([1e-12, 2e-12, 0.3, 0.5, 1.0]),
        10.0 ** np.linspace(-300, 0, 60),
        5e-324 * np.arange(9),
        1e-300 * np.arange(1, 9),
        np.array([1e-12, 2e-12, 3e-12, 4e-12, -999.0]),  # a code for missing values
        1.0 + EPS * np.arange(500),  # denser than rounding permits to tell
        np.float32(0.7) + np.float32(2**-24) * np.arange(9, dtype=np.float32),
        np.array([-1.7e308, 0.0, 1.7e308]),
    ],
)
def test_small_values_that_mean_something_stay_apart(values):
    edges = column_edges(values, None, 600)
    assert len(np.unique(bins_of(values, edges))) == len(values)


@pytest.mark.parametrize("rows", [np.arange(12), np.arange(9), np.arange(1, 18, 2)])
def test_zeros_of_a_cosine_are_one_value(rows):
    quarters = np.cos(0.5 * np.pi * np.append(rows, [0, 2, 4, 6]))
    assert len(np.unique(quarters)) > 5
    np.testing.assert_allclose(column_edges(quarters, None, 255), [-0.5, 0.5])
