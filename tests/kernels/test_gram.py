"""Gram matrices in tiles against the matrix itself."""

import itertools

import numpy as np
import pytest

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Additive, CallableKernel, Gaussian, Matern
from hilboost.kernels.gram import Gram, evaluate, fill, require_memory, row_blocks
from hilboost.kernels.symmetric import SymmetricGram

SHAPES = [(1, 1, 1), (300, 7, 2), (257, 1025, 3), (2100, 130, 1), (1300, 40, 70)]
shapes = pytest.mark.parametrize(("a", "b", "d"), SHAPES)
KEPT = {"kept": np.inf, "evaluated anew": 0.0}
memories = pytest.mark.parametrize("memory", list(KEPT.values()), ids=list(KEPT))
precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def draw(a, b, d, dtype=np.float64, r=3):
    rng = np.random.default_rng(a + b)
    A, B = rng.normal(size=(a, d)).astype(dtype), rng.normal(size=(b, d)).astype(dtype)
    return A, B, rng.normal(size=(b, r)), rng.normal(size=(a, r)), rng.uniform(0, 3, size=a)


def assert_close(found, expected, dtype):
    assert found.dtype == np.float64
    scale = np.abs(expected).max()
    limit = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=0, atol=limit * scale)


@shapes
@memories
@precisions
def test_products_and_sums_are_those_of_the_matrix(a, b, d, memory, dtype):
    A, B, V, U, weight = draw(a, b, d, dtype)
    kernel = Gaussian(np.sqrt(d))
    K = kernel.block(A.astype(float), B.astype(float))
    gram = Gram(kernel, A, B, memory)
    assert gram.shape == (a, b)
    assert gram.is_kept == (memory > 0)
    for _ in range(2):  # the second time from what was kept
        assert_close(gram.times(V), K @ V, dtype)
        assert_close(gram.transposed_times(U), K.T @ U, dtype)
        assert_close(gram.normal_times(V), K.T @ (K @ V), dtype)
        assert_close(gram.normal_times(V, weight), K.T @ (weight[:, None] * (K @ V)), dtype)
    gram = Gram(kernel, A, B, memory)
    for weights, right in ((None, U), (weight, None), (weight, U)):  # U is weighted already
        square, product = gram.sums(weights, right)
        assert_close(square, K.T @ (K if weights is None else weight[:, None] * K), dtype)
        if right is None:
            assert product is None
        else:
            assert_close(product, K.T @ U, dtype)


class Halved(Gaussian):
    """A kernel that changes the formula of its base class."""

    def block(self, A, B):
        return 0.5 * super().block(A, B)


@pytest.mark.parametrize("kernel", [Halved(1.0), Matern(2.0, 2.5), Additive(1.0)])
def test_products_of_tiles_are_those_of_the_kernel(kernel):
    A, B, V, _, _ = draw(300, 1030, 3)
    with ThreadTeam(2) as team:
        found = Gram(kernel, A, B, team=team).times(V)
    assert_close(found, kernel.block(A, B) @ V, np.float64)
    np.testing.assert_array_equal(found, Gram(kernel, A, B).times(V))


@shapes
@memories
@precisions
def test_threads_do_not_change_a_bit(a, b, d, memory, dtype):
    A, B, V, U, weight = draw(a, b, d, dtype)
    results = []
    for n_threads in (1, 2):
        # One thread of BLAS: with more of them, its own sums of products are ordered otherwise.
        with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
            gram = Gram(Matern(1.0, 2.5), A, B, memory, team)
            products = gram.times(V), gram.transposed_times(U), gram.normal_times(V, weight)
            results.append([gram.whole(), *products, *gram.sums(weight, U)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_kept_matrix_gives_the_bits_of_one_that_is_not():
    A, B, V, U, weight = draw(2100, 130, 3, np.float32)
    kept, anew = (Gram(Gaussian(), A, B, memory) for memory in (np.inf, 0.0))
    np.testing.assert_array_equal(kept.times(V), anew.times(V))
    np.testing.assert_array_equal(kept.transposed_times(U), anew.transposed_times(U))
    np.testing.assert_array_equal(kept.normal_times(V, weight), anew.normal_times(V, weight))


def counting_kernel():
    entries = []

    def function(A, B):
        entries.append(len(A) * len(B))
        return A @ B.T

    return CallableKernel(function), entries


def test_a_kept_matrix_is_evaluated_once():
    A, B, V, U, _ = draw(700, 30, 2)
    for memory, times in ((700 * 30 * 8.0, 1), (700 * 30 * 8 - 1.0, 3)):
        kernel, entries = counting_kernel()
        gram = Gram(kernel, A, B, memory)
        assert gram.largest > 0  # which evaluates the diagonals
        entries.clear()
        gram.times(V)
        gram.transposed_times(U)
        gram.sums(None, None)
        assert sum(entries) == times * 700 * 30


@pytest.mark.parametrize("d", [1, 64, 65])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (256, 1024), (257, 1025), (1030, 2060)])
def test_tiles_cover_a_block(a, b, d):
    A, B = np.zeros((a, d)), np.zeros((b, d))
    A[:, 0], B[:, 0] = np.arange(a), np.arange(b)
    out = np.full((a, b), np.nan)
    fill(out, CallableKernel(lambda A, B: A[:, :1] * 10_000 + B[:, 0]), A, B)
    np.testing.assert_array_equal(out, np.arange(a)[:, None] * 10_000 + np.arange(b))


@pytest.mark.parametrize(("n", "size"), list(itertools.product([1, 7, 8, 9, 64], [1, 4, 8])))
def test_row_blocks_are_all_rows_in_order(n, size):
    rows = [np.arange(n)[block] for block in row_blocks(n, size)]
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(n))
    assert max(map(len, rows)) <= size


def test_evaluate_gives_the_whole_matrix():
    A, B, *_ = draw(300, 7, 2, np.float32)
    K = evaluate(Gaussian(), A, B)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, Gaussian().block(A, B), rtol=1e-5)


@pytest.mark.parametrize("n", [1, 40, 512, 513, 1700])
@memories
@precisions
def test_a_triangle_stands_for_the_symmetric_matrix(n, memory, dtype):
    A, _, _, V, _ = draw(n, 1, 2, dtype)
    K = Gaussian().block(A.astype(float), A.astype(float))
    results = []
    for n_threads in (1, 2):
        with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
            gram = SymmetricGram(Gaussian(), A, memory, team)
            results += [gram.times(V), gram.times(V)]
    assert_close(results[0], K @ V, dtype)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_a_budget_that_cannot_be_kept_is_refused():
    assert require_memory(2**20, 2**20, "this") is None
    with pytest.raises(
        InvalidParameter, match="is 1 MiB, but the whole matrix requires 3 MiB. Increase mem"
    ):
        require_memory(2 * 2**20 + 1, 2**20, "the whole matrix")


@memories
def test_torch_arrays_give_the_same_numbers(memory):
    torch = pytest.importorskip("torch")
    A, B, V, U, weight = draw(300, 130, 3)
    theirs = [torch.asarray(array) for array in (A, B, V, U, weight)]
    ours, other = Gram(Gaussian(), A, B, memory), Gram(Gaussian(), theirs[0], theirs[1], memory)
    triangle = SymmetricGram(Gaussian(), theirs[0], memory)
    for found, expected in [
        (other.times(theirs[2]), ours.times(V)),
        (other.transposed_times(theirs[3]), ours.transposed_times(U)),
        (other.normal_times(theirs[2], theirs[4]), ours.normal_times(V, weight)),
        (other.sums(theirs[4], theirs[3])[0], ours.sums(weight, U)[0]),
        (other.sums(theirs[4], theirs[3])[1], ours.sums(weight, U)[1]),
        (triangle.times(theirs[3]), evaluate(Gaussian(), A, A) @ U),
    ]:
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)
