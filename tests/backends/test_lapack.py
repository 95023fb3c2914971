"""Matrix routines that release the interpreter lock against those of NumPy."""

import threading
import time

import numpy as np
import pytest

from hilboost.backends import array_api, lapack
from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import NotPositive

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(40, 40))
MATRIX = ROOT @ ROOT.T + np.eye(40)


def triangle(matrix, lower):
    return np.tril(matrix) if lower else np.triu(matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lower", [False, True])
def test_factors_and_solutions(dtype, lower):
    close = {"rtol": 1e-2, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    other = triangle(RNG.normal(size=(40, 40)), not lower)  # is neither read nor written
    np.fill_diagonal(other, 0)
    matrix = np.asfortranarray(triangle(MATRIX, lower) + other, dtype=dtype)
    assert lapack.factor(matrix, lower=lower)
    factor = np.linalg.cholesky(MATRIX)
    np.testing.assert_allclose(triangle(matrix, lower), factor if lower else factor.T, **close)
    np.testing.assert_array_equal(
        triangle(matrix, not lower) - np.diag(np.diag(matrix)), other.astype(dtype)
    )
    for transposed in (False, True):
        right = RNG.normal(size=(40, 3))
        found = np.asfortranarray(right, dtype=dtype)
        assert lapack.solve(matrix, found, lower=lower, transposed=transposed)
        whole = triangle(matrix, lower).astype(float)
        wanted = np.linalg.solve(whole.T if transposed else whole, right)
        np.testing.assert_allclose(found, wanted, **close)


def test_products():
    factors, sums = RNG.normal(size=(30, 7)), np.tril(RNG.normal(size=(7, 7)))
    wanted = sums + np.tril(factors.T @ factors)
    lapack.add_products(factors, sums, ThreadTeam())
    np.testing.assert_allclose(np.tril(sums), wanted)
    right = RNG.normal(size=(40, 3))
    for lower in (False, True):
        found = lapack.symmetric_product(triangle(MATRIX, lower), right, lower=lower)
        np.testing.assert_allclose(found, MATRIX @ right)


def test_matrices_without_factor_and_singular_triangles():
    assert not lapack.factor(np.asfortranarray(-MATRIX), lower=True)
    assert not lapack.solve(
        np.zeros((2, 2), order="F"), np.ones((2, 1)), lower=True, transposed=False
    )
    with pytest.raises(NotPositive):
        array_api.solve_lower(np.zeros((2, 2)), np.ones(2))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3)])
def test_solutions_for_right_sides_of_any_order(order, shape):
    factor, right = np.linalg.cholesky(MATRIX), RNG.normal(size=shape)
    wanted = np.linalg.solve(MATRIX, right)
    for matrix in (factor, np.asfortranarray(factor), np.repeat(factor, 2, axis=1)[:, ::2]):
        found = array_api.solve_cholesky(matrix, right.copy(order=order))
        np.testing.assert_allclose(found, wanted)
    mixed = array_api.solve_cholesky(factor.astype(np.float32), right.copy(order=order))
    assert mixed.dtype == np.float64
    np.testing.assert_allclose(mixed, wanted, rtol=1e-2, atol=1e-3)


def test_factors_have_zeros_above_the_diagonal():
    root = RNG.normal(size=(600, 600))
    matrix = root @ root.T + np.eye(600)
    wanted = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(array_api.cholesky(matrix), wanted, atol=1e-9)
    np.testing.assert_allclose(
        array_api.inverse_of_cholesky(wanted), np.linalg.inv(wanted @ wanted.T), atol=1e-7
    )


@pytest.mark.parametrize("n", [1, 600, 641, 768, 1600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_by_tiles_do_not_depend_on_threads(n, dtype):
    root = RNG.normal(size=(n, n))
    matrix = (root @ root.T / n + np.eye(n)).astype(dtype)
    found = []
    for n_threads in (1, 3):
        with ThreadTeam(n_threads) as team:
            found.append(array_api.cholesky(matrix.copy(), team=team))
    wanted = np.linalg.cholesky(matrix.astype(np.float64))
    np.testing.assert_allclose(found[0], wanted, atol=1e-4 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(*found)


def test_tiles_of_a_matrix_that_is_not_positive():
    for n, place in [(300, 0), (300, 299), (700, 0), (700, 128), (700, 256), (700, 699)]:
        matrix = np.eye(n)
        matrix[place, place] = -1
        with ThreadTeam(2) as team:
            assert not lapack.factor_by_tiles(matrix.copy(), team)
            with pytest.raises(NotPositive):
                array_api.cholesky(matrix, team=team)


def seen_meanwhile(function):
    """How often another thread looks at the clock after the first quarter of a call."""
    began, ended, seen = threading.Event(), threading.Event(), []

    def watch():
        began.wait()
        while not ended.is_set():
            seen.append(time.perf_counter())

    thread = threading.Thread(target=watch)
    thread.start()
    began.set()
    before = time.perf_counter()
    function()
    after = time.perf_counter()
    ended.set()
    thread.join()
    return sum(before + 0.25 * (after - before) < one < after for one in seen)


def test_other_threads_run_meanwhile():
    matrix = np.eye(1500, order="F")
    # On a busy machine, the other thread may have no processor once.
    assert any(
        seen_meanwhile(lambda: lapack.factor(matrix.copy("F"), lower=True)) > 10 for _ in range(5)
    )


@pytest.mark.parametrize("n", [1, 128, 129, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_and_products_by_tiles_do_not_depend_on_threads(n, dtype):
    root = RNG.normal(size=(n, n))
    factor = np.linalg.cholesky(root @ root.T / n + np.eye(n)).astype(dtype)
    rows, inverses, sums = RNG.normal(size=(20, n)), [], []
    for n_threads in (1, 3):
        with ThreadTeam(n_threads) as team:
            inverse = factor.copy()
            lapack.invert_by_tiles(inverse, team)
            inverses.append(np.tril(inverse))
            total = np.ones((n, n))
            lapack.add_products(rows, total, team)
            sums.append(np.tril(total))
    wanted = np.tril(np.linalg.inv(factor.astype(np.float64) @ factor.T.astype(np.float64)))
    np.testing.assert_allclose(inverses[0], wanted, atol=1e-4 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(*inverses)
    np.testing.assert_allclose(sums[0], np.tril(1 + rows.T @ rows))
    np.testing.assert_array_equal(*sums)
