"""Support vector losses: best constants, symmetry, and what they say of probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from hilboost.core.target import Target
from hilboost.losses import Hinge, SquaredHinge

LOSSES = [Hinge, SquaredHinge]
both = pytest.mark.parametrize("loss", LOSSES)


def draw(seed, n=25, n_classes=2, on_grid=False):
    """Codes, weights, scores and leaves; on a grid, kinks coincide."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=(n, 1)).astype(float)
    raw = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) * 1.5
    raw = np.round(raw) if on_grid else raw
    leaves = rng.integers(-1, 5, size=n).astype(np.int32)
    return y, rng.integers(0, 4, size=n).astype(float), raw, leaves


@both
@pytest.mark.parametrize("n_classes", [2, 3])
@given(seed=st.integers(0, 2**31), on_grid=st.booleans())
def test_leaf_values_are_those_of_a_scalar_search(loss, n_classes, seed, on_grid):
    y, weight, raw, leaves = draw(seed, n_classes=n_classes, on_grid=on_grid)
    made, target = loss(n_classes), Target(y, weight)
    values = made.leaf_values(target, raw, leaves, 6, slice(0, raw.shape[1]))
    for leaf in range(6):
        rows = np.flatnonzero((leaves == leaf) & (weight > 0))
        for k in range(raw.shape[1]):
            if not len(rows):
                assert values[leaf, k] == 0
                continue

            def total(v, rows=rows, k=k):
                moved = raw[rows].copy()
                moved[:, k] += v
                return float(weight[rows] @ made.value(target.rows(rows), moved))

            best = minimize_scalar(total, bounds=(-12, 12), method="bounded")
            assert total(values[leaf, k]) <= best.fun + 1e-9


@both
@given(seed=st.integers(0, 2**31), on_grid=st.booleans())
def test_leaf_values_of_swapped_classes_have_the_other_sign(loss, seed, on_grid):
    y, weight, raw, leaves = draw(seed, on_grid=on_grid)
    made = loss(2)
    one = made.leaf_values(Target(y, weight), raw, leaves, 5, slice(0, 1))
    other = made.leaf_values(Target(1 - y, weight), -raw, leaves, 5, slice(0, 1))
    np.testing.assert_allclose(one, -other, atol=1e-12)


@both
@given(seed=st.integers(0, 2**31))
def test_a_weight_is_a_repetition_and_the_order_of_rows_is_free(loss, seed):
    y, weight, raw, leaves = draw(seed, n_classes=3)
    made, columns = loss(3), slice(0, 3)
    values = made.leaf_values(Target(y, weight), raw, leaves, 5, columns)
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(25), weight.astype(int)))
    repeated = made.leaf_values(Target(y[rows]), raw[rows], leaves[rows], 5, columns)
    np.testing.assert_allclose(values, repeated, rtol=1e-12, atol=1e-12)


@both
def test_leaves_without_weight_have_zero(loss):
    target = Target(np.array([[0.0], [1.0]]), np.zeros(2))
    values = loss(2).leaf_values(target, np.ones((2, 1)), np.zeros(2, np.int32), 2, slice(0, 1))
    np.testing.assert_array_equal(values, 0)


def test_values_by_hand():
    target, raw = Target(np.array([[1.0], [1.0], [0.0]])), np.array([[0.5], [2.0], [0.5]])
    np.testing.assert_allclose(Hinge(2).value(target, raw), [0.5, 0.0, 1.5])
    np.testing.assert_allclose(SquaredHinge(2).value(target, raw), [0.125, 0.0, 1.125])
    three = Target(np.array([[2.0]]))
    assert Hinge(3).value(three, np.array([[0.5, -3.0, 0.25]])) == pytest.approx(1.5 + 0 + 0.75)


def test_the_hinge_is_a_pinball_loss_of_the_residual():
    y, _, raw, _ = draw(0)
    residual = 2 * y - 1 - raw
    level = y  # 1 for positive rows, else 0
    pinball = np.maximum(level * residual, (level - 1) * residual)[:, 0]
    np.testing.assert_allclose(Hinge(2).value(Target(y), raw), pinball, rtol=1e-12)


def test_the_hinge_starts_at_the_sign_of_the_majority():
    codes = np.array([[0.0], [0.0], [1.0], [2.0], [2.0], [2.0]])
    np.testing.assert_array_equal(Hinge(3).initial_raw(Target(codes)), [-1, -1, 0])
    np.testing.assert_array_equal(Hinge(2).initial_raw(Target(codes[:3])), [-1])


def test_gradients_at_the_kink_are_zero():
    target, raw = Target(np.array([[1.0], [0.0]])), np.array([[1.0], [-1.0]])
    for loss in LOSSES:
        np.testing.assert_array_equal(loss(2).gradients(target, raw).negative_gradient, 0)


def test_the_bound_of_the_squared_hinge_is_declared_where_it_is_asked_for():
    y, _, raw, _ = draw(1)
    assert SquaredHinge(2).gradients(Target(y), raw).structure.bound is None
    assert SquaredHinge(2, shares_curvature=True).gradients(Target(y), raw).structure.bound == 1.0
