"""Links as matrices and the diffusion kernel."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.network import adjacency_matrix, diffusion_kernel, link_curves
from hilboost.network.bipartite import profile_kernel

PAIRS = [(0, 1), (1, 2), (3, 1)]


def test_pairs_and_matrices_say_the_same():
    matrix = adjacency_matrix(PAIRS, 5)
    assert matrix.shape == (5, 5)
    assert matrix.sum() == 2 * len(PAIRS)
    assert (matrix == matrix.T).all()
    assert (adjacency_matrix(matrix, 5) == matrix).all()
    assert (adjacency_matrix(scipy.sparse.csr_array(matrix), 5) == matrix).all()
    assert (adjacency_matrix(matrix + np.eye(5), 5) == matrix).all()


def test_two_vertices_and_no_links():
    assert (adjacency_matrix(np.array([[0.0, 1], [1, 0]]), 2) == [[0, 1], [1, 0]]).all()
    assert not adjacency_matrix([], 3).any()


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 1), (1, 7)], "link 1 contains vertex 7; vertices must be 0 to 4"),
        ([(0, 1), (-1, 2)], "link 1 contains vertex -1"),
        ([(0, 1), (2, 2)], "link 1 connects vertex 2 to itself"),
        ([(0.5, 1.0)], "must be integers"),
        ([(0, 1, 2)], "pairs of vertex"),
        (np.triu(np.ones((5, 5))), "not symmetric"),
        (np.full((5, 5), np.nan), "in row 0"),
        (-np.ones((5, 5)), "negative"),
        ([[0, 1], [2]], "links must have rows of equal length; row 1 has 1 and row 0 has 2"),
        ([[0, 1], "ab"], "row 1 has 1 and row 0 has 2"),
        ([(0, 1), ("a", "b")], "link 0 contains vertex '0'; .* integers, 0 to 4"),
        ([["a", "b"], ["b", "c"]], "link 0 contains vertex 'a'; .* integers, 0 to 4"),
        (np.array([(0, 1), (2, "b")], dtype=object), "link 1 contains vertex 'b'"),
        ([(True, False)], "link 0 contains vertex True"),
        ([["a"] * 5] * 5, "the adjacency matrix must contain numbers; row 0 has 'a'"),
        (np.full((5, 5), 1j), "the adjacency matrix must contain numbers; row 0 has 1j"),
        (scipy.sparse.csr_array((3, 2)), r"of shape \(3, 2\)"),
    ],
)
def test_bad_links_are_refused(links, message):
    refused(InvalidData, message, adjacency_matrix, links, 5)


@given(st.integers(2, 8), st.floats(0.1, 3), st.integers(0, 10**6))
def test_diffusion_kernel_is_the_matrix_exponential(n, coefficient, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 2, (n, n)), 1)
    A = (A + A.T).astype(float)
    kernel = diffusion_kernel(A, coefficient)
    expected = scipy.linalg.expm(-coefficient * (np.diag(A.sum(axis=1)) - A))
    np.testing.assert_allclose(kernel, expected, atol=1e-12)
    np.testing.assert_allclose(kernel.sum(axis=1), 1)
    np.testing.assert_allclose(diffusion_kernel(A, coefficient, scaled=True).diagonal(), 1)


def test_diffusion_kernel_of_sparse_matrices_and_pairs():
    expected = diffusion_kernel(adjacency_matrix(PAIRS, 5))
    sparse = scipy.sparse.csr_array(adjacency_matrix(PAIRS, 5))
    assert (diffusion_kernel(sparse) == expected).all()
    assert (diffusion_kernel(PAIRS, n_vertices=5) == expected).all()
    assert (diffusion_kernel(np.array(PAIRS, dtype=object), n_vertices=5) == expected).all()


@pytest.mark.parametrize(
    ("links", "n_vertices", "message"),
    [
        (PAIRS, None, r"square matrix; got shape \(3, 2\) \(for pairs .* pass n_vertices"),
        (np.zeros((3, 4)), None, r"square matrix; got shape \(3, 4\)"),
        (scipy.sparse.csr_array((3, 4)), None, "square matrix"),
        (PAIRS, 3, "link 2 contains vertex 3"),
        ([[0, 1], [1]], None, "adjacency must have rows of equal length; row 1"),
    ],
)
def test_diffusion_kernel_refuses_other_graphs(links, n_vertices, message):
    refused(InvalidData, message, diffusion_kernel, links, n_vertices=n_vertices)


@pytest.mark.parametrize("coefficient", [0.0, -1.0, np.nan])
def test_diffusion_coefficient_must_be_positive(coefficient):
    refused(InvalidParameter, "positive", diffusion_kernel, np.zeros((2, 2)), coefficient)


def test_profile_kernel_by_hand():
    Y = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    kernel = profile_kernel(Y)
    np.testing.assert_allclose(kernel[0], np.exp(-np.array([0, 1, 2]) / 1.0))
    assert (profile_kernel(np.zeros((2, 3))) == 1).all()


def test_curves_by_hand():
    links = np.array([[1, 0, 1], [0, 0, 1]])
    perfect = link_curves(links, links + 0.0)
    assert perfect.auroc == perfect.average_precision == 1
    assert (perfect.n_pairs, perfect.n_links) == (6, 3)
    assert link_curves(links, 1.0 - links).auroc == 0
    square = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert link_curves(square, square, within=True).n_pairs == 3
    assert link_curves(scipy.sparse.csr_array(links), links).auroc == 1
    unknown = np.where(np.eye(3), np.nan, square)  # pairs with itself do not count
    assert link_curves(square, unknown, within=True).auroc == 1


@pytest.mark.parametrize(
    ("links", "scores", "within", "message"),
    [
        (np.ones((2, 2)), np.ones((2, 3)), False, "the same shape"),
        (np.ones((2, 2)), np.ones((2, 2)), False, "4 of 4 pairs"),
        (np.zeros((2, 2)), np.ones((2, 2)), False, "0 of 4 pairs"),
        (np.ones((2, 3)), np.ones((2, 3)), True, "square"),
        ([[0, 1], [np.nan, 0]], np.ones((2, 2)), False, "links has a missing .* in row 1"),
        (np.eye(2), [[0, 1], [0, np.nan]], False, "scores has a missing .* in row 1"),
        (np.eye(2), [[0, np.inf], [0, 1]], True, "scores has a missing .* in row 0"),
        ([["yes", "no"]], np.ones((1, 2)), False, "links must contain numbers; row 0 has 'yes'"),
        ([[1, 0], [1]], np.ones((2, 2)), False, "links must have rows of equal length; row 1"),
    ],
)
def test_curves_refuse_what_they_cannot_draw(links, scores, within, message):
    refused(InvalidData, message, link_curves, links, scores, within=within)
