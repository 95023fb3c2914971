"""What every kernel promises."""

import json

import numpy as np
import pytest
from tests.cases import KERNELS, cells, ids

import hilboost.kernels
from hilboost.core.discovery import classes_in
from hilboost.kernels import Kernel, Stationary, from_description, to_description
from hilboost.testing import KernelContract
from hilboost.testing.kernels import symmetric_weights

N = 24
all_kernels = pytest.mark.parametrize("case", KERNELS, ids=ids(KERNELS))
NATIVE = [case for case in KERNELS if case.native]
native_kernels = pytest.mark.parametrize("case", NATIVE, ids=ids(NATIVE))


class OfCase(KernelContract):
    def __init__(self, case):
        self.case = case
        self.single, self.saved = case.single, case.native

    def make(self):
        return self.case.make()

    def data(self, rng, n):
        return self.case.draw(rng, n)

    def pair(self, a, b):
        return self.case.pair(a, b)


def draw(case, n=N):
    return OfCase(case).draw(n)


def two_sets(case):
    X = draw(case, 30)
    return X[:17], X[17:]


REPORTED = (  # by the description of the kernel
    *("gaussian", "additive", "polynomial-2", "sum", "product", "on_columns", "mapped", "function"),
)


@pytest.mark.parametrize(("case", "check"), cells(KERNELS, KernelContract.checks(), REPORTED))
def test_contract(case, check):
    getattr(OfCase(case), check)()


def test_every_public_kernel_has_a_row():
    public = {
        value
        for name in hilboost.kernels.__all__
        if isinstance(value := getattr(hilboost.kernels, name), type) and issubclass(value, Kernel)
    } - {Kernel, Stationary}
    found = set(classes_in("hilboost.kernels", Kernel))
    assert public <= found == {type(case.make()) for case in KERNELS}


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
