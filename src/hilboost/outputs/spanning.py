"""Selection of training outputs whose embeddings span all training embeddings."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.output_space import Embedding

_NEGLIGIBLE = 1e-10  # of the largest pivot


def spanning_rows(embedding: Embedding, codes: Floats) -> Ints:
    """Find rows of ``codes`` (n, r) that span all rows.

    For a pivoted Cholesky factor, these are its pivots.  Otherwise, they are found by a pivoted QR
    factorization in O(n r²).
    """
    known = embedding.spanning()
    if known is not None:
        return known
    triangle, order = scipy.linalg.qr(codes.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(sizes > _NEGLIGIBLE * sizes.max(initial=0.0)))
    return np.asarray(order[:rank], dtype=np.int64)
