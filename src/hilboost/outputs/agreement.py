"""Agreement of predicted with true labels, row by row; larger is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats


def f1_of_sets(true: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> Floats:
    """F1 score of each row of indicators (n, L), which is 1 if both sets are empty."""
    sizes = true.sum(axis=1) + predicted.sum(axis=1)
    common = (true & predicted).sum(axis=1)
    return np.where(sizes > 0, 2 * common / np.maximum(sizes, 1), 1.0)


def share_equal(true: NDArray[Any], predicted: NDArray[Any]) -> Floats:
    """Share of the entries (n, K) that are equal, in each row."""
    return np.asarray((true == predicted).mean(axis=1), dtype=np.float64)


def all_equal(true: NDArray[Any], predicted: NDArray[Any]) -> Floats:
    """1 if all entries (n, K) of a row are equal, else 0."""
    return np.asarray((true == predicted).all(axis=1), dtype=np.float64)


def equal(true: Sequence[Any], predicted: Sequence[Any]) -> Floats:
    """1 if two labels are equal, else 0."""
    return np.array([float(a == b) for a, b in zip(true, predicted, strict=True)])


def kendall(true: NDArray[Any], predicted: NDArray[Any]) -> Floats:
    """Kendall's τ (τ-b with ties) of each row of ranks, (n, K)."""
    first, second = np.triu_indices(true.shape[1], 1)
    return _cosines(*(np.sign(r[:, second] - r[:, first]) for r in (true, predicted)))


def spearman(true: NDArray[Any], predicted: NDArray[Any]) -> Floats:
    """Spearman's ρ of each row of ranks, (n, K); tied items have their mean rank."""
    return _cosines(*(np.sign(r[:, :, None] - r[:, None]).sum(axis=2) for r in (true, predicted)))


def _cosines(A: Floats, B: Floats) -> Floats:
    """Cosine of the angle of each pair of rows; of zeros, whether both are zeros."""
    lengths = np.sqrt((A**2).sum(axis=1) * (B**2).sum(axis=1))
    both_tied = ~A.any(axis=1) & ~B.any(axis=1)
    cosine = (A * B).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    return np.where(lengths > 0, cosine, both_tied.astype(np.float64))


def minus_edits(true: Sequence[Any], predicted: Sequence[Any]) -> Floats:
    """Minus the number of edits (insertions, deletions, substitutions) between sequences."""
    return np.array([-_edits(a, b) for a, b in zip(true, predicted, strict=True)], dtype=float)


def _edits(a: Any, b: Any) -> int:
    """Levenshtein distance by dynamic programming, O(len(a) len(b))."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        before, row = row, [i]
        for j, other in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (one != other)))
    return row[-1]


def minus_distance(true: Floats, predicted: Floats) -> Floats:
    """Minus the Euclidean distance of each pair of rows, (n, r)."""
    return np.asarray(-np.sqrt(((true - predicted) ** 2).sum(axis=1)))


def minus_mean_square(true: Floats, predicted: Floats) -> Floats:
    """Minus the mean squared difference of each pair of rows, (n, c)."""
    return np.asarray(-((true - predicted) ** 2).mean(axis=1))
