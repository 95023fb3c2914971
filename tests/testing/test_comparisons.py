"""Paired tests: against scipy, closed forms and enumeration, and what does not change them."""

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.testing import paired_test

# Extra hours of sleep of ten patients under two drugs (Student 1908): t = -4.0621, p = 0.002833.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
TESTS = [("t", None), ("corrected_t", 1 / 9), ("wilcoxon", None)]


def errors(seed, n=9):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n), rng.exponential(size=n)


def test_the_data_of_student():
    found = paired_test(*SLEEP)
    assert found.statistic == pytest.approx(-4.0621, abs=5e-5)
    assert found.p_value == pytest.approx(0.002833, abs=5e-7)
    assert found.mean_difference == pytest.approx(-1.58)
    assert (found.test, found.n) == ("t", 10)


@pytest.mark.parametrize("seed", range(5))
def test_the_t_test_is_that_of_scipy(seed):
    found, expected = paired_test(*errors(seed)), scipy.stats.ttest_rel(*errors(seed))
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("share", [1e-12, 1 / 9, 4.0])
def test_the_correction_in_closed_form(share):
    plain = paired_test(*SLEEP)
    found = paired_test(*SLEEP, "corrected_t", test_to_train=share)
    assert found.statistic == pytest.approx(plain.statistic / np.sqrt(1 + 10 * share))
    # The density of t with 9 degrees of freedom, summed from the statistic on.
    grid = np.linspace(abs(found.statistic), 400, 4_000_001)
    tail = (1 + grid**2 / 9) ** -5
    whole = np.linspace(0, 400, 4_000_001)
    share_of_tail = np.trapezoid(tail, grid) / np.trapezoid((1 + whole**2 / 9) ** -5, whole)
    assert found.p_value == pytest.approx(share_of_tail, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_signed_ranks_by_enumeration(seed):
    a, b = errors(seed, 8)
    ranks = scipy.stats.rankdata(np.abs(a - b))
    smaller = min(ranks[a > b].sum(), ranks[a < b].sum())
    sums = [ranks[np.array(signs, dtype=bool)].sum() for signs in product([0, 1], repeat=8)]
    found = paired_test(a, b, "wilcoxon")
    assert found.statistic == smaller
    assert found.p_value == pytest.approx(min(1.0, 2 * np.mean(np.array(sums) <= smaller)))


@pytest.mark.parametrize(("test", "share"), TESTS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_what_does_not_change_a_test(test, share, seed, n):
    a, b = errors(seed, n)
    found = paired_test(a, b, test, test_to_train=share)
    assert 0 <= found.p_value <= 1
    order = np.random.default_rng(seed).permutation(n)
    for first, second, sign in ((a[order], b[order], 1), (4 * a, 4 * b, 1), (b, a, -1)):
        other = paired_test(first, second, test, test_to_train=share)
        assert other.p_value == pytest.approx(found.p_value)
        assert np.sign(other.mean_difference) == sign * np.sign(found.mean_difference)
    if test == "corrected_t":
        assert found.p_value >= paired_test(a, b).p_value


def test_under_equal_methods_the_t_test_rejects_one_in_twenty():
    rng = np.random.default_rng(0)
    p = [paired_test(*rng.normal(size=(2, 10))).p_value for _ in range(2000)]
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(("test", "share"), TESTS)
def test_equal_differences(test, share):
    ones = np.ones(6)
    assert paired_test(ones, ones, test, test_to_train=share).p_value == 1
    found = paired_test(2 * ones, ones, test, test_to_train=share)
    assert found.p_value == (2 / 2**6 if test == "wilcoxon" else 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], [2.0]), InvalidData, "at least 2; got 1 and 1"),
        (([1.0, 2.0], [2.0, 3.0, 4.0]), InvalidData, "the same length, at least 2; got 2 and 3"),
        (([1.0, np.nan], [2.0, 3.0]), InvalidData, "first has a missing .* in split 1"),
        (([1.0, 2.0], [[2.0, 3.0]]), InvalidData, r"second must be a vector .* got \(1, 2\)"),
        ((["a", "b"], [1.0, 2.0]), InvalidData, "first must contain numbers"),
        (([1.0, 2.0], [2.0, 3.0], "wilcoxen"), InvalidParameter, "Did you mean 'wilcoxon'"),
        (([1.0, 2.0], [2.0, 3.0], "corrected_t"), InvalidParameter, "requires test_to_train"),
    ],
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        paired_test(*arguments)


def test_refused_shares():
    pairs = [1.0, 2.0], [2.0, 4.0]
    with pytest.raises(InvalidParameter, match="the other tests do not use it; got test='t'"):
        paired_test(*pairs, test_to_train=1 / 9)
    for share in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidParameter, match="test_to_train must be a positive number"):
            paired_test(*pairs, "corrected_t", test_to_train=share)
