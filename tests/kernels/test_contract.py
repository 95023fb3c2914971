"""What every kernel promises."""

import json

import numpy as np
import pytest
from tests.cases import KERNELS, ids
from tests.reference.kernels import gram as naive_gram

import hilboost.kernels
from hilboost.kernels import Kernel, Stationary, from_description, to_description

N = 24
STEP = 1e-5
all_kernels = pytest.mark.parametrize("case", KERNELS, ids=ids(KERNELS))
NATIVE = [case for case in KERNELS if case.native]
native_kernels = pytest.mark.parametrize("case", NATIVE, ids=ids(NATIVE))


def draw(case, n=N):
    return case.draw(np.random.default_rng(len(case.id)), n)


def two_sets(case):
    X = draw(case, 30)
    return X[:17], X[17:]


def symmetric_weights(n):
    W = np.random.default_rng(n).normal(size=(n, n))
    return W + W.T


def test_every_public_kernel_has_a_row():
    public = {
        value
        for name in hilboost.kernels.__all__
        if isinstance(value := getattr(hilboost.kernels, name), type) and issubclass(value, Kernel)
    } - {Kernel, Stationary}
    assert public == {type(case.make()) for case in KERNELS}


@all_kernels
def test_block_is_the_formula_pair_by_pair(case):
    A, B = two_sets(case)
    expected = naive_gram(case.pair, A, B)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(case.make().block(A, B), expected, rtol=1e-9, atol=1e-12 * scale)


@all_kernels
def test_block_is_symmetric_and_positive_semidefinite(case):
    X = draw(case)
    K = case.make().block(X, X)
    scale = np.abs(K).max()
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-7 * scale)
    assert np.linalg.eigvalsh(K)[0] >= -1e-8 * N * scale


@all_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_diag_is_the_diagonal_of_the_block(case, dtype):
    X = draw(case, 40).astype(dtype)
    kernel = case.make()
    diag, K = kernel.diag(X), kernel.block(X, X)
    assert diag.shape == (40,)
    assert diag.dtype == np.float64
    limit = case.single if dtype == np.float32 else 1e-6
    np.testing.assert_allclose(diag, np.diagonal(K), rtol=0, atol=limit * np.abs(K).max())


@all_kernels
def test_single_precision_is_close_to_double(case):
    A, B = two_sets(case)
    kernel = case.make()
    single = kernel.block(A.astype(np.float32), B.astype(np.float32))
    double = kernel.block(A, B)
    assert single.dtype == np.float32
    assert double.dtype == np.float64
    np.testing.assert_allclose(single, double, rtol=0, atol=case.single * np.abs(double).max())


@all_kernels
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_not_changed(case, order):
    X = np.asarray(draw(case), order=order)
    copied = X.copy()
    X.flags.writeable = False
    kernel = case.make()
    kernel.block(X, X)
    kernel.diag(X)
    kernel.parameter_gradient(X, symmetric_weights(N))
    np.testing.assert_array_equal(X, copied)


@all_kernels
def test_a_block_belongs_to_the_caller(case):
    X = draw(case)
    kernel = case.make()
    block = kernel.block(X, X)
    copied = block.copy()
    block *= 3
    np.testing.assert_array_equal(kernel.block(X, X), copied)


@all_kernels
def test_a_block_is_made_of_blocks(case):
    A, B = two_sets(case)
    kernel = case.make()
    whole = kernel.block(A, B)
    part = kernel.block(A[3:9], B[5:6])
    np.testing.assert_allclose(part, whole[3:9, 5:6], rtol=1e-9, atol=1e-9 * np.abs(whole).max())


@all_kernels
def test_its_own_rows_are_accepted(case):
    assert case.make().check(draw(case).shape[1]) is None


@all_kernels
def test_log_parameters_make_the_round_trip(case):
    A, B = two_sets(case)
    kernel = case.make()
    theta = kernel.log_parameters
    assert theta.dtype == np.float64
    assert theta.ndim == 1
    same = kernel.with_log_parameters(theta)
    assert type(same) is type(kernel)
    np.testing.assert_allclose(same.block(A, B), kernel.block(A, B), rtol=1e-9)
    moved = theta + np.linspace(0.1, 0.5, len(theta))
    np.testing.assert_allclose(
        kernel.with_log_parameters(moved).log_parameters, moved, rtol=1e-12, atol=1e-15
    )


@all_kernels
def test_contraction_is_the_derivative_of_the_weighted_sum(case):
    X, W = draw(case), symmetric_weights(N)
    kernel = case.make()
    theta = kernel.log_parameters
    # Where s² = 0, differences of a root see rounding errors only; the next test has the answer.
    same_rows = (X[:, None] == X[None]).all(axis=2)
    W[same_rows] = 0
    numeric = np.zeros_like(theta)
    for p, step in enumerate(STEP * np.eye(len(theta))):
        up, down = (
            np.sum(W * kernel.with_log_parameters(theta + s).block(X, X)) for s in (step, -step)
        )
        numeric[p] = (up - down) / (2 * STEP)
    found = kernel.parameter_gradient(X, W)
    assert found.shape == theta.shape
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-6)


DISTANCES = [case for case in KERNELS if isinstance(case.make(), Stationary)]


@pytest.mark.parametrize("case", DISTANCES, ids=ids(DISTANCES))
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_equal_rows_add_nothing_to_the_slope_by_a_length_scale(case, offset):
    kernel, X = case.make(), draw(case) + offset
    W = 1e12 * np.eye(N)
    W[0, N // 2] = W[N // 2, 0] = 1e12
    by_scale = kernel.parameter_gradient(X, W)[: len(kernel.length_scale)]
    np.testing.assert_array_equal(by_scale, 0)


@pytest.mark.parametrize("case", DISTANCES, ids=ids(DISTANCES))
def test_the_slope_does_not_depend_on_the_origin(case):
    kernel, X, W = case.make(), draw(case), symmetric_weights(N)
    np.testing.assert_allclose(
        kernel.parameter_gradient(X + 2.0**20, W),
        kernel.parameter_gradient(X, W),
        rtol=1e-7,
        atol=1e-7,
    )


@native_kernels
def test_description_makes_the_round_trip_bit_for_bit(case):
    kernel = case.make()
    X = draw(case)
    theta = kernel.log_parameters + np.random.default_rng(1).normal(size=len(kernel.log_parameters))
    kernel = kernel.with_log_parameters(theta)
    text = json.dumps(to_description(kernel), allow_nan=False)
    copied = from_description(json.loads(text))
    assert type(copied) is type(kernel)
    assert to_description(copied) == to_description(kernel)
    np.testing.assert_array_equal(copied.block(X, X), kernel.block(X, X))
    np.testing.assert_array_equal(copied.log_parameters, kernel.log_parameters)


@native_kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_arrays_give_the_same_numbers(case, dtype):
    torch = pytest.importorskip("torch")
    kernel = case.make()
    A, B = (part.astype(dtype) for part in two_sets(case))
    A_torch, B_torch = torch.asarray(A), torch.asarray(B)
    block = kernel.block(A_torch, B_torch)
    assert block.dtype == getattr(torch, dtype)
    expected = kernel.block(A, B)
    limit = (1e-5 if dtype == "float32" else 1e-12) * np.abs(expected).max()
    np.testing.assert_allclose(block.numpy(), expected, rtol=0, atol=limit)
    np.testing.assert_allclose(kernel.diag(A_torch).numpy(), kernel.diag(A), rtol=1e-6)
    if dtype == "float64":
        W = symmetric_weights(len(A))
        np.testing.assert_allclose(
            kernel.parameter_gradient(A_torch, torch.asarray(W)),
            kernel.parameter_gradient(A, W),
            rtol=1e-8,
        )
