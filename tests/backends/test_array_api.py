"""Dense linear algebra, in both precisions and, where it is installed, for Torch."""

import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam

precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])
libraries = pytest.mark.parametrize("library", ["numpy", "torch"])


def in_library(library, array):
    if library == "numpy":
        return array.copy()
    return pytest.importorskip("torch").asarray(array.copy())


def draw(n, rank=None, dtype=np.float64):
    Z = np.random.default_rng(n).normal(size=(n, rank or n + 3))
    return (Z @ Z.T).astype(dtype)


def limit(dtype):
    return 1e-4 if dtype == np.float32 else 1e-10


@libraries
@precisions
@pytest.mark.parametrize("n", [1, 2, 7, 130])
def test_cholesky_is_the_lower_factor(library, dtype, n):
    matrix = draw(n, dtype=dtype)
    factor = np.asarray(array_api.cholesky(in_library(library, matrix)))
    assert factor.dtype == dtype
    np.testing.assert_array_equal(np.triu(factor, 1), 0)
    expected = np.linalg.cholesky(matrix.astype(float))
    np.testing.assert_allclose(factor, expected, rtol=0, atol=limit(dtype) * expected.max())


@libraries
@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky_reads_the_lower_triangle_only(library, order):
    matrix = draw(6)
    expected = np.linalg.cholesky(matrix)
    matrix[np.triu_indices(6, 1)] = 99
    given = in_library(library, np.asarray(matrix, order=order))
    np.testing.assert_allclose(
        np.asarray(array_api.cholesky(given)), expected, rtol=1e-12, atol=1e-12
    )


@libraries
@precisions
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (60, 5)])
def test_a_singular_matrix_gets_a_little_more_on_its_diagonal(library, dtype, n, rank):
    matrix = draw(n, rank, dtype)
    factor = np.asarray(array_api.cholesky(in_library(library, matrix))).astype(float)
    assert np.isfinite(factor).all()
    added = factor @ factor.T - matrix
    mean = np.diagonal(matrix).mean()
    size = 100 * n * np.finfo(dtype).eps * mean
    np.testing.assert_allclose(added, np.diag(np.diagonal(added)), rtol=0, atol=size)
    assert np.diagonal(added).max() <= size


@libraries
def test_no_attempt_reads_the_upper_triangle(library):
    matrix = draw(6, rank=3)
    garbage = matrix.copy()
    garbage[np.triu_indices(6, 1)] = 99
    factor = np.asarray(array_api.cholesky(in_library(library, garbage)))
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=0, atol=1e-10)


@libraries
@pytest.mark.parametrize(("rank", "n_calls"), [(6, 0), (3, 1)])
def test_the_matrix_is_computed_again_only_if_rounding_made_it_fail(library, rank, n_calls):
    matrix, calls = draw(6, rank), []

    def again():
        calls.append(1)
        return in_library(library, matrix.copy())

    factor = np.asarray(array_api.cholesky(again(), again=again))
    assert len(calls) - 1 == n_calls
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=0, atol=1e-10)


@libraries
def test_jitter_is_a_share_of_the_mean_diagonal(library):
    matrix = draw(8)
    factor = np.asarray(array_api.cholesky(in_library(library, matrix), jitter=0.1))
    expected = matrix + 0.1 * np.diagonal(matrix).mean() * np.eye(8)
    np.testing.assert_allclose(factor @ factor.T, expected, rtol=1e-10, atol=1e-10)


@libraries
@precisions
@pytest.mark.parametrize(
    "matrix",
    [[[1, 2], [2, 1]], [[-1, 0], [0, -1]], [[1, 0], [0, -0.5]], np.zeros((3, 3))],
    ids=["indefinite", "negative", "one-negative", "zero"],
)
def test_a_matrix_that_is_not_positive_is_refused(library, dtype, matrix):
    with pytest.raises(ArithmeticError, match="not positive semidefinite"):
        array_api.cholesky(in_library(library, np.array(matrix, dtype=dtype)))


@libraries
@precisions
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 1), (5, 5), (5, 0)])
def test_a_matrix_that_is_not_finite_is_refused(library, dtype, value, place):
    matrix = draw(6, dtype=dtype)
    matrix[place] = matrix[place[::-1]] = value
    with pytest.raises(ArithmeticError, match="contains NaN or infinity"):
        array_api.cholesky(in_library(library, matrix))


@pytest.mark.parametrize("n", [1, 9])
def test_the_inverse_of_a_factored_matrix_is_symmetric(n):
    matrix = draw(n) + n * np.eye(n)
    factor = array_api.cholesky(matrix.copy())
    before = factor.copy()
    found = array_api.inverse_of_cholesky(factor)
    np.testing.assert_allclose(found, np.linalg.inv(matrix), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(factor, before)


@libraries
@precisions
@pytest.mark.parametrize("shape", [(9,), (9, 1), (9, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_solves(library, dtype, shape, order):
    matrix = draw(9, dtype=dtype) + 9 * np.eye(9, dtype=dtype)
    right = np.asarray(np.random.default_rng(0).normal(size=shape), dtype=dtype, order=order)
    factor = array_api.cholesky(in_library(library, matrix))
    lower = np.linalg.cholesky(matrix.astype(float))
    for found, expected in [
        (array_api.solve_lower(factor, in_library(library, right)), np.linalg.solve(lower, right)),
        (
            array_api.solve_lower(factor, in_library(library, right), transposed=True),
            np.linalg.solve(lower.T, right),
        ),
        (
            array_api.solve_cholesky(factor, in_library(library, right)),
            np.linalg.solve(matrix.astype(float), right),
        ),
    ]:
        assert found.shape == shape
        assert np.asarray(found).dtype == dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=limit(dtype))


@libraries
def test_add_to_diagonal_is_in_place(library):
    matrix = draw(5)
    given = in_library(library, matrix)
    assert array_api.add_to_diagonal(given, 2.0) is given
    np.testing.assert_allclose(np.asarray(given), matrix + 2 * np.eye(5))
    values = np.arange(5.0)
    array_api.add_to_diagonal(given, in_library(library, values))
    np.testing.assert_allclose(np.asarray(given), matrix + np.diag(2 + values))


@libraries
def test_set_diagonal_leaves_the_rest(library):
    matrix, values = draw(5), np.arange(5.0)
    given = in_library(library, matrix)
    array_api.set_diagonal(given, in_library(library, values))
    expected = matrix - np.diag(np.diagonal(matrix)) + np.diag(values)
    np.testing.assert_array_equal(np.asarray(given), expected)


@libraries
@precisions
def test_helpers_keep_library_and_dtype(library, dtype):
    given = in_library(library, np.array([[1.0, 4.0]], dtype=dtype))
    name = np.dtype(dtype).name
    assert array_api.precision(given) == name
    for array, wanted in [
        (array_api.zeros((2, 3), given, name), name),
        (array_api.empty((2, 3), given, "float64"), "float64"),
        (array_api.cast(given, "float32"), "float32"),
        (array_api.like(np.arange(3.0), given), name),
        (array_api.like(np.arange(3.0), given, "float64"), "float64"),
        (array_api.sqrt(in_library(library, np.array([4.0], dtype=dtype))), name),
        (array_api.exp(in_library(library, np.array([0.0], dtype=dtype))), name),
        (array_api.floor_at(in_library(library, np.array([-1.0], dtype=dtype)), 0.0), name),
    ]:
        assert type(array) is type(given)
        assert array_api.precision(array) == wanted
    assert array_api.cast(given, name) is given
    back = array_api.to_numpy(given)
    assert type(back) is np.ndarray
    assert back.dtype == np.float64
    np.testing.assert_array_equal(back, [[1, 4]])


def test_elementwise_functions():
    np.testing.assert_array_equal(array_api.sqrt(np.array([4.0, 9.0])), [2, 3])
    np.testing.assert_allclose(array_api.exp(np.array([0.0, -1.0])), [1, 1 / np.e], rtol=4e-16)
    np.testing.assert_array_equal(array_api.floor_at(np.array([-1.0, 2.0]), 0.5), [0.5, 2])


def test_blas_has_one_thread_until_the_last_of_several_threads_leaves():
    from threadpoolctl import threadpool_info, threadpool_limits

    def numbers():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        entered, leaves = threading.Event(), threading.Event()

        def other():
            with array_api.one_blas_thread():
                entered.set()
                leaves.wait()

        thread = threading.Thread(target=other)
        with array_api.one_blas_thread():
            thread.start()
            entered.wait()
            assert numbers() == {1}
        assert numbers() == {1}
        leaves.set()
        thread.join()
        assert numbers() == {2}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (256, 3, 257), (700, 40, 1), (600, 500, 520)])
def test_products_by_tiles(n, k, m, dtype):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
    exact = {"rtol": 0, "atol": 40 * k * np.finfo(dtype).eps}
    found = []
    for n_threads in (1, 2, 5):
        with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
            found.append((array_api.product(A, B, team), array_api.square(B, team)))
    for product, square in found:
        assert product.dtype == square.dtype == dtype
        np.testing.assert_array_equal(product, found[0][0])
        np.testing.assert_array_equal(square, found[0][1])
        np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(found[0][0], A.astype(float) @ B, **exact)
    np.testing.assert_allclose(found[0][1], B.T.astype(float) @ B, **exact)


MATRICES = """
import resource
import numpy as np
from hilboost.backends import array_api

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def matrices():
    return [np.ones((700, 700)) for _ in range(6)]

if {}:
    with array_api.one_blas_thread():
        pass
for _ in range(3):
    matrices()
before = pages()
matrices()
print(pages() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="limits of glibc")
def test_the_memory_of_freed_matrices_is_kept():
    found = [
        subprocess.run(
            [sys.executable, "-c", MATRICES.format(kept)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        for kept in (False, True)
    ]
    without, kept = (int(one.stdout) for one in found)
    assert kept < 100  # a matrix has 957 pages of 4 KiB
    assert kept <= without / 10  # huge pages are few
