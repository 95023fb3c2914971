"""Kernels of scikit-learn, of functions and of tables, and what may stand for a kernel."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as theirs
from sklearn.metrics.pairwise import rbf_kernel

from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.kernels import (
    KERNEL_NAMES,
    CallableKernel,
    Gaussian,
    Kernel,
    Matern,
    Precomputed,
    SklearnKernel,
    as_kernel,
)

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(40, 2)), RNG.normal(size=(5, 2))


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_every_name_makes_a_kernel(name):
    kernel = as_kernel(name)
    assert isinstance(kernel, Kernel)
    assert kernel.block(A, B).shape == (40, 5)


def test_names_of_smoothness():
    assert [as_kernel(f"matern{k}").nu for k in (12, 32, 52)] == [0.5, 1.5, 2.5]


def test_a_kernel_stands_for_itself():
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel


def test_kernels_of_others_are_wrapped():
    assert type(as_kernel(theirs.RBF())) is SklearnKernel
    kernel = as_kernel(rbf_kernel)
    assert type(kernel) is CallableKernel
    np.testing.assert_allclose(kernel.block(A, B), Gaussian(1.0).block(A, B), rtol=1e-12)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("gausian", InvalidParameter, "kernel='gausian' is not known. Did you mean 'gaussian'"),
        ("rbf", InvalidParameter, "kernel='rbf' is not known. Did you mean 'gaussian'"),
        ("matern", InvalidParameter, "kernel='matern' is not known. Did you mean 'matern"),
        (Gaussian, InvalidType, r"kernel=Gaussian is a class; write Gaussian\(\)"),
        (theirs.RBF, InvalidType, r"kernel=RBF is a class; write RBF\(\)"),
        (None, InvalidType, "kernel must be a kernel, a name, .* got NoneType"),
        (3.0, InvalidType, "kernel must be a kernel, a name, .* got float"),
    ],
)
def test_what_is_no_kernel_is_refused(spec, error, message):
    with pytest.raises(error, match=message):
        as_kernel(spec)


@pytest.mark.parametrize(
    "kernel",
    [
        theirs.Matern([1.0, 2.0], nu=1.5),
        2.0 * theirs.RationalQuadratic() + theirs.DotProduct(),
        theirs.ConstantKernel(3.0, "fixed") * theirs.RBF(2.0),
        theirs.PairwiseKernel(metric="laplacian"),
    ],
)
def test_scikit_learn_kernels_give_their_own_numbers(kernel):
    ours = SklearnKernel(kernel)
    np.testing.assert_allclose(ours.block(A, B), kernel(A, B), rtol=1e-12)
    np.testing.assert_allclose(ours.diag(A), kernel.diag(A), rtol=1e-12)
    np.testing.assert_array_equal(ours.log_parameters, kernel.theta)
    moved = ours.with_log_parameters(kernel.theta + 0.1)
    np.testing.assert_allclose(moved.log_parameters, kernel.theta + 0.1)
    np.testing.assert_array_equal(ours.log_parameters, kernel.theta)


def test_our_own_formulas_agree_with_scikit_learn():
    for nu in (0.5, 1.5, 2.5):
        expected = theirs.Matern([1.0, 2.0], nu=nu)(A, B)
        np.testing.assert_allclose(Matern((1.0, 2.0), nu).block(A, B), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel", [theirs.WhiteKernel(), 2.0 * (theirs.RBF() + theirs.WhiteKernel())]
)
def test_noise_is_no_likeness_of_rows(kernel):
    with pytest.raises(InvalidParameter, match="contains a WhiteKernel, which models noise"):
        SklearnKernel(kernel)


def test_other_things_are_no_scikit_learn_kernels():
    with pytest.raises(InvalidType, match="must be a kernel of sklearn.gaussian_process.kernels"):
        SklearnKernel(Gaussian())
    with pytest.raises(InvalidType, match="function must be callable; got str"):
        CallableKernel("gaussian")


def test_functions_see_double_precision():
    seen = []

    def function(A, B):
        seen.append((A.dtype, B.dtype))
        return A @ B.T

    assert CallableKernel(function).block(A.astype("f4"), B.astype("f4")).dtype == np.float32
    assert seen == [(np.float64, np.float64)]


def test_a_function_may_keep_the_array_it_returns():
    kept = np.ones((40, 5))
    block = CallableKernel(lambda A, B: kept).block(A, B)
    block *= 2
    np.testing.assert_array_equal(kept, 1)


@pytest.mark.parametrize(
    ("function", "pairwise", "error", "message"),
    [
        (
            lambda A, B: 1.0,
            False,
            InvalidType,
            r"shape \(\) .* must return numbers of shape \(40, 5",
        ),
        (lambda A, B: B @ A.T, False, InvalidType, r"shape \(5, 40\) .* of shape \(40, 5\)"),
        (lambda A, B: np.full((40, 5), "x"), False, InvalidType, "must return numbers"),
        (lambda A, B: A @ B.T * 1j, False, InvalidType, "dtype complex128"),
        (
            lambda A, B: np.full((40, 5), np.nan),
            False,
            InvalidData,
            "has the value nan for rows 0 and 0",
        ),
        (lambda A, B: np.where(A @ B.T > 9, 0, np.inf), False, InvalidData, "must be finite"),
        (lambda a, b: a * b, True, InvalidType, r"shape \(2,\) for two rows.*set pairwise=False"),
        (lambda a, b: "x", True, InvalidType, "must return numbers"),
        (lambda a, b: float("nan"), True, InvalidData, "has the value nan for rows 0 and 0"),
    ],
)
def test_results_that_are_no_block_are_refused(function, pairwise, error, message):
    with pytest.raises(error, match=message):
        CallableKernel(function, pairwise).block(A, B)


def test_an_error_of_the_function_says_how_it_was_called():
    with pytest.raises(ValueError, match="broadcast") as caught:
        CallableKernel(lambda a, b: np.exp(-((a - b) ** 2).sum())).block(A, B)
    assert "shapes (40, 2) and (5, 2)" in caught.value.__notes__[0]
    assert "pairwise=True" in caught.value.__notes__[0]


class Elsewhere:
    """An array of another library."""

    shape, dtype = (3, 2), np.float64


@pytest.mark.parametrize(
    "kernel", [SklearnKernel(theirs.RBF()), CallableKernel(rbf_kernel), Precomputed(np.eye(3))]
)
def test_arrays_of_other_libraries_are_refused(kernel):
    for call in (lambda: kernel.block(Elsewhere(), Elsewhere()), lambda: kernel.diag(Elsewhere())):
        with pytest.raises(
            InvalidType, match=r"supports only NumPy arrays; got .*Elsewhere\. Use device"
        ):
            call()


def points(*numbers):
    return np.array(numbers, dtype=float)[:, None]


def test_a_table_is_looked_up_by_row_and_column():
    table = np.arange(12.0).reshape(4, 3)
    kernel = Precomputed(table)
    np.testing.assert_array_equal(
        kernel.block(points(3, 0), points(2, 1, 2)), [[11, 10, 11], [2, 1, 2]]
    )
    np.testing.assert_array_equal(kernel.diag(points(2, 0)), [8, 0])
    kernel.block(points(3, 0), points(2, 1))[:] = -1
    np.testing.assert_array_equal(table, np.arange(12.0).reshape(4, 3))


def test_a_table_is_not_copied():
    table = np.eye(3, dtype=np.float32)
    assert Precomputed(table).gram is table
    assert Precomputed(np.eye(2, dtype=int)).gram.dtype == np.float64


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ([0, 4], [0], "rows of its Gram matrix: integers from 0 to 3"),
        ([0], [3], "columns of its Gram matrix: integers from 0 to 2"),
        ([-1], [0], "rows of its Gram matrix: integers from 0 to 3"),
        ([0.5], [0], "rows of its Gram matrix: integers from 0 to 3"),
        ([np.nan], [0], "rows of its Gram matrix: integers from 0 to 3"),
    ],
)
def test_points_outside_of_a_table_are_refused(rows, columns, message):
    with pytest.raises(InvalidData, match=message):
        Precomputed(np.ones((4, 3))).block(points(*rows), points(*columns))


def test_a_point_not_learned_from_has_no_diagonal():
    with pytest.raises(InvalidData, match="columns of its Gram matrix: integers from 0 to 2"):
        Precomputed(np.ones((4, 3))).diag(points(3))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones(3), r"must be a matrix of numbers; got an array of shape \(3,\)"),
        ([["a"]], "must be a matrix of numbers"),
        ([[1.0, np.nan]], "the Gram matrix has the value nan for rows 0 and 1"),
        ([[np.inf]], "the Gram matrix has the value inf for rows 0 and 0"),
    ],
)
def test_tables_that_are_no_gram_matrix_are_refused(table, message):
    with pytest.raises(InvalidData, match=message):
        Precomputed(table)
