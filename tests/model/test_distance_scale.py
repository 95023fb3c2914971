"""Expected squared distances: against a naive sum, in the limits, and by invariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.model.scores import DistanceScale

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
SQUARES = np.exp(POINTS[:, 0]) * RNG.exponential(size=60)
WEIGHT = RNG.integers(1, 4, 60).astype(float)


def naive(scale, point):
    kernel = [
        mass * np.exp(-np.sum((point - other) ** 2) / (2 * scale.width**2))
        for mass, other in zip(scale.weight, scale.points, strict=True)
    ]
    mean = np.dot(scale.weight, scale.squares) / scale.weight.sum()
    return (np.dot(kernel, scale.squares) + 0.1 * mean) / (np.sum(kernel) + 0.1)


@pytest.mark.parametrize("width", [0.3, 2.0, np.inf])
def test_it_is_a_weighted_mean(width):
    scale = DistanceScale(POINTS, SQUARES, WEIGHT, width)
    new = RNG.normal(size=(9, 2))
    np.testing.assert_allclose(scale(new), [naive(scale, point) for point in new], rtol=1e-12)
    assert scale(new[:0]).shape == (0,)


def test_it_is_the_mean_far_away_and_with_an_infinite_width():
    mean = np.average(SQUARES, weights=WEIGHT)
    far = DistanceScale(POINTS, SQUARES, WEIGHT, 0.5)(np.full((1, 2), 1e3))
    np.testing.assert_allclose(far, mean)
    np.testing.assert_allclose(DistanceScale(POINTS, SQUARES, WEIGHT, np.inf)(POINTS), mean)


def test_the_width_has_the_smallest_loss_of_rows_left_out():
    def loss(width):
        total = 0.0
        for i in range(len(POINTS)):
            rows = np.arange(len(POINTS)) != i
            part = DistanceScale(POINTS[rows], SQUARES[rows], np.ones(59), width)
            kernel = np.exp(-((POINTS[rows] - POINTS[i]) ** 2).sum(axis=1) / (2 * width**2))
            found = (kernel @ part.squares + 0.1 * SQUARES.mean()) / (kernel.sum() + 0.1)
            total += np.log(found) + SQUARES[i] / found
        return total

    chosen = DistanceScale.of(POINTS, SQUARES, None).width
    assert np.isfinite(chosen)
    for factor in (0.25, 0.5, 2.0, 4.0):
        assert loss(chosen) <= loss(chosen * factor) + 1e-9


def test_distances_that_do_not_depend_on_the_points_have_one_scale():
    squares = np.random.default_rng(3).exponential(size=500)
    points = np.random.default_rng(4).normal(size=(500, 2))
    found = np.sqrt(DistanceScale.of(points, squares, None)(points))
    assert found.max() / found.min() < 1.5


def test_rows_of_large_tables_are_sampled():
    points = np.random.default_rng(5).normal(size=(1500, 1))
    squares = np.where(points[:, 0] > 0, 4.0, 1.0)
    found = DistanceScale.of(points, squares, None)(np.array([[-2.0], [2.0]]))
    np.testing.assert_allclose(found, [1, 4], rtol=0.1)


@given(seed=st.integers(0, 99))
def test_weights_are_repetitions_and_the_order_has_no_effect(seed):
    rows = np.repeat(np.arange(60), WEIGHT.astype(int))
    rows = np.random.default_rng(seed).permutation(rows)
    one = DistanceScale.of(POINTS, SQUARES, WEIGHT)
    other = DistanceScale.of(POINTS[rows], SQUARES[rows], None)
    assert one.width == other.width
    np.testing.assert_array_equal(one(POINTS), other(POINTS))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units(factor):
    one = DistanceScale.of(POINTS, SQUARES, None)
    other = DistanceScale.of(POINTS * factor, SQUARES * factor**2, None)
    np.testing.assert_allclose(other(POINTS * factor), one(POINTS) * factor**2, rtol=1e-9)


@pytest.mark.parametrize(
    ("points", "squares"),
    [
        (np.zeros((3, 2)), np.ones(3)),
        (np.zeros((1, 2)), np.ones(1)),
        (np.ones((3, 2)) * [[0], [1], [2]], np.zeros(3)),
    ],
    ids=["equal points", "one row", "no error"],
)
def test_degenerate_rows_have_positive_finite_scales(points, squares):
    found = DistanceScale.of(points, squares, None)(points)
    assert (found > 0).all()
    np.testing.assert_allclose(found, squares.mean(), atol=1e-300)
