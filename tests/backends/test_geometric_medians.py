"""Geometric medians against plain steps, points that are the median, and symmetric points."""

import numpy as np
import pytest
from tests.reference import geometric_medians as twin

from hilboost.backends import geometric_medians


def compiled(points, outside=None, weights=None, leaves=None, n_leaves=1):
    n = len(points)
    return geometric_medians.geometric_medians(
        np.asarray(points, dtype=float),
        np.zeros(n) if outside is None else outside,
        np.ones(n) if weights is None else weights,
        np.zeros(n, dtype=np.int32) if leaves is None else leaves,
        n_leaves,
        1e-10,
        200,
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize("lifted", [False, True])
def test_no_center_is_nearer(seed, r, lifted):
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_t(2, size=(40, r)), rng.uniform(0.2, 3, 40)
    points[::7] = points[0]  # equal points weigh together
    outside = rng.uniform(0, 2, 40) ** 2 if lifted else np.zeros(40)
    leaves = rng.integers(-1, 6, 40).astype(np.int32)
    leaves[leaves == 4] = 3
    found = compiled(points, outside, weights, leaves, 7)
    arguments = points, outside, weights, leaves, 7, 1e-10, 200
    expected = twin.geometric_medians(*arguments)
    assert (found[[4, 6]] == 0).all()
    for leaf in set(leaves[leaves >= 0].tolist()):
        rows = leaves == leaf
        own = points[rows], outside[rows], weights[rows]
        least = twin.total_distance(expected[leaf], *own)
        assert twin.total_distance(found[leaf], *own) <= least * (1 + 1e-8)


def test_a_heavy_point_is_the_median():
    points = np.random.default_rng(0).normal(size=(9, 3))
    weights = np.ones(9)
    weights[4] = 9
    np.testing.assert_array_equal(compiled(points, weights=weights)[0], points[4])


def test_two_points_have_their_middle():
    np.testing.assert_array_equal(compiled([[0.0, 0.0], [2.0, 4.0]])[0], [1.0, 2.0])


def test_the_mean_may_be_a_point_that_is_not_the_median():
    points = np.array([[0.0, 0.0], [-4.0, 1.0], [-4.0, -1.0], [8.0, 0.0], [0.3, 0.0], [-0.3, 0.0]])
    assert (points.mean(axis=0) == points[0]).all()
    least = min(
        twin.total_distance(v, points, np.zeros(6), np.ones(6))
        for v in (*points, twin.median(points, np.zeros(6), np.ones(6)))
    )
    found = compiled(points)[0]
    assert twin.total_distance(found, points, np.zeros(6), np.ones(6)) <= least * (1 + 1e-8)


@pytest.mark.parametrize("n", [1, 5])
def test_equal_points_are_their_own_median(n):
    np.testing.assert_array_equal(compiled(np.full((n, 2), 0.1))[0], [0.1, 0.1])


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_units_do_not_matter(size):
    points = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(compiled(size * points) / size, compiled(points), rtol=1e-8)
