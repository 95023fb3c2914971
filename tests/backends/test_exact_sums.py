"""Exact sums: any order, any grouping, any scale."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import exact_sums as twin
from tests.twins import compared

from hilboost.backends import exact_sums
from hilboost.backends.exact_sums import (
    count_of,
    empty_sums,
    exact,
    is_whole,
    mass_of,
    quotient,
    rounded,
    sum_of,
)

NONE = np.empty(0)
finite = st.floats(allow_nan=False, allow_infinity=False)
near_one = st.floats(-4, 4)
numbers = st.lists(st.one_of(finite, near_one), max_size=30).map(lambda a: np.array(a, np.float64))


def total_of(values, weights=NONE, whole=False, module=exact_sums):
    sums = empty_sums(1)
    module.add_numbers(np.asarray(values, dtype=np.float64), weights, whole, sums[0])
    return sums


def merged(parts):
    sums = empty_sums(1)
    for part in parts:
        exact_sums.merge_sums(sums, part)
    return sums


@given(values=numbers, data=st.data())
def test_sums_are_those_of_the_twin(values, data):
    kind = data.draw(st.sampled_from(["none", "whole", "fractions"]))
    n = len(values)
    of = {"none": st.just(1), "whole": st.integers(0, 9), "fractions": st.floats(1e-3, 1e3)}[kind]
    weights = np.array(data.draw(st.lists(of, min_size=n, max_size=n)), dtype=np.float64)
    if kind == "fractions":
        values = np.clip(values, -1e300, 1e300)
    weights = NONE if kind == "none" else weights
    arguments = values, weights, kind == "whole"
    compiled, naive = total_of(*arguments), total_of(*arguments, module=twin)
    assert exact(compiled[0]) == exact(naive[0]) == twin.value_of(compiled[0])
    assert compiled[0, 4] == naive[0, 4]


@given(values=numbers, data=st.data())
def test_neither_order_nor_grouping_matters(values, data):
    whole = total_of(values)
    shuffled = np.array(data.draw(st.permutations(values.tolist())), dtype=np.float64)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=6)))
    parts = [total_of(part) for part in np.split(shuffled, cuts)]
    tree = merged([merged(parts[:2]), merged(parts[2:])])
    for result in (merged(parts), merged(parts[::-1]), tree):
        assert exact(result[0]) == exact(whole[0])
        assert rounded(result)[0] == rounded(whole)[0]


@pytest.mark.parametrize("seed", range(20))
def test_grouping_of_numbers_of_all_sizes(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=400) * 2.0 ** rng.integers(-150, 150, size=400)
    values[:100] = 2.0 ** rng.integers(-150, 150, size=100)  # ties
    singles = [total_of([value]) for value in values]
    assert exact(merged(singles)[0]) == exact(total_of(values)[0])
    assert exact(merged(singles[::-1])[0]) == exact(total_of(values)[0])


@given(values=numbers)
def test_the_error_of_the_largest_addend(values):
    true = sum(map(Fraction, values.tolist()), Fraction(0))
    bound = len(values) * Fraction(np.abs(values).max(initial=0.0)) / 2**93
    assert abs(exact(total_of(values)[0]) - true) <= bound


@given(
    limbs=st.lists(st.integers(-(2**62), 2**62), min_size=4, max_size=4), top=st.integers(-33, 33)
)
def test_sums_are_rounded_to_the_nearest_float(limbs, top):
    sums = np.array([[*limbs, top]])
    for module, keep in compared(exact_sums, twin):
        result = np.empty(1)
        module.round_sums(sums, result)
        keep(result)


@pytest.mark.parametrize(
    ("limbs", "nearest"),
    [
        ((2**53 + 1, 0, 0, 0), 2.0**53),  # ties to even
        ((2**53 + 1, 0, 0, 1), 2.0**53 + 2),
        ((-(2**53) - 1, 0, 0, -1), -(2.0**53) - 2),
        ((2**53 + 3, 0, 0, 0), 2.0**53 + 4),
        ((2**53 + 1, 0, 0, -1), 2.0**53),
        ((0, 0, 0, 0), 0.0),
        ((1, -(2**31), 0, 0), 0.0),
        ((0, 1, -(2**31), 3), 3 * 2.0**-93),
    ],
)
def test_ties_go_to_even_and_nothing_else_is_a_tie(limbs, nearest):
    assert rounded(np.array([*limbs, 0])) == nearest


@given(
    a=st.lists(st.integers(-(2**60), 2**60), min_size=4, max_size=4),
    b=st.lists(st.integers(-(2**60), 2**60), min_size=4, max_size=4),
    tops=st.tuples(st.integers(-33, 33), st.integers(-4, 4)),
)
def test_merge_sums(a, b, tops):
    first = max(-33, min(33, tops[0] + tops[1]))
    for module, keep in compared(exact_sums, twin):
        sums = np.array([[*a, tops[0]]])
        module.merge_sums(sums, np.array([[*b, first]]))
        keep(sums)


@given(values=numbers, data=st.data())
def test_a_whole_weight_repeats_the_row(values, data):
    n = len(values)
    counts = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), dtype=int)
    kept = counts > 0
    weighted = total_of(values[kept], counts[kept].astype(np.float64), True)
    assert exact(weighted[0]) == exact(total_of(np.repeat(values, counts))[0])


@given(data=st.data(), power=st.integers(-900, 900))
def test_powers_of_two_change_the_unit_alone(data, power):
    """Addends are within 2**39 of the largest one."""
    values = np.array(data.draw(st.lists(st.floats(1.0, 2.0**30), max_size=20)), dtype=np.float64)
    signs = data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=20, max_size=20))
    values *= signs[: len(values)]
    total = exact(total_of(values)[0])
    assert exact(total_of(values * 2.0**power)[0]) == total * Fraction(2) ** power
    assert total == sum(map(Fraction, values.tolist()), Fraction(0))


@given(values=numbers, data=st.data())
def test_groups(values, data):
    n = len(values)
    groups = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)), np.int64)
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=float)
    for weight, whole in ((NONE, False), (weights, True)):
        for module, keep in compared(exact_sums, twin):
            sums = empty_sums(4)
            module.add_to_groups(groups, values, weight, whole, sums)
            keep(*map(exact, sums))


@given(values=numbers, data=st.data())
def test_prefix_sums(values, data):
    n = len(values)
    starts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    starts = np.array([0, *starts, n], dtype=np.int64)
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=float)
    for weight, whole in ((NONE, False), (weights, True)):
        for module, keep in compared(exact_sums, twin):
            result = np.full(n, np.nan)
            module.prefix_sums(values, weight, whole, starts, empty_sums(1), result)
            keep(result)


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20),
    counts=st.lists(st.integers(1, 9), min_size=20, max_size=20),
)
def test_means(values, counts):
    """Quotients of sums are rounded once."""
    values = np.array(values)
    weights = np.array(counts[: len(values)], dtype=np.float64)
    repeated = np.repeat(values, counts[: len(values)])
    true = sum(map(Fraction, repeated.tolist()), Fraction(0)) / len(repeated)
    weighted = quotient(sum_of(values, weights), mass_of(weights, len(values)))
    assert weighted == quotient(sum_of(repeated), mass_of(None, len(repeated)))
    assert abs(weighted - true) <= abs(true) * Fraction(2) ** -52 + Fraction(2) ** -80


def test_means_of_huge_numbers_do_not_overflow():
    values = np.full(5, np.finfo(float).max)
    assert quotient(sum_of(values), count_of(5)) == values[0]
    assert exact(count_of(2**40 + 3)) == 2**40 + 3
    assert rounded(sum_of(values)) == np.inf


@settings(max_examples=20)
@given(bad=st.sampled_from([np.nan, np.inf, -np.inf]), values=numbers, at=st.integers(0, 30))
def test_what_is_not_finite_spoils_the_sum(bad, values, at):
    spoiled = total_of(np.insert(values, min(at, len(values)), bad))
    assert np.isnan(rounded(spoiled)[0])
    assert np.isnan(rounded(merged([total_of(values), spoiled, total_of(values)]))[0])


def test_many_large_addends_fit():
    n = 1 << 20
    weights = np.full(n, 2.0**11 - 1)
    assert is_whole(weights)
    value = np.nextafter(2.0**31, 0)
    assert exact(total_of(np.full(n, value), weights, True)[0]) == n * (2**11 - 1) * Fraction(value)


def test_what_counts_as_whole():
    assert is_whole(np.array([1.0, 0.0, 7.0]))
    assert is_whole(NONE)
    assert not is_whole(np.array([1.0, 0.5]))
    assert not is_whole(np.array([2.0**30, 2.0**30]))
