"""Rows that are left out of a linear system, compared with systems without them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.dependence import Dependence
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.tuning.scoring import (
    Candidate,
    Rows,
    held_out,
    leave_one_out,
    left_out,
)

KERNEL = Gaussian(1.0)


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    X, Y, weight = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.uniform(0.5, 2, n)
    return X, Y, weight, rng


def predicted(X, Y, weight, learned, held, lam=0.3):
    """Predictions of a fit to some rows, and the variances of observations."""
    C = KERNEL.block(X[learned], X[learned]) + np.diag(lam / weight[learned])
    K = KERNEL.block(X[held], X[learned])
    explained = np.einsum("ij,ji->i", K, np.linalg.solve(C, K.T))
    variance = KERNEL.diag(X[held]) + lam / weight[held] - explained
    return K @ np.linalg.solve(C, Y[learned]), variance


def factor_of(X, weight, lam=0.3):
    return np.linalg.cholesky(KERNEL.block(X, X) + np.diag(lam / weight))


@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.integers(2, 6))
def test_whole_groups_are_left_out(seed, n, n_groups):
    X, Y, weight, rng = drawn(seed, n)
    groups = np.append([0, 1], rng.integers(0, n_groups, n - 2))
    rows, residual, scaled = left_out(factor_of(X, weight), Y, Dependence(groups))
    assert np.array_equal(np.sort(rows), np.arange(n))
    for row, found, divided in zip(rows, residual, scaled, strict=True):
        learned, held = np.flatnonzero(groups != groups[row]), np.array([row])
        mean, variance = predicted(X, Y, weight, learned, held)
        np.testing.assert_allclose(found, (Y[held] - mean)[0], atol=1e-8)
        np.testing.assert_allclose(divided, found / variance, atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.integers(8, 40), st.sampled_from([0, 1.5]))
def test_earlier_rows_predict_blocks_of_time(seed, n, gap):
    X, Y, weight, rng = drawn(seed, n)
    times = rng.permutation(np.arange(n) // 2).astype(float)
    rows, residual, scaled = left_out(factor_of(X, weight), Y, Dependence(times=times, gap=gap))
    assert times[rows].min() > np.delete(times, rows).max()
    assert len(rows) >= n // 2 - 2
    blocks = [times[rows] >= start for start in np.unique(times[rows])]
    for row, found, divided in zip(rows, residual, scaled, strict=True):
        held, matches = np.array([row]), []
        for block in blocks:  # the row belongs to one of the blocks that begin before it
            start = times[rows][block].min()
            learned = np.flatnonzero(times < start - gap)
            if start <= times[row] and len(learned):
                mean, variance = predicted(X, Y, weight, learned, held)
                right = np.allclose(found, (Y[held] - mean)[0], atol=1e-8)
                matches.append(right and np.allclose(divided, found / variance, atol=1e-8))
        assert any(matches)


@given(st.integers(0, 2**32 - 1), st.integers(12, 40), st.permutations(range(5)))
def test_errors_do_not_depend_on_labels_units_or_the_order_of_rows(seed, n, labels):
    X, Y, weight, rng = drawn(seed, n)
    groups = np.append(np.arange(5), rng.integers(0, 5, n - 5))
    times = rng.permutation(n).astype(float)
    order = rng.permutation(n)
    candidate = Candidate(KERNEL, 0.3)

    def error(dependence, rows=slice(None)):
        sampled = Rows(X[rows], Y[rows], weight[rows], np.arange(n)[rows], dependence.rows(rows))
        return leave_one_out(candidate, sampled).error

    by_groups = error(Dependence(groups))
    assert np.isclose(by_groups, error(Dependence(np.array(labels)[groups])))
    assert np.isclose(by_groups, error(Dependence(groups), order))
    by_time = error(Dependence(times=times))
    assert np.isclose(by_time, error(Dependence(times=3600 * times - 1e4)))
    assert np.isclose(by_time, error(Dependence(times=times), order))


@given(st.integers(0, 2**32 - 1), st.integers(12, 60), st.booleans())
def test_divisions_keep_groups_whole_and_time_in_order(seed, n, of_groups):
    X, Y, weight, rng = drawn(seed, n)
    values = np.append([0, 1], rng.integers(0, 6, n - 2))
    dependence = Dependence(values) if of_groups else Dependence(times=values.astype(float))
    rows = Rows(X, Y, weight, np.arange(n), dependence)
    for learned, held in [rows.divided, *rows.splits(3)]:
        assert len(learned)
        assert len(held)
        if of_groups:
            assert not set(values[learned]) & set(values[held])
        else:
            assert values[learned].max() < values[held].min()
    found = held_out(Candidate(KERNEL, 0.3), rows)
    learned, held = rows.divided
    mean, _ = predicted(X, Y, weight, learned, held)
    error = np.average(((mean - Y[held]) ** 2).sum(axis=1), weights=weight[held])
    assert np.isclose(found.error, error)


def test_rows_of_a_single_group_are_left_out_one_by_one():
    X, Y, weight, _ = drawn(0, 9)
    factor = factor_of(X, weight)
    for dependence in (Dependence(np.zeros(9, int)), Dependence(times=np.zeros(9))):
        found, alone = left_out(factor, Y, dependence), left_out(factor, Y, None)
        assert np.array_equal(found.residual, alone.residual)
