"""Rows that a stage learns from, and folds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.boosting import RowSampling, assign_folds
from hilboost.core.target import Target

N = 1000
Y = np.zeros((N, 1))
POOLS = [None, np.arange(0, N, 3, dtype=np.uint32)]
pools = pytest.mark.parametrize("pool", POOLS, ids=["all", "some"])


def rng(seed=0):
    return np.random.default_rng(seed)


@pools
@pytest.mark.parametrize("fraction", [0.0001, 0.3, 0.5, 0.999])
def test_a_part_is_drawn_without_replacement(pool, fraction):
    sample = RowSampling(fraction).draw(Target(Y), pool, rng())
    size = N if pool is None else len(pool)
    assert len(sample.rows) == max(1, round(fraction * size))
    assert sample.rows.dtype == np.uint32
    assert (np.diff(sample.rows.astype(int)) > 0).all()
    assert sample.weight is None
    if pool is not None:
        assert np.isin(sample.rows, pool).all()


@pools
def test_all_rows_are_no_draw(pool):
    weight = rng().uniform(size=N)
    sample = RowSampling(1.0).draw(Target(Y, weight), pool, rng())
    assert sample.rows is pool
    assert sample.weight is weight


@pools
@pytest.mark.parametrize("fraction", [0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_counts_multiplicities(pool, fraction, weighted):
    weight = rng(1).uniform(0.5, 2, size=N) if weighted else None
    sample = RowSampling(fraction, bootstrap=True).draw(Target(Y, weight), pool, rng())
    size = N if pool is None else len(pool)
    counts = sample.weight if weight is None else sample.weight / weight
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-12)
    assert counts.sum() == pytest.approx(round(fraction * size))
    np.testing.assert_array_equal(np.flatnonzero(counts > 0.5), sample.rows)
    assert counts.max() > 1
    if fraction == 1:  # about 1 - 1/e of the rows
        assert len(sample.rows) / size == pytest.approx(0.632, abs=0.06)
    if pool is not None:
        assert np.isin(sample.rows, pool).all()


@pytest.mark.parametrize("bootstrap", [False, True])
def test_every_row_is_equally_likely(bootstrap):
    drawn = np.zeros(50)
    sampling = RowSampling(0.3, bootstrap)
    for seed in range(2000):
        sample = sampling.draw(Target(np.zeros((50, 1))), None, rng(seed))
        drawn[sample.rows] += 1 if sample.weight is None else sample.weight[sample.rows]
    assert np.abs(drawn / 2000 - 0.3).max() < 0.06


@given(st.integers(2, 200), st.integers(2, 9), st.integers(1, 4), st.integers(0, 10**6))
def test_folds_are_equally_large_in_every_stratum(n, n_folds, n_strata, seed):
    strata = rng(seed).integers(n_strata, size=n)
    folds = assign_folds(strata, n_folds, rng(seed))
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for stratum in range(n_strata):
        assert np.ptp(np.bincount(folds[strata == stratum], minlength=n_folds)) <= 1
