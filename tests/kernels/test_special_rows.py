"""Rows of zeros, missing codes, numbers near the ends of the floating point range."""

import numpy as np
import pytest

from hilboost.kernels import Cosine, Delta, Gaussian, Hamming, Polynomial, Tanimoto


@pytest.mark.parametrize("kernel", [Cosine(), Tanimoto()])
def test_rows_of_zeros_are_like_each_other_only(kernel):
    X = np.array([[0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]])
    block = kernel.block(X, X)
    np.testing.assert_allclose(block, [[1, 0, 1], [0, 1, 0], [1, 0, 1]], rtol=1e-15)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_the_cosine_does_not_depend_on_the_length(size):
    X = np.array([[3.0, 4.0], [4.0, 3.0], [-3.0, -4.0]])
    expected = [[1, 0.96, -1], [0.96, 1, -0.96], [-1, -0.96, 1]]
    np.testing.assert_allclose(Cosine().block(X * size, X), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_missing_codes_equal_each_other_only(dtype):
    X = np.array([[np.nan, 0], [np.nan, 0], [0, 0], [0, np.nan]], dtype=dtype)
    np.testing.assert_array_equal(
        Hamming().block(X, X), [[1, 1, 0.5, 0], [1, 1, 0.5, 0], [0.5, 0.5, 1, 0.5], [0, 0, 0.5, 1]]
    )


def test_a_gaussian_of_one_hot_codes_is_a_delta_kernel():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(20, 2)).astype(float)
    one_hot = (codes[:, :, None] == np.arange(3)).reshape(20, -1).astype(float)
    np.testing.assert_allclose(
        Delta(0.49).block(codes, codes), Gaussian(0.7).block(one_hot, one_hot), rtol=1e-12
    )


@pytest.mark.parametrize("degree", range(1, 12))
def test_powers_by_squaring(degree):
    X = np.random.default_rng(0).uniform(-1, 1, size=(9, 2))
    np.testing.assert_allclose(
        Polynomial(degree, 0.5, 0.5).block(X, X), (X @ X.T / 2 + 0.5) ** degree, rtol=1e-12
    )


def test_far_from_the_origin_distances_keep_their_digits():
    X = np.random.default_rng(0).normal(size=(20, 2))
    near, far = Gaussian(0.7).block(X, X), Gaussian(0.7).block(X + 2.0**20, X + 2.0**20)
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-8)
