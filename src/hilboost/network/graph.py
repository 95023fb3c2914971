"""Links as matrices, and kernels between the vertices of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats


def adjacency_matrix(links: Any, n_vertices: int) -> Floats:
    """Links between vertices as a symmetric matrix without a diagonal.

    Parameters
    ----------
    links : array-like (n, n), sparse matrix (n, n), or sequence of pairs
        An adjacency matrix, which may hold weights, or the numbers of linked vertices, (m, 2).
        A list of two pairs on two vertices is ambiguous and taken for pairs.
    n_vertices : int

    Returns
    -------
    (n, n) float64

    Raises
    ------
    InvalidData
        A vertex that does not exist, a link of a vertex with itself in a list of pairs, a matrix
        that is not symmetric or has negative or missing entries.
    """
    if scipy.sparse.issparse(links):
        links = links.toarray()
    table = np.asarray(links)
    if isinstance(links, np.ndarray) and table.shape == (n_vertices, n_vertices):
        return _checked_matrix(table.astype(np.float64))
    if table.ndim == 2 and table.shape == (n_vertices, n_vertices) and table.shape[1] != 2:
        return _checked_matrix(table.astype(np.float64))
    if table.size == 0:
        return np.zeros((n_vertices, n_vertices))
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidData(
            f"links must be an adjacency matrix ({n_vertices}, {n_vertices}) or pairs of vertex "
            f"numbers (m, 2); got shape {table.shape}."
        )
    if table.dtype.kind not in "iu":
        raise InvalidData("pairs of linked vertices must be whole numbers, the rows of X.")
    unknown = (table < 0) | (table >= n_vertices)
    if unknown.any():
        row = int(np.flatnonzero(unknown.any(axis=1))[0])
        raise InvalidData(
            f"link {row} names vertex {int(table[row][unknown[row]][0])}; there are vertices 0 to "
            f"{n_vertices - 1}, one for each row of X."
        )
    loops = np.flatnonzero(table[:, 0] == table[:, 1])
    if len(loops):
        raise InvalidData(
            f"link {int(loops[0])} joins vertex {int(table[loops[0], 0])} to itself; leave such "
            "links out."
        )
    matrix = np.zeros((n_vertices, n_vertices))
    matrix[table[:, 0], table[:, 1]] = matrix[table[:, 1], table[:, 0]] = 1.0
    return matrix


def _checked_matrix(matrix: Floats) -> Floats:
    bad = ~(np.isfinite(matrix) & (matrix >= 0)).all(axis=1)
    if bad.any():
        raise InvalidData(
            f"the adjacency matrix has a negative, missing or infinite entry in row "
            f"{int(np.flatnonzero(bad)[0])}."
        )
    uneven = np.abs(matrix - matrix.T) > 1e-12 * max(1.0, float(matrix.max(initial=0.0)))
    if uneven.any():
        i, j = divmod(int(uneven.argmax()), len(matrix))
        raise InvalidData(
            f"the adjacency matrix is not symmetric: entries ({i}, {j}) and ({j}, {i}) differ. "
            "Links have no direction here; give (A + A.T) / 2, or the larger of both."
        )
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)
    return matrix


def diffusion_kernel(adjacency: Any, coefficient: float = 1.0, *, scaled: bool = False) -> Floats:
    """``exp(-β L)`` with the Laplacian ``L = D - A`` (Kondor and Lafferty 2002).

    Parameters
    ----------
    adjacency : array-like (n, n)
        Symmetric, not negative.
    coefficient : float
        ``β``; heat spreads along the links for so long.
    scaled : bool
        Divide by the roots of the diagonal, so that every vertex is as similar to itself as any.

    Returns
    -------
    (n, n) float64
        Positive definite.

    Notes
    -----
    Cost O(n³), one symmetric eigendecomposition.
    """
    if not (np.isfinite(coefficient) and coefficient > 0):
        raise InvalidParameter(f"coefficient must be a positive number; got {coefficient!r}.")
    A = adjacency_matrix(np.asarray(adjacency, dtype=np.float64), len(adjacency))
    laplacian = np.diag(A.sum(axis=1)) - A
    values, vectors = scipy.linalg.eigh(laplacian)
    half = vectors * np.exp(-0.5 * coefficient * np.maximum(values, 0.0))
    kernel = half @ half.T
    if scaled:
        root = np.sqrt(kernel.diagonal())
        kernel /= root[:, None] * root
    return np.asarray(kernel)
