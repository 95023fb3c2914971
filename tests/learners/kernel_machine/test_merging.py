"""Equal rows: found, merged, and seen once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hilboost.boosting.effective_size import row_weight
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.config import DistinctRows, repetitions
from hilboost.reductions.rows import count_distinct


def table(seed, n=30, d=3, levels=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, levels - 1, size=(n, d)) * rng.choice([1.0, -1.0], size=(n, d))
    return X, rng.integers(0, 2, size=(n, 1)).astype(float), rng


@given(st.integers(0, 2**32 - 1))
def test_rows_that_differ_by_rounding_alone_are_one_row(seed):
    rng = np.random.default_rng(seed)
    angle = rng.integers(7, size=(40, 2)) * (2 * np.pi / 7)
    X = np.column_stack([np.sin(angle), np.cos(angle)])
    near = X * rng.choice([1 - 2**-53, 1, 1 + 2**-52], X.shape) + rng.choice([0, 1e-17], X.shape)
    assert DistinctRows.of(np.vstack([X, near]), None).group[40:].tolist() == (
        DistinctRows.of(X, None).group.tolist()
    )
    apart = X * rng.choice([1, 1 + 2**-40], X.shape)
    assert count_distinct(apart) == len(np.unique(np.column_stack([angle, apart]), axis=0))


@given(st.integers(0, 2**32 - 1))
def test_merged_gradients_have_the_same_quadratic_model(seed):
    X, _, rng = table(seed)
    weight = rng.uniform(0.1, 2, len(X))
    gradients = Gradients(rng.normal(size=(len(X), 2)), rng.uniform(0, 1, (len(X), 2)))
    distinct = DistinctRows.of(X, weight)
    assert distinct is not None
    np.testing.assert_array_equal(X[distinct.first][distinct.group] + 0.0, X + 0.0)
    merged, total = distinct.merged(gradients, weight)
    f = rng.normal(size=(len(distinct.first), 2))

    def change(g, w, f):
        return (w[:, None] * (0.5 * g.hessian * f * f - g.negative_gradient * f)).sum()

    mine, theirs = change(merged, total, f), change(gradients, weight, f[distinct.group])
    np.testing.assert_allclose(mine, theirs, atol=1e-10)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 0.37, 1.0, 1e12]))
def test_fractions_are_rounded_to_observations_without_a_change_of_their_sums(seed, unit):
    X, _, rng = table(seed, n=400, d=2)
    weight = unit * rng.uniform(0.3, 3, 400)
    row = row_weight(Target(weight, weight))
    counts = repetitions(weight, row, 400, DistinctRows.of(X, weight))
    assert (np.abs(np.cumsum(counts - weight / row)) <= 0.5 + 1e-9).all()
    merged = DistinctRows.of(X, weight).sums(weight)
    counts = repetitions(merged, row, len(merged), None)
    np.testing.assert_allclose(counts, merged / row, atol=1)
    assert repetitions(weight, row, 400, None) is None
