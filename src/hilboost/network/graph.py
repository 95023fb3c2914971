"""Adjacency matrices, and kernels between the vertices of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, first_true, shown
from hilboost.core.plain_values import is_integer
from hilboost.network.validation import as_array, as_matrix, first_uneven_pair, refuse_negative


def adjacency_matrix(links: object, n_vertices: int) -> Floats:
    """Convert links between vertices to a symmetric adjacency matrix with zero diagonal.

    Parameters
    ----------
    links : array-like (n, n), sparse matrix (n, n), or sequence of pairs
        An adjacency matrix, possibly weighted, or pairs of linked vertices (m, 2), as indices.
        With two vertices, a list of two pairs is ambiguous and interpreted as pairs.
    n_vertices : int

    Returns
    -------
    (n, n) float64

    Raises
    ------
    InvalidData
        If a vertex does not exist, a pair links a vertex to itself, or the matrix is not symmetric
        or has negative or missing entries.
    """
    table = as_array(links, "links")
    sparse = scipy.sparse.issparse(links)
    no_pairs = sparse or isinstance(links, np.ndarray) or n_vertices != 2
    if no_pairs and table.shape == (n_vertices, n_vertices):
        return _checked_matrix(as_matrix(table, "the adjacency matrix"))
    if table.size == 0 and not sparse:
        return np.zeros((n_vertices, n_vertices))
    if sparse or table.ndim != 2 or table.shape[1] != 2:
        raise InvalidData(
            f"links must be an adjacency matrix ({n_vertices}, {n_vertices}) or pairs of vertex "
            f"indices (m, 2); got {shown(table)}."
        )
    pairs = _checked_pairs(table, n_vertices)
    matrix = np.zeros((n_vertices, n_vertices))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = 1.0
    return matrix


def _checked_pairs(table: Any, n_vertices: int) -> Any:
    """Validate pairs of vertices, (m, 2) int64."""
    if table.dtype.kind not in "iu":
        for row, pair in enumerate(table.tolist()):
            for vertex in pair:
                if not is_integer(vertex):
                    raise InvalidData(
                        f"link {row} contains vertex {vertex!r:.60}; vertices must be integers, "
                        f"0 to {n_vertices - 1}, the row indices of X."
                    )
        table = table.astype(np.int64)
    unknown = (table < 0) | (table >= n_vertices)
    if (bad := first_true(unknown.any(axis=1))) is not None:
        raise InvalidData(
            f"link {bad} contains vertex {int(table[bad][unknown[bad]][0])}; vertices must be 0 to "
            f"{n_vertices - 1}, the row indices of X."
        )
    loops = np.flatnonzero(table[:, 0] == table[:, 1])
    if len(loops):
        raise InvalidData(
            f"link {int(loops[0])} connects vertex {int(table[loops[0], 0])} to itself; remove "
            "such links."
        )
    return table


def _checked_matrix(matrix: Floats) -> Floats:
    refuse_negative(matrix, "the adjacency matrix")
    uneven = first_uneven_pair(matrix, 1e-12 * max(1.0, float(matrix.max(initial=0.0))))
    if uneven is not None:
        i, j = uneven
        raise InvalidData(
            f"the adjacency matrix is not symmetric: entries ({i}, {j}) and ({j}, {i}) differ; "
            "links are undirected, so pass (A + A.T) / 2 or numpy.maximum(A, A.T)."
        )
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)
    return matrix


def diffusion_kernel(
    adjacency: Any, coefficient: float = 1.0, *, scaled: bool = False, n_vertices: int | None = None
) -> Floats:
    """Diffusion kernel ``exp(-β L)`` with Laplacian ``L = D - A`` (Kondor and Lafferty 2002).

    Parameters
    ----------
    adjacency : array-like (n, n), sparse matrix (n, n), or sequence of pairs
        Symmetric, nonnegative matrix; or pairs of linked vertices (m, 2), which need
        ``n_vertices``.
    coefficient : float
        Diffusion time ``β``.
    scaled : bool
        Scale the kernel to ones on the diagonal.
    n_vertices : int, optional
        Number of vertices, needed if ``adjacency`` is a list of pairs; by default the number of
        rows of the matrix.

    Returns
    -------
    (n, n) float64
        Positive definite.

    Raises
    ------
    InvalidParameter, InvalidData
        If the coefficient is not positive, or :func:`adjacency_matrix` rejects the links.

    Notes
    -----
    Cost O(n³), one symmetric eigendecomposition.
    """
    if not (np.isfinite(coefficient) and coefficient > 0):
        raise InvalidParameter(f"coefficient must be a positive number; got {shown(coefficient)}.")
    if n_vertices is None:
        adjacency = as_array(adjacency, "adjacency")
        if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise InvalidData(
                f"adjacency must be a square matrix; got shape {adjacency.shape} (for pairs of "
                "linked vertices (m, 2), pass n_vertices too)."
            )
        n_vertices = len(adjacency)
    A = adjacency_matrix(adjacency, n_vertices)
    laplacian = np.diag(A.sum(axis=1)) - A
    values, vectors = scipy.linalg.eigh(laplacian)
    half = vectors * np.exp(-0.5 * coefficient * np.maximum(values, 0.0))
    kernel = half @ half.T
    if scaled:
        root = np.sqrt(kernel.diagonal())
        kernel /= root[:, None] * root
    return np.asarray(kernel)
