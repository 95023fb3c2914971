"""Training outputs whose points span all others, for predictions as combinations of outputs."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Embedding
from hilboost.outputs.kernel_output import KernelEmbedding
from hilboost.outputs.precomputed import PrecomputedEmbedding

_NEGLIGIBLE = 1e-10  # of the largest pivot


def spanning_rows(embedding: Embedding, codes: Floats) -> NDArray[np.int64]:
    """Rows of ``codes`` (n, r) that all rows are combinations of.

    Those of a pivoted Cholesky factor are its pivots; others are found by a pivoted QR
    factorisation, O(n r²).
    """
    if isinstance(embedding, KernelEmbedding | PrecomputedEmbedding):
        return embedding.factor.pivots
    triangle, order = scipy.linalg.qr(codes.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(sizes > _NEGLIGIBLE * sizes.max(initial=0.0)))
    return np.asarray(order[:rank], dtype=np.int64)
