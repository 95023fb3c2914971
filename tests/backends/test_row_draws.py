"""Draws of rows: exact sizes, uniform, independent, and the same for any division of the rows."""

import functools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.reference import random_bits as bits_twin
from tests.reference import row_draws as twin
from tests.twins import compared

from hilboost.backends import random_bits, row_draws
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam

N, MANY = 20_000, 300_000  # the latter in several blocks
ALONE = ThreadTeam()
NO_ROWS = np.empty(0, dtype=np.uint32)
LEAST_P = 1e-4  # of about 30 tests of uniformity, none by chance
seeds = st.integers(0, 2**40)


def bits(key, n=N):
    hashes = np.empty(n, dtype=np.uint64)
    random_bits.hash_numbers(key, 0, hashes)
    return hashes


def key(seed, purpose=Purpose.ROWS_OF_STAGE, stage=0, member=0):
    return key_of(seed, purpose, stage, member)


# Bits


@given(word=st.integers(0, 2**64 - 1), number=st.integers(0, 2**33))
def test_bits_are_those_of_the_twin(word, number):
    word = np.uint64(word)
    assert int(random_bits.mix(word)) == bits_twin.mix(int(word))
    assert int(random_bits.bits_of(word, number)) == bits_twin.bits_of(word, number)
    found, expected = np.empty((2, 5), dtype=np.uint64)
    random_bits.hash_numbers(word, number, found)
    bits_twin.hash_numbers(word, number, expected)
    np.testing.assert_array_equal(found, expected)
    with np.errstate(over="ignore"):
        words = functools.reduce(lambda key, part: bits_twin.mix(key ^ part), (5, 2, 7, 1), 0)
    assert int(key_of(5, Purpose.FOLDS, 7, 1)) == words


KEYS = [key(0), key(1), key(0, Purpose.FOLDS), key(0, stage=1), key(0, member=1), np.uint64(0)]


@pytest.mark.parametrize("k", KEYS)
def test_every_bit_is_even_and_bytes_are_uniform(k):
    hashes = bits(k)
    assert len(np.unique(hashes)) == N
    for shift in range(64):
        ones = int((hashes >> np.uint64(shift) & np.uint64(1)).sum())
        assert stats.binomtest(ones, N).pvalue > LEAST_P
    for column in hashes.view(np.uint8).reshape(N, 8).T:
        assert stats.chisquare(np.bincount(column, minlength=256)).pvalue > LEAST_P


def test_keys_are_different_and_their_bits_independent():
    assert len(set(map(int, KEYS))) == len(KEYS)
    assert key(3, stage=1, member=2) != key(3, stage=2, member=1)
    numbers = np.array([bits(k) for k in KEYS]).astype(float)
    following = np.vstack([numbers[:, :-1], numbers[:, 1:]])  # a row against the next one as well
    correlations = np.corrcoef(following)[np.triu_indices(2 * len(KEYS), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(N)
    for a in range(len(KEYS)):
        for b in range(a):
            cells = (numbers[a] // 2**60 * 16 + numbers[b] // 2**60).astype(int)
            assert stats.chisquare(np.bincount(cells, minlength=256)).pvalue > LEAST_P


def test_rounding_of_a_gradient_and_its_hessian_is_independent():
    hashes = bits(key(0))
    low, high = hashes & np.uint64(0xFFFFFF), hashes >> np.uint64(32) & np.uint64(0xFFFFFF)
    cells = (low // 2**20 * 16 + high // 2**20).astype(int)
    assert stats.chisquare(np.bincount(cells, minlength=256)).pvalue > LEAST_P


# Without replacement


@given(seed=seeds, n=st.integers(1, 60), share=st.floats(0, 1), of_some=st.booleans())
def test_steps_and_draws_are_those_of_the_twin(seed, n, share, of_some):
    rng = np.random.default_rng(seed)
    rows = rng.choice(10 * n, n, replace=False).astype(np.uint32) if of_some else NO_ROWS
    k, size = key(seed), max(1, round(share * n))
    for module, keep in compared(row_draws, twin):
        counts = np.zeros(1024, dtype=np.int64)
        module.count_first_bits(k, rows, n // 3, n, counts)
        every = np.zeros(n, dtype=np.uint64)
        module.hashes_of_rows(k, rows, every)
        first_bits = int(counts.argmax())
        hashes, drawn = np.zeros(n, dtype=np.uint64), np.zeros(n + 1, dtype=np.uint32)
        n_hashes = module.hashes_of_first_bits(k, rows, n // 3, n, first_bits, hashes)
        n_drawn = module.rows_up_to(k, rows, n // 3, n, np.uint64(2**63), drawn)
        picks = np.zeros(n - n // 3, dtype=np.int64)
        module.count_picks(k, size, n, n // 3, picks)
        keep(counts, every, n_hashes, hashes, n_drawn, drawn[:n_drawn], picks)
    pool = rows if of_some else n
    expected = twin.draw_rows(k, [int(row) for row in rows] if of_some else range(n), size)
    for few_rows in (row_draws._FEW_ROWS, 0):
        with patch.object(row_draws, "_FEW_ROWS", few_rows):
            assert row_draws.draw_rows(k, pool, size, ALONE).tolist() == expected


@pytest.mark.parametrize("size", [1, 2, 777, MANY // 2, MANY - 1, MANY])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_sizes_are_exact_and_threads_do_not_matter(size, n_threads):
    with ThreadTeam(n_threads) as team:
        drawn = row_draws.draw_rows(key(5), MANY, size, team)
    assert drawn.dtype == np.uint32
    assert len(drawn) == size
    assert (np.diff(drawn.astype(int)) > 0).all()
    np.testing.assert_array_equal(drawn, row_draws.draw_rows(key(5), MANY, size, ALONE))


def in_parts(values, seed, n_parts):
    """Rows dealt out to workers, some of which may have none."""
    owner = np.random.default_rng(seed).integers(n_parts, size=len(values))
    return [values[owner == part] for part in range(n_parts)]


@given(seed=seeds, n=st.integers(1, 300), n_parts=st.integers(1, 5), share=st.floats(0, 1))
def test_workers_with_some_rows_each_find_their_parts_of_a_draw(seed, n, n_parts, share):
    k, size = key(seed), max(1, round(share * n))
    parts = in_parts(np.arange(n, dtype=np.uint32), seed, n_parts)
    parts = [part for part in parts if len(part)]
    counts = np.zeros((len(parts), 1024), dtype=np.int64)
    for part, count in zip(parts, counts, strict=True):
        row_draws.count_first_bits(k, part, 0, len(part), count)
    sums = counts.sum(axis=0).cumsum()
    first_bits = int(np.searchsorted(sums, size))
    candidates = []
    for part in parts:
        hashes = np.empty(len(part), dtype=np.uint64)
        end = row_draws.hashes_of_first_bits(k, part, 0, len(part), first_bits, hashes)
        candidates += hashes[:end].tolist()
    last = size - (int(sums[first_bits - 1]) if first_bits else 0)
    largest = np.uint64(sorted(candidates)[last - 1])
    drawn = []
    for part in parts:
        here = np.empty(len(part) + 1, dtype=np.uint32)
        drawn += here[: row_draws.rows_up_to(k, part, 0, len(part), largest, here)].tolist()
    assert sorted(drawn) == row_draws.draw_rows(k, n, size, ALONE).tolist()


def test_every_row_is_drawn_equally_often_and_stages_are_independent():
    n, size, n_stages = 200, 60, 3000
    marks = np.zeros((n_stages, n))
    for stage in range(n_stages):
        marks[stage, row_draws.draw_rows(key(1, stage=stage), n, size, ALONE)] = 1
    share, often = size / n, marks.sum(axis=0)
    spread = n_stages * share * (1 - share)
    assert (
        stats.chi2.sf((often - n_stages * share) @ (often - n_stages * share) / spread, n) > LEAST_P
    )
    rows = np.corrcoef(marks.T)[np.triu_indices(n, 1)]  # without replacement: slightly negative
    assert abs(rows.mean() + 1 / (n - 1)) < 5e-4
    both = (marks[1:] * marks[:-1]).sum()  # drawn in two stages after one another
    expected = (n_stages - 1) * n * share**2
    assert abs(both - expected) < 5 * np.sqrt(expected)


# With replacement


@given(seed=seeds, n=st.integers(1, 300), size=st.integers(1, 400), n_parts=st.integers(1, 5))
def test_workers_count_the_picks_of_their_own_rows(seed, n, size, n_parts):
    k, ends = key(seed), np.linspace(0, n, n_parts + 1).astype(int)
    counts = [
        np.zeros(end - begin, dtype=np.int64) for begin, end in zip(ends, ends[1:], strict=False)
    ]
    for begin, count in zip(ends[:-1], counts, strict=True):
        row_draws.count_picks(k, size, n, begin, count)
    with ThreadTeam(n_parts) as team:
        whole = row_draws.draw_with_replacement(k, n, size, team)
    np.testing.assert_array_equal(np.concatenate(counts), whole)
    assert whole.sum() == size


@pytest.mark.parametrize("n", [7, 100])
def test_picks_are_uniform(n):
    counts = row_draws.draw_with_replacement(key(2), n, 50_000, ALONE)
    assert stats.chisquare(counts).pvalue > LEAST_P


# Folds and held-out rows


@given(seed=seeds, n=st.integers(1, 120), n_folds=st.integers(1, 9), n_strata=st.integers(1, 5))
def test_folds_are_those_of_the_twin_and_of_equal_size(seed, n, n_folds, n_strata):
    rng = np.random.default_rng(seed)
    strata = rng.integers(n_strata, size=n)
    rows = np.sort(rng.choice(3 * n, n, replace=False))
    folds = row_draws.assign_folds(key(seed), strata, n_folds, rows)
    expected = twin.assign_folds(key(seed), strata.tolist(), n_folds, rows.tolist())
    assert folds.tolist() == expected
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for stratum in range(n_strata):
        assert np.ptp(np.bincount(folds[strata == stratum], minlength=n_folds)) <= 1


@given(seed=seeds, n=st.integers(2, 200), n_folds=st.integers(2, 5))
def test_two_hashes_tell_the_rows_of_a_fold_and_stratum(seed, n, n_folds):
    strata = np.random.default_rng(seed).integers(3, size=n)
    folds, hashes = row_draws.assign_folds(key(seed), strata, n_folds), bits(key(seed), n)
    for stratum in range(3):
        here = strata == stratum
        assert (np.diff(folds[here][np.argsort(hashes[here])]) >= 0).all()


@given(seed=seeds, n=st.integers(2, 200), share=st.floats(0.01, 0.99), n_strata=st.integers(1, 5))
def test_held_out_rows_are_stratified_and_of_exact_number(seed, n, share, n_strata):
    strata, size = np.random.default_rng(seed).integers(n_strata, size=n), max(1, int(share * n))
    held = row_draws.hold_out(key(seed), strata, size)
    assert held.sum() == size
    for stratum in range(n_strata):
        here = strata == stratum
        assert abs(held[here].sum() - here.sum() * size / n) < 1


def test_every_row_is_held_out_equally_often_even_in_small_strata():
    strata = np.array([0] * 37 + [1] * 2 + [2] + [3] * 20)
    times = np.zeros(len(strata))
    for seed in range(4000):
        times += row_draws.hold_out(key(seed, Purpose.HELD_OUT_ROWS), strata, 6)
    assert np.abs(times / 4000 - 0.1).max() < 0.025
