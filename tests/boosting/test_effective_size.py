"""How many rows weighted data count as."""

import time
from fractions import Fraction
from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hilboost import BoostingRegressor
from hilboost.boosting.effective_size import common_unit, weight_scale
from hilboost.core.target import Target
from hilboost.reductions.sums import total_weight
from hilboost.tables import SparseTable

factors = st.sampled_from([2.0**-40, 1e-9, 0.37, 1.0, 3.0, 2.0**30, 1e12])


def naive(X, y, weight):
    """The mass of a row, from a dictionary of the distinct rows and exact arithmetic."""
    masses = {}
    for x, target, w in zip(X.tolist(), y.tolist(), weight, strict=True):
        key = (*("nan" if v != v else v for v in x), *target)
        masses[key] = masses.get(key, 0) + Fraction(w)
    m = list(masses.values())
    kish = sum(v * v for v in m) / sum(m)
    if all((v / min(m)).denominator == 1 for v in m):
        return min(m)
    if sum(m) < 50 * kish:
        shared = lcm(*(v.denominator for v in m))
        return Fraction(gcd(*(int(v * shared) for v in m)), shared)
    return kish


def draw(seed, n):
    """Some rows several times, some values missing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(n, 2)).astype(float)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X, rng.integers(0, 3, size=(n, 1)).astype(float), rng


@given(st.integers(0, 10**6), st.sampled_from([1, 5, 40, 300]), st.integers(1, 3), factors)
def test_the_scale_is_that_of_the_definition(seed, n, least, factor):
    X, y, rng = draw(seed, n)
    weight = rng.integers(least, 6, size=n)
    expected = float(naive(X, y, weight.tolist()))
    found = weight_scale(X, Target(y, weight * factor))
    assert found.plain_row == pytest.approx(expected * factor, rel=1e-12)
    sparse = weight_scale(SparseTable(csr_array(X)), Target(y, weight * factor))
    assert sparse.plain_row == pytest.approx(found.plain_row, rel=1e-12)
    rows = total_weight(found.divided(Target(y, weight * factor))) / found.row
    assert rows == pytest.approx(weight.sum() / expected, rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([5, 40, 300]))
def test_whole_weights_are_repetitions(seed, n):
    X, y, rng = draw(seed, n)
    weight = rng.integers(1, 4, size=n)
    repeated = Target(np.repeat(y, weight, axis=0))
    found = weight_scale(np.repeat(X, weight, axis=0), repeated)
    expected = weight_scale(X, Target(y, weight.astype(float)))
    assert found.plain_row == pytest.approx(expected.plain_row, rel=1e-12)


@given(st.integers(0, 10**6), factors)
def test_fractional_weights_are_proportions(seed, factor):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(300, 2)), rng.normal(size=(300, 1)), rng.uniform(0.1, 3, 300)
    found = weight_scale(X, Target(y, weight * factor))
    assert found.plain_row == pytest.approx(factor * (weight @ weight) / weight.sum(), rel=1e-12)
    split = np.r_[weight / 4, weight * 3 / 4] * factor
    again = weight_scale(np.vstack([X, X]), Target(np.vstack([y, y]), split))
    assert again.plain_row == pytest.approx(found.plain_row, rel=1e-12)


def test_rows_without_weights_count_as_they_are():
    """Also if most of them are repeated: a table of categories is no table of proportions."""
    X, y, _ = draw(0, 5000)
    X[0] = 99
    assert weight_scale(X, Target(y)).plain_row == 1
    coins = np.random.default_rng(0).integers(2, size=(10_001, 2)).astype(float)
    assert weight_scale(coins[:, :1], Target(coins[:, 1:])).plain_row == 1
    twice = weight_scale(np.vstack([X, X]), Target(np.vstack([y, y])))
    assert (twice.divisor, twice.row) == (1, 2)


def test_balanced_classes_count_as_their_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), (np.arange(1000) < 301).astype(float)[:, None]
    weight = np.where(y[:, 0] == 1, 1000 / (2 * 301), 1000 / (2 * 699))
    assert weight_scale(X, Target(y, weight), balanced=True).plain_row == 1
    halves = weight_scale(X, Target(y, weight * 0.5), balanced=True)
    assert halves.plain_row == pytest.approx(0.5)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), factors)
def test_the_common_unit_is_the_greatest_common_divisor(multiples, factor):
    found = common_unit(np.array(multiples) * factor)
    assert found == pytest.approx(gcd(*multiples) * factor, rel=1e-12)


def test_numbers_without_a_common_unit():
    assert common_unit(np.random.default_rng(0).uniform(1, 2, size=6)) is None
    assert common_unit(np.array([1.0, np.sqrt(2), np.pi])) is None


def test_signs_of_zeros_and_kinds_of_nan_do_not_tell_rows_apart():
    X = np.array([[0.0, np.nan], [-0.0, -np.nan], [1.0, np.nan], [1.0, np.nan]])
    assert weight_scale(X, Target(np.zeros((4, 1)))).plain_row == 2


def test_the_cost_is_a_small_part_of_a_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 10)), rng.normal(size=100_000)
    weight = rng.uniform(0.5, 2, size=100_000)
    model = BoostingRegressor(n_estimators=100, early_stopping=False, n_jobs=1)
    weight_scale(X, Target(y[:, None], weight))
    model.set_params(n_estimators=1).fit(X[:1000], y[:1000], sample_weight=weight[:1000])
    seconds = [_seconds(lambda: weight_scale(X, Target(y[:, None], weight))) for _ in range(5)]
    model.set_params(n_estimators=100)
    whole = _seconds(lambda: model.fit(X, y, sample_weight=weight))
    assert min(seconds) < 0.02 * whole


def _seconds(work):
    """Return the processor time of ``work``, which other processes do not change."""
    began = time.process_time()
    work()
    return time.process_time() - began
